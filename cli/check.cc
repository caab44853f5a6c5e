// weir check: is this policy right, and what does it come to?

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "weir/config/policy.h"

namespace weir::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool print = false;
};

// Complaints go to the standard error, as a compiler's do.
bool CheckFile(const std::string& path, bool print) {
  const auto policy = config::LoadPolicy(path);
  if (!policy) {
    std::fputs(policy.complaints().Print().c_str(), stderr);
    return false;
  }
  if (print) {
    std::fputs(config::PrintPolicy(*policy).c_str(), stdout);
  } else {
    const size_t count = policy->resources.size();
    std::printf("%s: fine; service %s, %zu %s\n", path.c_str(),
                policy->service.c_str(), count,
                count == 1 ? "resource" : "resources");
  }
  return true;
}

int RunCheck(const Options& options) {
  bool fine = true;
  for (const std::string& path : options.files) {
    fine = CheckFile(path, options.print) && fine;
  }
  return fine ? kFine : kWrongInput;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("check", "Find every mistake in policy files");
  command->add_option("policy", options->files, "Policy files")->required();
  command->add_flag("--print", options->print,
                    "Print what a policy comes to, defaults filled in");
  command->callback([&action, options] {
    action = [options] { return RunCheck(*options); };
  });
}

}  // namespace weir::cli
