// How a command joins the program.
//
// Each command has a source file of its own, cli/NAME.cc, and one function that
// adds it to the app.  The command's callback leaves what is to be done in
// `action`; main() does it once all options have been read and checked:
//
//   struct Options { std::string target; };
//   int RunStorm(const Options& options);       // Returns an ExitStatus.
//
//   void AddStormCommand(CLI::App& app, Action& action) {
//     auto options = std::make_shared<Options>();
//     CLI::App* command = app.add_subcommand("storm", "Offer a load");
//     command->add_option("--target", options->target, "Where to");
//     command->callback([&action, options] {
//       action = [options] { return RunStorm(*options); };
//     });
//   }
//
// To add one: declare it here, call it in main.cc, name it in CMakeLists.txt.

#ifndef WEIR_CLI_COMMAND_H_
#define WEIR_CLI_COMMAND_H_

#include <functional>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

enum ExitStatus : int {
  kFine = 0,
  kCouldNotRun = 1,  // A port in use, a missing program, a child that died.
  kWrongInput = 2,   // A bad option, policy or scenario: nothing was started.
};

using Action = std::function<int()>;

// Prints "weir: MESSAGE" to the standard error and returns `status`.
int Fail(ExitStatus status, std::string_view message);

void AddBackendCommand(CLI::App& app, Action& action);
void AddCheckCommand(CLI::App& app, Action& action);
void AddDrillCommand(CLI::App& app, Action& action);
void AddExplainCommand(CLI::App& app, Action& action);
void AddHostCommand(CLI::App& app, Action& action);
void AddHuntCommand(CLI::App& app, Action& action);
void AddPlanCommand(CLI::App& app, Action& action);
void AddReplayCommand(CLI::App& app, Action& action);
void AddSegmentCommand(CLI::App& app, Action& action);
void AddSimCommand(CLI::App& app, Action& action);
void AddStormCommand(CLI::App& app, Action& action);
void AddSwitchCommand(CLI::App& app, Action& action);
void AddTopCommand(CLI::App& app, Action& action);
void AddUpCommand(CLI::App& app, Action& action);
void AddVerifyCommand(CLI::App& app, Action& action);

}  // namespace weir::cli

#endif  // WEIR_CLI_COMMAND_H_
