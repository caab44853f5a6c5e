// weir segment: the segments of shared memory that services left or use.

#include "segment.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "command.h"
#include "weir/shm/segment.h"

namespace weir::cli {
namespace {

struct Options {
  std::string service;
  bool force = false;
  bool json = false;
};

std::string_view StateOf(const shm::SegmentInfo& segment) {
  if (!segment.problem.empty()) return segment.problem;
  return segment.workers > 0 ? "used" : "no workers";
}

std::string ToJson(const std::vector<shm::SegmentInfo>& segments) {
  auto list = nlohmann::ordered_json::array();
  for (const shm::SegmentInfo& segment : segments) {
    list.push_back({{"service", segment.service},
                    {"workers", segment.workers},
                    {"uid", segment.owner},
                    {"bytes", segment.size},
                    {"problem", segment.problem}});
  }
  return list.dump() + '\n';
}

int List(const Options& options) {
  const auto segments = shm::ListSegments();
  if (!segments) return Fail(kCouldNotRun, segments.error().message);
  const std::string text = options.json        ? ToJson(*segments)
                           : segments->empty() ? "no segments\n"
                                               : SegmentTable(*segments);
  std::fputs(text.c_str(), stdout);
  return kFine;
}

int Remove(const Options& options) {
  if (auto wrong = shm::RemoveSegment(options.service, options.force)) {
    return Fail(kCouldNotRun, wrong->message);
  }
  return kFine;
}

}  // namespace

std::string SegmentTable(const std::vector<shm::SegmentInfo>& segments) {
  std::string text = fmt::format("{:<32} {:>8} {:>8} {:>9}  {}\n", "service",
                                 "workers", "uid", "bytes", "state");
  for (const shm::SegmentInfo& segment : segments) {
    text += fmt::format("{:<32} {:>8} {:>8} {:>9}  {}\n", segment.service,
                        segment.workers, segment.owner, segment.size,
                        StateOf(segment));
  }
  return text;
}

Result<std::string> OnlyService() {
  const auto segments = shm::ListSegments();
  if (!segments) return segments.error();
  std::vector<shm::SegmentInfo> usable;
  for (const shm::SegmentInfo& segment : *segments) {
    if (segment.problem.empty()) usable.push_back(segment);
  }
  if (usable.size() == 1) return usable.front().service;
  if (usable.empty()) {
    return Error{
        "error: no service of this user runs here\n"
        "  why: there is no segment that could be read; those of other users, "
        "and of other containers, are not seen\n"
        "  fix: start the service, or run this as its user or as root" +
        (segments->empty() ? "" : '\n' + SegmentTable(*segments))};
  }
  return Error{
      "error: which service?\n  why: there are several\n  fix: name one\n" +
      SegmentTable(*segments)};
}

void AddSegmentCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "segment", "List or remove the shared memory of services");
  command->require_subcommand(1);

  CLI::App* list = command->add_subcommand(
      "list", "Those of this user (root: of all), and who uses them");
  list->add_flag("--json", options->json, "An array of objects");
  list->callback(
      [&action, options] { action = [options] { return List(*options); }; });

  CLI::App* remove = command->add_subcommand(
      "remove", "Forget what a stopped service has learned");
  remove->add_option("service", options->service, "As in `weir segment list`")
      ->required();
  remove->add_flag("--force", options->force,
                   "Also while it is used: its workers keep theirs, new ones "
                   "share another");
  remove->callback(
      [&action, options] { action = [options] { return Remove(*options); }; });
}

}  // namespace weir::cli
