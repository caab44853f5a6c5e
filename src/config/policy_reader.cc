#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foreign_words.h"
#include "policy_stages.h"
#include "weir/config/policy.h"
#include "weir/config/units.h"

namespace weir::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr Duration kShortestBudget = milliseconds(1);
constexpr Duration kLongestBudget = hours(1);
constexpr int32_t kLargestLimit = 1'000'000;

// Where the deadline and the criticality are read when the policy says nothing.
// Source: Envoy's route timeout, gRPC over HTTP/2 and W3C Baggage.
using Texts = std::vector<std::string_view>;
const Texts kDeadlineFrom = {"header:x-envoy-expected-rq-timeout-ms",
                             "header:grpc-timeout"};
const Texts kCriticalityFrom = {"baggage:criticality",
                                "header:weir-criticality"};

constexpr std::string_view kResourceShape =
    "1 to 47 characters of A-Z, a-z, 0-9, '.', '_', '/' and '-'";

// How a list and one of its items are called.
struct ListShape {
  std::string_view list, item;
};
constexpr ListShape kSources = {
    "a list of sources",
    "\"header:NAME\", \"baggage:KEY\" or \"variable:NAME\""};
constexpr ListShape kNetworks = {"a list of networks",
                                 "a network such as \"10.0.0.0/8\" or \"::1\""};

// A name may be checked by Policy::Check() alone: the smallest policy with it.
bool IsLegal(const std::string& service, const std::string& resource) {
  Policy policy;
  policy.service = service;
  policy.resources.resize(1);
  policy.resources[0].name = resource;
  return !policy.Check();
}

// Present, but not what it should be: there is a complaint already.
template <typename T>
bool IsWrong(const Value& value, const Field<T>& field) {
  return value.present() && !field.given;
}

std::string Quoted(Duration duration) {
  return '"' + FormatDuration(duration) + '"';
}

std::string WrittenList(const Texts& items) {
  std::string out;
  for (const std::string_view item : items) {
    out += out.empty() ? "[" : ", ";
    out += '"' + std::string(item) + '"';
  }
  return out.empty() ? "[]" : out + ']';
}

// A list of texts, each of which `parse` makes an item of.
template <typename T>
std::vector<T> ReadList(const Value& value, std::string_view about,
                        const ListShape& shape, const Texts& fallback,
                        Result<T> (*parse)(std::string_view),
                        std::string (*suggest)(std::string_view)) {
  std::vector<T> out;
  if (!value.present()) {
    for (const std::string_view text : fallback) {
      out.push_back(parse(text).value());
    }
  }
  const auto problem = [parse](std::string_view text) {
    const Result<T> item = parse(text);
    return item ? std::string() : item.error().message;
  };
  for (const Value& item :
       value.ReadArray(about, shape.list, WrittenList(fallback))) {
    const auto text = item.ReadText({.about = about,
                                     .shape = shape.item,
                                     .problem = problem,
                                     .suggest = suggest});
    if (text.given) out.push_back(parse(text.value).value());
  }
  return out;
}

std::vector<Source> ReadSources(const Value& value, std::string_view about,
                                const Texts& fallback) {
  return ReadList<Source>(value, about, kSources, fallback, ParseSource,
                          NearestSource);
}

void ReadDeadline(const Section& root, Policy& policy) {
  const Section section = root["deadline"].ReadTable("how long callers wait");
  const Value fallback_value = section["default"];
  const auto fallback = fallback_value.ReadDuration(
      {.about = "the time budget of a request that brings none",
       .floor = kShortestBudget,
       .ceiling = kLongestBudget,
       .fallback = policy.deadline});
  const Value ceiling_value = section["ceiling"];
  const auto ceiling = ceiling_value.ReadDuration(
      {.about = "the longest time budget that is believed",
       .floor = kShortestBudget,
       .ceiling = kLongestBudget,
       .fallback = policy.deadline_ceiling});
  policy.deadline_from =
      ReadSources(section["from"],
                  "where the time budget of a request is read; the first that "
                  "is present and legal wins",
                  kDeadlineFrom);
  policy.deadline = fallback.value;
  // A wrong ceiling is one complaint, and none about what it bounds.
  policy.deadline_ceiling =
      IsWrong(ceiling_value, ceiling) ? kLongestBudget : ceiling.value;
  if (fallback.value <= ceiling.value || IsWrong(fallback_value, fallback) ||
      IsWrong(ceiling_value, ceiling)) {
    return;
  }
  constexpr std::string_view kWhy =
      "no budget is longer than the ceiling, and the default is a budget";
  if (fallback.given) {
    fallback_value.Complain(
        "`deadline.default` is above `deadline.ceiling`", std::string(kWhy),
        "lower `default` to " + Quoted(ceiling.value) +
            " or less, or raise `ceiling`",
        ceiling.given
            ? std::optional(Note{ceiling.place, "the ceiling is set here"})
            : std::nullopt);
  } else {
    ceiling_value.Complain(
        "`deadline.ceiling` is below the default budget, " +
            Quoted(fallback.value),
        std::string(kWhy),
        "set `default` to " + Quoted(ceiling.value) + " or less as well");
  }
}

void ReadAnswer(const Section& root, Policy& policy) {
  const Section section =
      root["answer"].ReadTable("what a refused caller gets");
  policy.shed_status = static_cast<int32_t>(
      section["status"]
          .ReadOneOf({.about = "the HTTP status of a refusal",
                      .values = {503, 429},
                      .fallback = policy.shed_status})
          .value);
  policy.try_elsewhere =
      section["elsewhere"]
          .ReadBoolean({.about = "whether a caller that finds no room here may "
                                 "find some at another replica",
                        .fallback = policy.try_elsewhere})
          .value;
}

void ReadLimit(const Section& root, Policy& policy) {
  const Section section =
      root["limit"].ReadTable("how much work may run at once");
  const auto workers = section["workers"].ReadInteger(
      {.about = "the number of requests that the service behind can "
                "work on at once",
       .floor = 1,
       .ceiling = kLargestLimit,
       .absent = "the limit is learned"});
  policy.workers = static_cast<int32_t>(workers.value);
  const Value floor_value = section["floor"];
  const auto floor =
      floor_value.ReadInteger({.about = "the smallest limit that is ever set",
                               .floor = 1,
                               .ceiling = kLargestLimit,
                               .fallback = policy.limit_floor});
  const auto ceiling = section["ceiling"].ReadInteger(
      {.about = "the largest limit that is ever set",
       .floor = 1,
       .ceiling = kLargestLimit,
       .fallback = policy.limit_ceiling});
  policy.limit_floor = static_cast<int32_t>(floor.value);
  policy.limit_ceiling = static_cast<int32_t>(ceiling.value);
  if (floor.given && ceiling.given && floor.value > ceiling.value) {
    floor_value.Complain(
        "`limit.floor` is above `limit.ceiling`",
        "every limit lies between its floor and its ceiling; here none can",
        "lower `floor` to " + std::to_string(ceiling.value) + " or less" +
            floor_value.OrRemove("1"),
        Note{ceiling.place, "the ceiling is set here"});
  } else if (floor.given && workers.given && floor.value > workers.value) {
    floor_value.Complain(
        "`limit.floor` is above `limit.workers`",
        "what runs beyond the workers only waits inside the service, where "
        "nobody can take it back; the floor would let it in even so",
        "lower `floor` to " + std::to_string(workers.value) + " or less" +
            floor_value.OrRemove("1"),
        Note{workers.place, "the workers are set here"});
  }
}

const std::vector<std::pair<std::string_view, StageMode>>& ModeWords() {
  static const std::vector<std::pair<std::string_view, StageMode>> kWords = {
      {Name(StageMode::kEnforce), StageMode::kEnforce},
      {Name(StageMode::kShadow), StageMode::kShadow},
      {Name(StageMode::kOff), StageMode::kOff}};
  return kWords;
}

// What each stage does, to go on after "whether".
constexpr std::array<std::string_view, kStages> kStageDoes = {
    "exempt resources pass every stage",
    "paused resources are refused",
    "requests that cannot finish in time are refused",
    "requests of links that are too far behind are refused",
    "requests beyond the quota of their resource are refused",
    "a share of the requests is refused in each tier of the rate",
    "requests are refused when the system rule says so",
    "the least important requests are refused when demand exceeds capacity",
    "requests wait or are refused when there is no room to run"};

StageModes ReadStages(const Value& value, const StageModes& fallback,
                      bool of_resource) {
  const Section section = value.ReadTable("which stages act");
  StageModes modes = fallback;
  for (size_t i = 0; i < kStages; ++i) {
    Choice<StageMode> choice;
    const std::string about = of_resource
                                  ? "whether this stage acts on this resource"
                                  : "whether " + std::string(kStageDoes[i]);
    choice.about = about;
    choice.words = ModeWords();
    if (of_resource) {
      choice.absent = "as in `[stages]`";
    } else {
      choice.fallback = fallback[i];
    }
    const auto mode = section[Name(static_cast<Stage>(i))].ReadChoice(choice);
    if (mode.given) modes[i] = mode.value;
  }
  return modes;
}

void ReadClientQuota(const Section& root, Policy& policy) {
  const Value value = root["client_quota"];
  const Section section = value.ReadTable("how much each client may ask for");
  ClientQuotas::Config quota;
  const auto calls = section["calls"].ReadInteger(
      {.about = "how many requests of one client may start in a window",
       .floor = 1,
       .ceiling = ClientQuotas::kMostCalls,
       .required = section.present(),
       .example = "600",
       .absent = "there is no quota of clients"});
  const auto window =
      section["window"].ReadDuration({.about = "how long a window is",
                                      .floor = ClientQuotas::kShortestWindow,
                                      .ceiling = ClientQuotas::kLongestWindow,
                                      .fallback = quota.window});
  if (!calls.given) return;
  quota.calls = calls.value;
  quota.window = window.value;
  policy.client_quota = quota;
  if (policy.client_from.empty()) {
    value.Complain("`client_quota` has no clients to tell apart",
                   "a request whose client is not known has no quota",
                   "set `client.from` as well, for example to "
                   "[\"variable:remote_addr\"]");
  }
}

std::vector<DegradeLevel> ReadDegrade(const Value& value) {
  std::vector<DegradeLevel> out;
  double before = 1;
  for (const Section& section : value.ReadTables(
           "the cheaper ways to answer, the first to be taken first", "name")) {
    DegradeLevel level;
    level.name = section["name"]
                     .ReadText({.about = "what this level is called",
                                .shape = kResourceShape,
                                .accepts =
                                    [](std::string_view text) {
                                      return IsLegal("x", std::string(text));
                                    },
                                .required = true,
                                .example = "\"no-recommendations\""})
                     .value;
    const Value excess_value = section["excess"];
    const auto excess = excess_value.ReadNumber(
        {.about = "the demand, as a multiple of capacity, from which on it is "
                  "taken",
         .floor = 1,
         .ceiling = 100,
         .fallback = level.excess});
    level.excess = excess.value;
    if (level.excess < before && !IsWrong(excess_value, excess)) {
      section.Complain("`" + section.path() +
                           "` asks for less excess than the level before it",
                       "levels are taken one after the other, each when demand "
                       "exceeds capacity further",
                       "give it an `excess` of " + FormatNumber(before) +
                           " or more, or let the two change places");
    }
    before = std::max(before, level.excess);
    if (out.size() == DegradeLadder::kMaxLevels) {
      section.Complain("`" + section.path() + "` is past the most levels, " +
                           std::to_string(DegradeLadder::kMaxLevels),
                       "an operator who needs more cannot tell them apart",
                       "let levels that belong together be one");
      break;
    }
    out.push_back(std::move(level));
  }
  return out;
}

Resource ReadResource(const Section& section, std::string name,
                      const StageModes& modes, const Policy& policy) {
  Resource out;
  out.name = std::move(name);
  out.criticality =
      section["criticality"]
          .ReadChoice<Criticality>(
              {.about = "the criticality of a request that brings none",
               .words = {{"vital", Criticality::kVital},
                         {"important", Criticality::kImportant},
                         {"deferrable", Criticality::kDeferrable},
                         {"sheddable", Criticality::kSheddable}},
               .fallback = out.criticality})
          .value;
  const Value deadline_value = section["deadline"];
  const auto deadline = deadline_value.ReadDuration(
      {.about =
           "the time budget of a request of this resource that brings none",
       .floor = kShortestBudget,
       .ceiling = kLongestBudget,
       .absent = "`deadline.default`"});
  if (deadline.given) out.deadline = deadline.value;
  if (deadline.given && deadline.value > policy.deadline_ceiling) {
    deadline_value.Complain(
        "`" + deadline_value.path() + "` is above `deadline.ceiling`, " +
            Quoted(policy.deadline_ceiling),
        "no budget is longer than the ceiling, whoever asks for it",
        "lower it to " + Quoted(policy.deadline_ceiling) +
            " or less, or raise `deadline.ceiling`");
  }
  const auto flag = [&](std::string_view key, std::string_view about) {
    return section[key].ReadBoolean({.about = about, .fallback = false});
  };
  const auto exempt = flag("exempt",
                           "whether it passes every stage, as health "
                           "checks should");
  const auto paused = flag("paused", "whether all of it is refused");
  out.stream = flag("stream",
                    "whether its answers are streams, whose length says "
                    "nothing about the service")
                   .value;
  out.exempt = exempt.value;
  out.paused = paused.value;
  ReadResourceStages(section, out);
  out.degrade = ReadDegrade(section["degrade"]);
  out.stages = ReadStages(section["stages"], modes, true);
  if (out.exempt && out.paused &&
      out.stages[Index(Stage::kExempt)] == StageMode::kEnforce) {
    section["paused"].Complain(
        "`" + section.path() + "` is paused, but exempt",
        "what is exempt passes every stage, also the one that refuses what is "
        "paused",
        "remove one of them", Note{exempt.place, "it is made exempt here"});
  }
  return out;
}

void ReadResources(const Section& root, const StageModes& modes, Policy& policy,
                   Document& document) {
  const Value value = root["resource"];
  const Section section = value.ReadTable("the kinds of work to tell apart");
  const auto members = section.Members();
  if (members.empty() && (section.present() || !value.present())) {
    document.ComplainOfAbsence(
        section.place(), "there is no resource",
        "a request is decided by its resource; without one weir guards nothing",
        "add `[resource.NAME]`, where NAME is what the adapter calls the work");
  }
  for (const auto& [name, member] : members) {
    if (!IsLegal("x", name)) {
      document.Complain({member.key_place(), "this is no name of a resource",
                         std::nullopt,
                         "the name stands in metrics and configurations: " +
                             std::string(kResourceShape),
                         "shorten or rename it"});
    }
    if (policy.resources.size() == kMaxResources) {
      document.Complain({member.key_place(),
                         "there are " + std::to_string(members.size()) +
                             " resources, and this one is past the most, " +
                             std::to_string(kMaxResources),
                         std::nullopt,
                         "each resource has a fixed place in shared memory",
                         "let resources of one criticality share a name"});
      return;
    }
    const Section resource = member.ReadTable("a resource");
    policy.resources.push_back(ReadResource(resource, name, modes, policy));
  }
}

}  // namespace

Checked<Policy> ReadPolicy(Document& document) {
  Policy policy;
  document.AdviseBy(AdviseForeignWord);
  const Section root = document.root();
  policy.service =
      root["service"]
          .ReadText(
              {.about = "the name of what is guarded, in metrics and of its "
                        "shared memory",
               .shape = "a name of 1 to 47 characters of a-z, 0-9 and '-'",
               .accepts =
                   [](std::string_view text) {
                     return IsLegal(std::string(text), "x");
                   },
               .required = true,
               .example = "\"shop\""})
          .value;
  ReadDeadline(root, policy);
  policy.criticality_from = ReadSources(
      root["criticality"].ReadTable("how important requests are")["from"],
      "where the criticality of a request is read; the first that is present "
      "and legal wins",
      kCriticalityFrom);
  policy.client_from = ReadSources(
      root["client"].ReadTable("who asks")["from"],
      "what tells callers apart, so that no one of them takes all", {});
  ReadClientQuota(root, policy);
  policy.trusted = ReadList<Network>(
      root["trust"].ReadTable("whose word counts")["networks"],
      "the list of peers whose headers are believed", kNetworks, {},
      ParseNetwork, NearestNetwork);
  ReadLimit(root, policy);
  ReadAnswer(root, policy);
  ReadServiceStages(root, policy);
  const StageModes modes = ReadStages(root["stages"], StageModes{}, false);
  ReadResources(root, modes, policy, document);
  const Complaints& complaints = document.Finish();
  if (!complaints.empty()) return complaints;
  return policy;
}

Checked<Policy> ParsePolicy(std::string text, std::string name) {
  Document document = Document::Parse(std::move(text), std::move(name));
  return ReadPolicy(document);
}

Checked<Policy> LoadPolicy(const std::string& path) {
  Document document = Document::Load(path);
  return ReadPolicy(document);
}

}  // namespace weir::config
