#include "spelling.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "weir/config/nearest.h"

namespace weir::cli {
namespace {

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (const std::string& name : option->get_fnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

const CLI::App* Find(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string Unknown(std::string_view kind, const std::string& word,
                    const std::vector<std::string>& known,
                    const std::string& command) {
  const std::string_view nearest = config::Nearest(word, known);
  return fmt::format(
      "unknown {} `{}`{}\nsee: {} --help", kind, word,
      nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest),
      command);
}

}  // namespace

std::optional<std::string> FindUnknownWord(
    const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::vector<std::string> commands = CommandsOf(*command);
    if (commands.empty() || arguments[i].starts_with('-')) break;
    const CLI::App* found = Find(*command, arguments[i]);
    if (found == nullptr) {
      return Unknown("command", arguments[i], commands, path);
    }
    command = found;
    path += ' ' + arguments[i];
  }
  const std::vector<std::string> options = OptionsOf(*command);
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (!name.starts_with("--")) continue;
    if (std::find(options.begin(), options.end(), name) == options.end()) {
      return Unknown("option", name, options, path);
    }
  }
  return std::nullopt;
}

}  // namespace weir::cli
