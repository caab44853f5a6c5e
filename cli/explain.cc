// weir explain: which stage would decide about a request, and why.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "explain_steps.h"
#include "weir/config/policy.h"
#include "weir/config/units.h"
#include "weir/http/request_inputs.h"
#include "weir/shm/segment.h"

namespace weir::cli {
namespace {

struct Options {
  std::string policy;
  std::string resource;
  std::string criticality;
  std::string client;
  std::string deadline;
  std::string behind;
  std::string region;
  bool live = false;
  bool json = false;
};

Instant Now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

// The request that the options describe, or what is wrong with them.
Result<Request> ReadRequest(const Options& options, const Policy& policy,
                            Instant now) {
  Request request;
  const auto index = policy.FindResource(options.resource);
  if (!index) {
    return Error{"the policy has no resource `" + options.resource + "`"};
  }
  const Resource& resource = policy.resources[*index];
  request.resource = *index;
  request.arrived = now;
  request.criticality = resource.criticality;
  if (!options.criticality.empty()) {
    const auto criticality = ParseCriticality(options.criticality);
    if (!criticality) {
      return Error{"--criticality " + options.criticality +
                   " is none of vital, important, deferrable and sheddable"};
    }
    request.criticality = *criticality;
  }
  request.client = http::HashClient(options.client);
  Duration budget = resource.deadline.value_or(policy.deadline);
  if (!options.deadline.empty()) {
    const auto given = config::ParseDuration(options.deadline);
    if (!given) return Error{"--deadline " + given.error().message};
    budget = std::min(*given, policy.deadline_ceiling);
  }
  request.deadline = now + budget;
  if (!options.behind.empty()) {
    const auto behind = config::ParseDuration(options.behind);
    if (!behind) return Error{"--behind " + behind.error().message};
    request.behind = *behind;
  }
  return request;
}

int RunExplain(const Options& options) {
  const auto policy = config::LoadPolicy(options.policy);
  if (!policy) {
    std::fputs(policy.complaints().Print("nothing was decided").c_str(),
               stderr);
    return kWrongInput;
  }
  const Instant now = Now();
  const auto request = ReadRequest(options, *policy, now);
  if (!request) return Fail(kWrongInput, request.error().message);
  std::optional<shm::ObservedRegion> observed;
  if (options.live || !options.region.empty()) {
    auto region = shm::ObservedRegion::Open(
        options.region.empty() ? policy->service : options.region);
    if (!region) return Fail(kCouldNotRun, region.error().message);
    observed.emplace(std::move(*region));
  }
  const Explanation explanation =
      Explain(*policy, *request, observed ? observed->get() : nullptr, now,
              std::chrono::system_clock::now());
  const std::string text = options.json ? RenderJson(*policy, explanation)
                                        : RenderText(*policy, explanation);
  std::fputs(text.c_str(), stdout);
  return kFine;
}

}  // namespace

void AddExplainCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "explain", "Tell which stage would decide about a request, and why");
  command->add_option("--policy", options->policy, "Policy file")->required();
  command->add_option("--resource", options->resource, "What it asks for")
      ->required();
  command->add_option("--criticality", options->criticality,
                      "Of the request; else the resource's");
  command->add_option("--client", options->client,
                      "Who asks, as `client.from` reads it");
  command->add_option("--deadline", options->deadline,
                      "Its time budget, \"200ms\"; else the policy's");
  command->add_option("--behind", options->behind,
                      "How far its link is behind, \"2s\"");
  command->add_flag("--live", options->live,
                    "With what the running service knows; only reads it");
  command->add_option("--region", options->region,
                      "The same from the region of this name");
  command->add_flag("--json", options->json, "One object");
  command->callback([&action, options] {
    action = [options] { return RunExplain(*options); };
  });
}

}  // namespace weir::cli
