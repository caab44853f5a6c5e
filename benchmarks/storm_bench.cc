// How many requests per second the generator can send on one core.
//
//   storm_bench RUNS  (5 when absent)
//
// Open loop against nginx's empty_gif: the generator has CPU 0 and nginx, one
// worker, CPU 1 (where there are two).  The rate is raised until requests go
// out late (p99 of the send lag above 10 ms) or are not answered; the result is
// the highest rate that held, median of the runs.

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "loopback.h"
#include "nginx_conf.h"
#include "process.h"
#include "scratch.h"
#include "storm_run.h"

namespace weir::cli {
namespace {

using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Chosen: 5 % apart, so that the result is no finer than it is steady.
constexpr double kStep = 1.05;
constexpr double kLowest = 5'000;
constexpr double kHighest = 1'000'000;

void PinTo(size_t cpu) {
  if (std::thread::hardware_concurrency() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Two seconds of Poisson arrivals at `rate`; its service does one per second,
// so that loads are rates.
Scenario MakeScenario(double rate) {
  Scenario scenario;
  scenario.name = "flat-out";
  scenario.deadline = scenario.timeout = seconds(1);
  scenario.tiers = {{.workers = 1, .stages = {{.time = {.mean = seconds(1)}}}}};
  scenario.phases = {{.name = "all", .duration = seconds(2), .load = rate}};
  scenario.classes = {
      {.criticality = Criticality::kVital, .share = .1, .deadline = seconds(1)},
      {.criticality = Criticality::kSheddable,
       .share = .9,
       .deadline = seconds(1)}};
  scenario.routes = {{}};
  return scenario;
}

bool Holds(const HostPort& target, double rate) {
  const Scenario scenario = MakeScenario(rate);
  const auto report = RunStorm(scenario, {.target = target});
  return report && report->invalid.empty() &&
         report->all.good == report->all.offered;
}

// Doubles the rate until it breaks, then climbs from the last that held.
double Measure(const HostPort& target) {
  double rate = kLowest;
  while (rate < kHighest && Holds(target, rate * 2)) rate *= 2;
  double held = 0;
  for (; rate < kHighest; rate *= kStep) {
    // A hiccup of the machine is not the generator's limit: two must fail.
    if (!Holds(target, rate) && !Holds(target, rate)) break;
    held = rate;
  }
  return held;
}

std::string NginxText(const Scratch& scratch, uint16_t port) {
  std::string temp;
  for (const char* kind :
       {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    temp += fmt::format("  {}_temp_path {};\n", kind, scratch.Path(kind));
  }
  return fmt::format(
      "daemon off;\n"
      "worker_processes 1;\n"
      "pid {};\n"
      "error_log stderr error;\n"
      "events {{ worker_connections 10000; }}\n"
      "http {{\n"
      "  access_log off;\n"
      "  keepalive_requests 100000000;\n"
      "{}"
      "  server {{\n"
      "    listen 127.0.0.1:{} backlog=65535;\n"
      "    location / {{ empty_gif; }}\n"
      "  }}\n"
      "}}\n",
      scratch.Path("nginx.pid"), temp, port);
}

int Fail(const std::string& message) {
  fmt::print(stderr, "storm_bench: {}\n", message);
  return 1;
}

int Run(int runs) {
  const auto nginx = FindNginx();
  if (!nginx) return Fail(nginx.error().message);
  const auto scratch = Scratch::Make("weir-storm-bench");
  if (!scratch) return Fail(scratch.error().message);
  const auto port = FreePort();
  if (!port) return Fail(port.error().message);
  const auto conf = scratch->Write("nginx.conf", NginxText(*scratch, *port));
  if (!conf) return Fail(conf.error().message);

  Supervisor supervisor;
  PinTo(1);  // The child inherits it.
  const auto child =
      supervisor.Start({.name = "nginx",
                        .argv = {*nginx, "-p", scratch->path(), "-c",
                                 scratch->Path("nginx.conf")},
                        .log = scratch->Path("nginx.log")});
  PinTo(0);
  if (!child) return Fail(child.error().message);
  const HostPort target{.host = "127.0.0.1", .port = *port};
  while (TryConnect(target, seconds(1))) {
    const auto event = supervisor.Wait(milliseconds(50));
    if (event.kind != Supervisor::Event::Kind::kTimeout) {
      return Fail(supervisor.Obituary(event));
    }
  }

  std::vector<double> rates;
  for (int i = 0; i < runs; ++i) {
    rates.push_back(Measure(target));
    fmt::print(stderr, "run {}: {:.0f} requests/s\n", i + 1, rates.back());
  }
  std::sort(rates.begin(), rates.end());
  fmt::print(
      "{{\"name\": \"storm\", \"results\": [{{\"metric\": "
      "\"storm_requests_per_second\", \"value\": {:.0f}, \"unit\": "
      "\"requests/s\", \"runs\": {}, \"min\": {:.0f}, \"max\": {:.0f}}}]}}\n",
      rates[rates.size() / 2], runs, rates.front(), rates.back());
  return 0;
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 5;
  if (runs < 1) return weir::cli::Fail("usage: storm_bench RUNS, at least 1");
  return weir::cli::Run(runs);
}
