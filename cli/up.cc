// weir up: nginx with weir in front of a service, complete, on the loopback.
//
//   storm ---> nginx, weir on  ---> backend, or the user's own service
//        \---> nginx, weir off ---> another backend, just as strong
//
// The two ports have a backend each: what the unprotected one still has to work
// off after a flood would poison the other's figures.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "demo.h"
#include "event_loop.h"
#include "loopback.h"
#include "nginx_conf.h"
#include "process.h"
#include "scratch.h"
#include "storm_run.h"
#include "terminal.h"
#include "up_policy.h"
#include "version.h"
#include "weir/config/policy.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"
#include "weir/shm/segment.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;
using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kConnectTimeout = seconds(3);
// Chosen: many times what a start takes on an idle machine.
constexpr seconds kStartTimeout(20);
constexpr milliseconds kStopTimeout = seconds(5);

struct Options {
  std::string upstream;
  std::string policy;
  std::string scenario;
  std::vector<std::string> routes;
  std::string log;
  bool shadow = false;
  bool print_conf = false;
  int workers = 0;
  uint16_t port = 0;
  bool demo = false;
  bool guarded_only = false;
  bool json = false;
  std::optional<uint64_t> seed;
  double scale = 1;
};

// Why a start failed, and whose fault it is.
struct Failure {
  ExitStatus status = kCouldNotRun;
  std::string message;  // Empty: it has been printed.
};

std::string Url(uint16_t port) {
  return fmt::format("http://127.0.0.1:{}", port);
}

// Of the running program, and as a person would type it from here.
fs::path Self() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}
std::string FromHere(const fs::path& path) {
  std::error_code error;
  const fs::path relative = fs::relative(path, error);
  const bool below =
      !error && !relative.empty() && *relative.begin() != fs::path("..");
  return below ? relative.string() : path.string();
}

// The scenario that the demonstration plays: of the source tree that the
// program was built in, or of its installation.
Result<std::string> FindScenario() {
  const fs::path here = Self().parent_path();
  for (const fs::path& folder :
       {here / "../../../sim/scenarios", here / "../share/weir/scenarios"}) {
    std::error_code ignored;
    const fs::path file = folder / "first-light.toml";
    if (fs::exists(file, ignored)) return fs::canonical(file, ignored).string();
  }
  return Error{
      "first-light.toml is not where it belongs; name one: --scenario"};
}

// All that runs, from the first check to the last breath.
class Instance {
 public:
  explicit Instance(const Options& options) : options_(options) {}
  ~Instance();

  std::optional<Failure> Start();
  // Instead: what nginx would be started with.
  std::optional<Failure> PrintConf();
  void PrintGreeting() const;
  int WaitForEnd();
  int RunDemo();

 private:
  std::optional<Failure> Check();
  std::optional<Failure> CheckOptions() const;
  std::optional<Failure> CheckPolicy();
  std::string PolicyText() const;
  NginxConf Conf() const;
  std::optional<Failure> CheckService();
  std::optional<Failure> WritePolicy();
  std::optional<Failure> StartBackend(std::string_view name, HostPort& at);
  std::optional<Failure> StartNginx();
  std::optional<Failure> AwaitPort(const HostPort& at, std::string_view name);

  bool has_sample() const { return options_.upstream.empty(); }
  uint64_t seed() const { return options_.seed.value_or(scenario_->seed); }

  const Options& options_;
  std::optional<Scratch> scratch_;
  std::string nginx_;
  std::string module_;
  std::string policy_path_;
  std::string log_path_;  // Absolute; empty: none.
  std::string service_;
  UsedResources resources_;
  std::vector<NginxConf::Route> routes_;
  bool segment_is_ours_ = false;
  std::string scenario_path_;
  std::optional<Scenario> scenario_;
  HostPort guarded_;
  HostPort unguarded_;
  uint16_t guarded_port_ = 0;
  uint16_t unguarded_port_ = 0;  // 0: there is none.
  std::optional<Supervisor> children_;
};

Instance::~Instance() {
  children_.reset();
  // After the last worker, or it would still be in use.
  const bool exists = access(shm::SegmentPath(service_).c_str(), F_OK) == 0;
  if (segment_is_ours_ && exists) {
    if (const auto error = shm::RemoveSegment(service_)) {
      Fail(kCouldNotRun, error->message);
    }
  }
}

std::optional<Failure> Instance::CheckOptions() const {
  if (options_.demo && !has_sample()) {
    return Failure{kWrongInput,
                   "--demo floods the service without protection too; it runs "
                   "with the sample service only, so leave --upstream out"};
  }
  if (options_.json && !options_.demo) {
    return Failure{kWrongInput, "--json is for --demo"};
  }
  if (options_.guarded_only && !options_.demo) {
    return Failure{kWrongInput, "--guarded-only is for --demo"};
  }
  if (options_.shadow && !options_.policy.empty()) {
    return Failure{kWrongInput,
                   "--shadow is for the policy that weir up writes; in yours, "
                   "set `stages.level`, `limit` and `deadline` to \"shadow\""};
  }
  if (!has_sample() && !options_.scenario.empty()) {
    return Failure{kWrongInput,
                   "--scenario says what the sample service can do; leave it "
                   "out, or leave --upstream out"};
  }
  if (has_sample() && (!options_.routes.empty() || options_.print_conf)) {
    return Failure{kWrongInput,
                   "--route and --print-conf are for a service of your own; "
                   "name it: --upstream"};
  }
  return std::nullopt;
}

// What can be told before anything is started.
std::optional<Failure> Instance::Check() {
  if (auto failure = CheckOptions()) return failure;
  if (auto failure = CheckPolicy()) return failure;
  if (auto failure = CheckService()) return failure;
  if (!options_.log.empty()) {
    std::error_code error;
    log_path_ = fs::absolute(options_.log, error).string();
    if (const auto wrong = CheckWritable(log_path_)) {
      return Failure{kCouldNotRun, "--log: " + wrong->message};
    }
  }
  auto nginx = FindNginx();
  if (!nginx) return Failure{kCouldNotRun, nginx.error().message};
  auto module = FindModule();
  if (!module) return Failure{kCouldNotRun, module.error().message};
  nginx_ = *std::move(nginx);
  module_ = *std::move(module);
  if (options_.port != 0) {
    if (const auto error = CheckPort(options_.port)) {
      return Failure{kCouldNotRun, error->message};
    }
  }
  return std::nullopt;
}

// The policy of those who bring none.
std::string Instance::PolicyText() const {
  std::vector<std::string> resources;
  for (const NginxConf::Route& route : routes_) {
    resources.push_back(route.resource);
  }
  return DefaultPolicy(service_, resources, options_.shadow);
}

std::optional<Failure> Instance::CheckPolicy() {
  auto routes = ParseRoutes(options_.routes);
  if (!routes) return Failure{kWrongInput, routes.error().message};
  routes_ = *std::move(routes);
  if (options_.policy.empty()) {
    // Its own name and so its own region: instances do not share a limit.
    service_ = options_.print_conf ? "shop" : fmt::format("up-{}", getpid());
    resources_ = {.requests = "api", .health = "health"};
    const auto made =
        config::ParsePolicy(PolicyText(), "the policy of --route");
    if (made) return std::nullopt;
    std::fputs(made.complaints().Print("nothing was started").c_str(), stderr);
    return Failure{kWrongInput, ""};
  }
  const config::Checked<Policy> policy = config::LoadPolicy(options_.policy);
  if (!policy) {
    std::fputs(policy.complaints().Print("nothing was started").c_str(),
               stderr);
    return Failure{kWrongInput, ""};
  }
  const Result<UsedResources> resources = ChooseResources(*policy);
  if (!resources) {
    return Failure{kWrongInput,
                   options_.policy + ": " + resources.error().message};
  }
  if (const auto error = CheckRoutes(routes_, *policy, options_.policy)) {
    return Failure{kWrongInput, error->message};
  }
  resources_ = *resources;
  service_ = policy->service;
  std::error_code error;
  policy_path_ = fs::absolute(options_.policy, error).string();
  if (error) {
    return Failure{kCouldNotRun, options_.policy +
                                     ": cannot tell which folder it is in: " +
                                     error.message()};
  }
  return std::nullopt;
}

std::optional<Failure> Instance::CheckService() {
  if (!has_sample()) {
    const Result<HostPort> upstream = ParseHostPort(options_.upstream);
    if (!upstream) {
      return Failure{kWrongInput, "--upstream: " + upstream.error().message};
    }
    if (const auto error = TryConnect(*upstream, kConnectTimeout)) {
      return Failure{kCouldNotRun,
                     error->message + "; start your service first"};
    }
    guarded_ = *upstream;
    return std::nullopt;
  }
  scenario_path_ = options_.scenario;
  if (scenario_path_.empty()) {
    const Result<std::string> found = FindScenario();
    if (!found) return Failure{kCouldNotRun, found.error().message};
    scenario_path_ = *found;
  }
  auto scenario = scenario::LoadScenario(scenario_path_);
  if (!scenario) {
    std::fputs(scenario.complaints().Print("nothing was started").c_str(),
               stderr);
    return Failure{kWrongInput, ""};
  }
  if (const auto error = CannotOffer(*scenario); error && options_.demo) {
    return Failure{kWrongInput, error->message};
  }
  scenario_ = *std::move(scenario);
  if (options_.scale != 1) scenario_->Stretch(options_.scale);
  return std::nullopt;
}

std::optional<Failure> Instance::WritePolicy() {
  if (policy_path_.empty()) {
    const Result<std::string> path =
        scratch_->Write("policy.toml", PolicyText());
    if (!path) return Failure{kCouldNotRun, path.error().message};
    policy_path_ = *path;
  }
  segment_is_ours_ = access(shm::SegmentPath(service_).c_str(), F_OK) != 0;
  return std::nullopt;
}

std::optional<Failure> Instance::Start() {
  if (auto failure = Check()) return failure;
  Result<Scratch> scratch = Scratch::Make("weir-up-");
  if (!scratch) return Failure{kCouldNotRun, scratch.error().message};
  scratch_ = *std::move(scratch);
  children_.emplace();
  if (auto failure = WritePolicy()) return failure;
  if (has_sample()) {
    if (auto failure = StartBackend("backend", guarded_)) return failure;
    if (auto failure = StartBackend("backend-unprotected", unguarded_)) {
      return failure;
    }
  }
  return StartNginx();
}

std::optional<Failure> Instance::StartBackend(std::string_view name,
                                              HostPort& at) {
  const Result<uint16_t> port = FreePort();
  if (!port) return Failure{kCouldNotRun, port.error().message};
  at = {.host = "127.0.0.1", .port = *port};
  const Result<pid_t> pid = children_->Start(
      {.name = std::string(name),
       .argv = {Self(), "backend", scenario_path_, "--port",
                std::to_string(*port), "--seed", std::to_string(seed()),
                "--scale", fmt::format("{}", options_.scale)},
       .log = scratch_->Path(std::string(name) + ".log")});
  if (!pid) return Failure{kCouldNotRun, pid.error().message};
  return AwaitPort(at, name);
}

NginxConf Instance::Conf() const {
  NginxConf conf = {
      .module = module_,
      .policy = policy_path_,
      .workers = options_.workers,
      .root = geteuid() == 0,
      .open_files = RaiseOpenFiles(),
      .resource = resources_.requests,
      .health = resources_.health,
      .routes = routes_,
      .log = log_path_,
      .guarded = {.port = guarded_port_, .upstream = guarded_.text()}};
  if (unguarded_port_ != 0) {
    conf.unguarded = {.port = unguarded_port_, .upstream = unguarded_.text()};
  }
  return conf;
}

std::optional<Failure> Instance::PrintConf() {
  if (auto failure = CheckOptions()) return failure;
  if (auto failure = CheckPolicy()) return failure;
  const Result<HostPort> upstream = ParseHostPort(options_.upstream);
  if (!upstream) {
    return Failure{kWrongInput, "--upstream: " + upstream.error().message};
  }
  guarded_ = *upstream;
  const Result<std::string> module = FindModule();
  module_ = module ? *module : "modules/ngx_http_weir_module.so";
  guarded_port_ = options_.port != 0 ? options_.port : 8080;
  if (policy_path_.empty()) {
    policy_path_ = "weir.toml";
    fmt::print("# weir.toml, beside this file:\n#\n");
    std::istringstream lines(PolicyText());
    for (std::string line; std::getline(lines, line);) {
      fmt::print("#{}{}\n", line.empty() ? "" : "   ", line);
    }
    fmt::print("\n");
  }
  fmt::print("{}", Conf().Text());
  return std::nullopt;
}

std::optional<Failure> Instance::StartNginx() {
  guarded_port_ = options_.port;
  for (uint16_t* port : {&guarded_port_, &unguarded_port_}) {
    if (*port != 0 || (port == &unguarded_port_ && !has_sample())) continue;
    const Result<uint16_t> free = FreePort();
    if (!free) return Failure{kCouldNotRun, free.error().message};
    *port = *free;
  }
  const Result<std::string> file = scratch_->Write("nginx.conf", Conf().Text());
  if (!file) return Failure{kCouldNotRun, file.error().message};
  const Result<pid_t> pid =
      children_->Start({.name = "nginx",
                        .argv = {nginx_, "-e", "stderr", "-p",
                                 scratch_->path() + "/", "-c", *file},
                        .log = scratch_->Path("nginx.log")});
  if (!pid) return Failure{kCouldNotRun, pid.error().message};
  return AwaitPort({.host = "127.0.0.1", .port = guarded_port_}, "nginx");
}

// Waits until somebody answers there; an end of any child ends the waiting.
std::optional<Failure> Instance::AwaitPort(const HostPort& at,
                                           std::string_view name) {
  const auto end = std::chrono::steady_clock::now() + kStartTimeout;
  while (TryConnect(at, kConnectTimeout)) {
    const Supervisor::Event event = children_->Wait(milliseconds(10));
    if (event.kind == Supervisor::Event::Kind::kStop) {
      return Failure{kCouldNotRun, "stopped while it was starting"};
    }
    if (event.kind == Supervisor::Event::Kind::kExit) {
      return Failure{kCouldNotRun, children_->Obituary(event)};
    }
    if (std::chrono::steady_clock::now() > end) {
      return Failure{
          kCouldNotRun,
          fmt::format(
              "{} does not answer at {} after {} s; it said last:\n{}", name,
              at.text(), kStartTimeout.count(),
              LastLines(scratch_->Path(std::string(name) + ".log"), 12))};
    }
  }
  return std::nullopt;
}

void Instance::PrintGreeting() const {
  const Style style = StyleFor(stdout);
  const std::string self = FromHere(Self());
  fmt::print("{}: nginx with weir in front of ", kVersion);
  if (has_sample()) {
    fmt::print("a sample service that can do {:.0f} requests/s\n\n",
               scenario::CapacityAt(*scenario_, Duration{}));
  } else {
    fmt::print("{}\n\n", guarded_.text());
  }
  fmt::print("  with weir     {}{}{}\n", style.bold, Url(guarded_port_),
             style.reset);
  if (unguarded_port_ != 0) {
    fmt::print("  without       {}   (an equal service of its own)\n",
               Url(unguarded_port_));
  }
  fmt::print("  policy        {}   (edit it: it is followed at once)\n",
             policy_path_);
  fmt::print("  nginx's log   {}\n", scratch_->Path("nginx.log"));
  if (!log_path_.empty()) fmt::print("  access log    {}\n", log_path_);
  fmt::print("\n");
  fmt::print("In a second terminal:\n");
  if (has_sample()) {
    fmt::print("  {}{} storm {} --target {} --compare {}{}\n", style.bold, self,
               FromHere(scenario_path_), Url(guarded_port_),
               Url(unguarded_port_), style.reset);
  } else {
    // Its paths are not those of a scenario, and its capacity is not known.
    fmt::print("  {}{} storm --target {}{} --rate 10{}\n", style.bold, self,
               Url(guarded_port_), routes_.empty() ? "/" : routes_[0].path,
               style.reset);
  }
  fmt::print("  {}{} top {}{}\n", style.bold, self, service_, style.reset);
  if (!log_path_.empty()) {
    fmt::print("  {}{} replay {} --policy {}{}\n", style.bold, self,
               FromHere(log_path_), FromHere(policy_path_), style.reset);
  }
  fmt::print("\nCtrl-C stops all of it.\n");
  std::fflush(stdout);
}

int Instance::WaitForEnd() {
  for (;;) {
    const Supervisor::Event event = children_->Wait(std::chrono::hours(24));
    if (event.kind == Supervisor::Event::Kind::kStop) break;
    if (event.kind == Supervisor::Event::Kind::kExit) {
      return Fail(kCouldNotRun, children_->Obituary(event));
    }
  }
  children_->StopAll(kStopTimeout);
  return kFine;
}

// Runs as a child, so that the end of another child ends it.
int Instance::RunDemo() {
  const Result<pid_t> pid = children_->Start("the demonstration", [this] {
    return PlayDemo(*scenario_,
                    {.guarded_port = guarded_port_,
                     .unguarded_port =
                         options_.guarded_only ? uint16_t{0} : unguarded_port_,
                     .seed = seed(),
                     .json = options_.json});
  });
  if (!pid) return Fail(kCouldNotRun, pid.error().message);
  for (;;) {
    const Supervisor::Event event = children_->Wait(std::chrono::hours(24));
    if (event.kind == Supervisor::Event::Kind::kStop) {
      return Fail(kCouldNotRun, "stopped");
    }
    if (event.kind != Supervisor::Event::Kind::kExit) continue;
    if (event.pid == *pid && event.status <= 128) return event.status;
    return Fail(kCouldNotRun, children_->Obituary(event));
  }
}

int Run(const Options& options) {
  Instance instance(options);
  if (options.print_conf) {
    const std::optional<Failure> failure = instance.PrintConf();
    if (!failure) return kFine;
    return failure->message.empty() ? failure->status
                                    : Fail(failure->status, failure->message);
  }
  if (const std::optional<Failure> failure = instance.Start()) {
    return failure->message.empty() ? failure->status
                                    : Fail(failure->status, failure->message);
  }
  if (options.demo) return instance.RunDemo();
  instance.PrintGreeting();
  return instance.WaitForEnd();
}

}  // namespace

void AddUpCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  options->workers = DefaultNginxWorkers();
  CLI::App* command = app.add_subcommand(
      "up", "Start nginx with weir in front of a service, on the loopback");
  command
      ->add_option("--upstream", options->upstream,
                   "Your own HTTP service; the sample service when absent")
      ->type_name("HOST:PORT");
  command
      ->add_option("--policy", options->policy,
                   "Policy; one of a few lines when absent")
      ->type_name("FILE");
  command
      ->add_option("--route", options->routes,
                   "What requests for a path and all below it are, as "
                   "/checkout=checkout; `off`: not weir's")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("PATH=RESOURCE");
  command->add_flag("--shadow", options->shadow,
                    "Refuse nothing, count what would have been (without "
                    "--policy)");
  command
      ->add_option("--log", options->log,
                   "Write an access log there that weir replay reads")
      ->type_name("FILE");
  command->add_flag("--print-conf", options->print_conf,
                    "Print nginx's configuration, and the policy if there is "
                    "none; start nothing");
  command->add_option("--workers", options->workers, "Workers of nginx")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  command
      ->add_option("--port", options->port,
                   "Port with weir; a free one when absent")
      ->check(CLI::Range(1, 65535))
      ->type_name("N");
  command
      ->add_option("--scenario", options->scenario,
                   "What the sample service can do; what --demo plays")
      ->type_name("FILE");
  command->add_option("--seed", options->seed,
                      "Instead of the scenario's seed");
  command
      ->add_option("--scale", options->scale,
                   "Multiply the lengths of the scenario's phases, and when "
                   "things change")
      ->check(CLI::Range(0.001, 1000.))
      ->capture_default_str();
  command->add_flag("--demo", options->demo,
                    "Storm both ports, print them side by side, stop");
  command->add_flag("--guarded-only", options->guarded_only,
                    "With --demo: leave the port without weir alone");
  command->add_flag("--json", options->json,
                    "With --demo: the last line is one JSON object");
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
