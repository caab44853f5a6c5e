// weir backend: a service with a known capacity, to be overloaded.

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "backend_server.h"
#include "command.h"
#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"

namespace weir::cli {
namespace {

using scenario::Scenario;

struct Options {
  std::string scenario;
  uint16_t port = 0;
  uint16_t admin_port = 0;
  std::optional<uint64_t> seed;
  double scale = 1;
  // The service, when there is no scenario.
  int workers = 20;
  std::string time = "20ms";
  std::string distribution = "exponential";
  std::string more;
};

// The service that the options describe, as a scenario: one set of rules and
// messages for both.
config::Checked<Scenario> ScenarioOf(const Options& options) {
  if (!options.scenario.empty()) {
    return scenario::LoadScenario(options.scenario);
  }
  const bool bimodal = options.distribution == "bimodal";
  return scenario::ParseScenario(
      fmt::format(
          "name = \"backend\"\n"
          "phases = [{{ name = \"all\", load = 1, duration = \"1s\" }}]\n"
          "[service]\n"
          "workers = {}\n"
          "{}"
          "distribution = \"{}\"\n"
          "{}\n",
          options.workers, bimodal ? "" : "time = \"" + options.time + "\"\n",
          options.distribution, options.more),
      "options");
}

// Readable once the process is asked to stop.
Descriptor StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

int Run(const Options& options) {
  auto scenario = ScenarioOf(options);
  if (!scenario) {
    std::fputs(scenario.complaints().Print("nothing was started").c_str(),
               stderr);
    return kWrongInput;
  }
  if (const std::string list = NotPlayed(*scenario); !list.empty()) {
    fmt::print(stderr, "weir: the sample service does not play: {}\n", list);
  }
  if (options.scale != 1) scenario->Stretch(options.scale);
  auto server = BackendServer::Make(
      *scenario, {.port = options.port,
                  .admin_port = options.admin_port,
                  .seed = options.seed.value_or(scenario->seed)});
  if (!server) return Fail(kCouldNotRun, server.error().message);

  const Descriptor stop = StopSignals();
  fmt::print(
      "weir backend: http://127.0.0.1:{} can do {:.0f} requests/s; "
      "admin: http://127.0.0.1:{}\n",
      (*server)->port(), scenario::CapacityAt(*scenario, {}),
      (*server)->admin_port());
  std::fflush(stdout);
  (*server)->Run(stop.get());
  return kFine;
}

}  // namespace

void AddBackendCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "backend", "Serve HTTP with a known capacity, to be overloaded");
  command
      ->add_option("scenario", options->scenario,
                   "Scenario file whose service it plays")
      ->type_name("FILE");
  command->add_option("--port", options->port,
                      "Port of 127.0.0.1; a free one when absent");
  command->add_option("--admin-port", options->admin_port,
                      "Port of /stats, /set, /clear and /reset");
  command->add_option("--seed", options->seed,
                      "Seed of the service times; the scenario's when absent");
  command
      ->add_option("--scale", options->scale,
                   "Multiply when things change, as weir storm does")
      ->check(CLI::Range(0.001, 1000.))
      ->capture_default_str();
  command
      ->add_option("--workers", options->workers,
                   "Requests worked on at a time, without a scenario")
      ->capture_default_str();
  command
      ->add_option("--time", options->time,
                   "Mean service time, without a scenario")
      ->capture_default_str();
  command
      ->add_option("--distribution", options->distribution,
                   "constant, exponential, lognormal, uniform or bimodal")
      ->capture_default_str();
  command->add_option("--more", options->more,
                      "Further keys of [service], such as 'sigma = 2'");
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
