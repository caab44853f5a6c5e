// weir: everything that a person types.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "help.h"
#include "spelling.h"
#include "terminal.h"
#include "version.h"

namespace weir::cli {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Overload control for services.", "weir");
  app.formatter(std::make_shared<HelpFormatter>(
      static_cast<size_t>(std::clamp(TerminalSize(stdout).columns, 30, 80))));
  app.set_version_flag("--version", kVersion, "Print version and commit");
  app.require_subcommand(1);
  app.fallthrough(false);
  app.failure_message([](const CLI::App* command, const CLI::Error& error) {
    // "weir: " and what to type to learn more, as Fail() would write it.
    return std::string("weir: ") + error.what() + "\nsee: " +
           (command->get_parent() != nullptr
                ? "weir " + command->get_name() + " --help\n"
                : "weir --help\n");
  });

  Action action;
  AddBackendCommand(app, action);
  AddCheckCommand(app, action);
  AddDrillCommand(app, action);
  AddExplainCommand(app, action);
  AddHostCommand(app, action);
  AddHuntCommand(app, action);
  AddPlanCommand(app, action);
  AddReplayCommand(app, action);
  AddSegmentCommand(app, action);
  AddSimCommand(app, action);
  AddStormCommand(app, action);
  AddSwitchCommand(app, action);
  AddTopCommand(app, action);
  AddUpCommand(app, action);
  AddVerifyCommand(app, action);

  if (const auto unknown = FindUnknownWord(
          app, std::vector<std::string>(argv + 1, argv + argc))) {
    return Fail(kWrongInput, *unknown);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version, which arrive here as well.
    return app.exit(error) == 0 ? kFine : kWrongInput;
  }
  return action ? action() : kFine;
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  try {
    return weir::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    return weir::cli::Fail(weir::cli::kCouldNotRun, error.what());
  }
}
