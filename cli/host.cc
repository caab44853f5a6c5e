// weir host: what the sensors of this machine say, or why they say nothing.

#include <CLI/CLI.hpp>
#include <iostream>

#include "command.h"
#include "weir/host/sampler.h"

namespace weir::cli {
namespace {

int RunHost() {
  host::DescribeHost(std::cout);
  return std::cout.flush() ? kFine : kCouldNotRun;
}

}  // namespace

void AddHostCommand(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "host",
      "Show what can be read of this machine: CPU, cgroup, load, pressure");
  command->callback([&action] { action = RunHost; });
}

}  // namespace weir::cli
