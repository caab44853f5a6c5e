// weir check: is this policy right, and what does it come to?

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "weir/config/policy.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> files;
  bool print = false;
  bool json = false;
};

config::Checked<Policy> Load(const std::string& path) {
  if (path != "-") return config::LoadPolicy(path);
  return config::ParsePolicy(
      std::string(std::istreambuf_iterator<char>(std::cin), {}), "<stdin>");
}

Json PlaceJson(const config::Place& place) {
  return {
      {"line", place.line}, {"column", place.column}, {"length", place.length}};
}

Json ComplaintJson(const config::Complaint& complaint) {
  Json json = PlaceJson(complaint.place);
  json["what"] = complaint.what;
  json["why"] = complaint.why;
  json["fix"] = complaint.fix;
  if (complaint.note) {
    Json note = PlaceJson(complaint.note->place);
    note["what"] = complaint.note->what;
    json["note"] = std::move(note);
  }
  return json;
}

Json FileJson(const std::string& path, const config::Checked<Policy>& policy) {
  Json json = {{"file", path}, {"fine", policy.ok()}};
  if (policy) {
    json["service"] = policy->service;
    json["resources"] = Json::array();
    for (const Resource& resource : policy->resources) {
      json["resources"].push_back(resource.name);
    }
  }
  json["complaints"] = Json::array();
  if (policy) return json;
  for (const config::Complaint& complaint : policy.complaints().list()) {
    json["complaints"].push_back(ComplaintJson(complaint));
  }
  return json;
}

// Complaints go to the standard error, as a compiler's do.
void Print(const std::string& path, const config::Checked<Policy>& policy,
           bool print) {
  if (!policy) {
    std::fputs(policy.complaints().Print().c_str(), stderr);
  } else if (print) {
    std::fputs(config::PrintPolicy(*policy).c_str(), stdout);
  } else {
    const size_t count = policy->resources.size();
    std::printf("%s: fine; service %s, %zu %s\n",
                path == "-" ? "<stdin>" : path.c_str(), policy->service.c_str(),
                count, count == 1 ? "resource" : "resources");
  }
}

int RunCheck(const Options& options) {
  bool fine = true;
  Json json = Json::array();
  for (const std::string& path : options.files) {
    const config::Checked<Policy> policy = Load(path);
    fine = policy.ok() && fine;
    if (options.json) {
      json.push_back(FileJson(path, policy));
    } else {
      Print(path, policy, options.print);
    }
  }
  // What a broken file says need not be UTF-8.
  if (options.json) {
    std::printf(
        "%s\n",
        json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return fine ? kFine : kWrongInput;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("check", "Find every mistake in policy files");
  command
      ->add_option("policy", options->files,
                   "Policy files; - is the standard input")
      ->required()
      ->type_name("FILE");
  CLI::Option* print =
      command->add_flag("--print", options->print,
                        "Print what a policy comes to, defaults filled in");
  command
      ->add_flag("--json", options->json,
                 "Print one JSON array: for each file whether it is fine, its "
                 "resources, and its complaints with line and column")
      ->excludes(print);
  command->callback([&action, options] {
    action = [options] { return RunCheck(*options); };
  });
}

}  // namespace weir::cli
