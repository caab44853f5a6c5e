#include "weir/scenario/read.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "read_parts.h"
#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/report.h"

namespace weir::scenario {
namespace {

using config::Document;
using config::Section;
using config::Value;
using std::chrono::milliseconds;

// Shares are written with a few digits: 0.333 three times is not enough, but
// 0.3333333 is.
constexpr double kShareError = 1e-6;

config::Choice<Criticality> ClassChoice(std::string_view about) {
  config::Choice<Criticality> choice{.about = about, .required = true};
  for (size_t i = 0; i < kCriticalities; ++i) {
    const auto criticality = static_cast<Criticality>(i);
    choice.words.emplace_back(Name(criticality), criticality);
  }
  return choice;
}

config::Rule<Duration> BudgetRule(std::string_view about, Duration fallback) {
  return {.about = about,
          .ceiling = std::chrono::hours(1),
          .above_floor = true,
          .fallback = fallback};
}

std::vector<Class> ReadClasses(const Section& root, Duration deadline) {
  std::vector<Class> classes;
  std::vector<double> shares;
  std::vector<std::pair<std::string, config::Place>> seen;
  const Value value = root["classes"];
  for (const Section& section :
       value.ReadTables("how critical the requests are, and how many of each; "
                        "all are \"important\" when absent")) {
    Class cls;
    const auto name =
        section["name"].ReadChoice(ClassChoice("the criticality"));
    if (name.given) {
      CheckUnique(section["name"], std::string(Name(name.value)), seen);
    }
    cls.criticality = name.value;
    cls.share = section["share"]
                    .ReadNumber({.about = "the share of the requests",
                                 .floor = 0,
                                 .ceiling = 1,
                                 .required = true,
                                 .example = "0.25"})
                    .value;
    cls.deadline =
        section["deadline"]
            .ReadDuration(BudgetRule("the time budget of this class", deadline))
            .value;
    shares.push_back(cls.share);
    classes.push_back(cls);
  }
  if (!classes.empty()) CheckShares(value, "share", shares);
  std::stable_sort(classes.begin(), classes.end(),
                   [](const Class& a, const Class& b) {
                     return a.criticality < b.criticality;
                   });
  if (classes.empty()) classes = {{.deadline = deadline}};
  return classes;
}

std::vector<Route> ReadRoutes(const Section& root) {
  std::vector<Route> routes;
  std::vector<double> shares;
  std::vector<std::pair<std::string, config::Place>> seen;
  const Value value = root["routes"];
  for (const Section& section : value.ReadTables(
           "kinds of requests, and how many of each; all are \"/\" when "
           "absent")) {
    Route route;
    const auto name = section["name"].ReadText(
        {.about = "the path that is asked for",
         .shape = "a path of A-Z, a-z, 0-9, '.', '_', '-' and '/' that begins "
                  "with '/'",
         .accepts =
             [](std::string_view text) {
               return !text.empty() && text[0] == '/' &&
                      text.find_first_not_of(
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                          "0123456789._-/") == std::string_view::npos;
             },
         .required = true,
         .example = "\"/search\""});
    if (name.given) CheckUnique(section["name"], name.value, seen);
    route.name = name.value;
    route.share = section["share"]
                      .ReadNumber({.about = "the share of the requests",
                                   .floor = 0,
                                   .ceiling = 1,
                                   .required = true,
                                   .example = "0.25"})
                      .value;
    shares.push_back(route.share);
    routes.push_back(route);
  }
  if (!routes.empty()) CheckShares(value, "share", shares);
  if (routes.empty()) routes = {{}};
  return routes;
}

// What hogs and closed clients have in common: their class, and when.
template <typename Who>
void ReadWho(const Section& section, std::string_view called,
             const std::vector<Class>& classes, Who& who) {
  const Value cls = section["class"];
  auto choice = ClassChoice("how critical their requests are");
  choice.required = false;
  choice.absent = "the first class";
  const auto criticality = cls.ReadChoice(choice);
  if (criticality.given) {
    const auto found = std::find_if(
        classes.begin(), classes.end(),
        [&](const Class& c) { return c.criticality == criticality.value; });
    if (found != classes.end()) {
      who.cls = static_cast<size_t>(found - classes.begin());
    } else {
      cls.Complain(
          "no class of that name is declared",
          std::string(called) + " are of one of the scenario's classes",
          "add it to `classes`, with a share of 0 if nobody else is");
    }
  }
  who.from = section["from"]
                 .ReadDuration(TimeRule("when they begin", Duration{}))
                 .value;
  const auto until = section["until"].ReadDuration(
      {.about = "when they stop", .ceiling = kLongest, .absent = "the end"});
  if (until.given) who.until = until.value;
  if (until.given && until.value <= who.from) {
    section["until"].Complain(
        "`until` is not after `from`", "these clients would never ask",
        "raise `until` above " + config::FormatDuration(who.from));
  }
}

ClosedClients ReadClosed(const Section& section,
                         const std::vector<Class>& classes) {
  ClosedClients closed;
  closed.count = static_cast<int32_t>(
      section["count"]
          .ReadInteger({.about = "how many clients there are of this kind",
                        .floor = 1,
                        .ceiling = 1'000'000,
                        .required = true,
                        .example = "50"})
          .value);
  closed.think = section["think"]
                     .ReadDuration({.about = "from an answer, or giving up, "
                                             "to the next request",
                                    .ceiling = kLongest,
                                    .above_floor = true,
                                    .required = true,
                                    .example = "\"1s\""})
                     .value;
  enum class Shape { kExponential, kConstant };
  closed.exponential =
      section["distribution"]
          .ReadChoice<Shape>({.about = "how long they think, with that mean",
                              .words = {{"exponential", Shape::kExponential},
                                        {"constant", Shape::kConstant}},
                              .fallback = Shape::kExponential})
          .value == Shape::kExponential;
  ReadWho(section, "closed clients", classes, closed);
  return closed;
}

Hog ReadHog(const Section& section, const std::vector<Class>& classes,
            double capacity) {
  Hog hog;
  hog.count = static_cast<int32_t>(
      section["count"]
          .ReadInteger({.about = "how many clients share the load",
                        .floor = 1,
                        .ceiling = 100'000,
                        .fallback = 1})
          .value);
  const Load load =
      ReadLoad(section, "load", "rate", "what they ask for together", capacity);
  hog.load = load.value;
  if (!section["load"].present() && !section["rate"].present()) {
    section.Complain("hogs without a load", "they ask on top of the phases",
                     "add `load = 5`, or `rate = \"5000/s\"`");
  }
  ReadWho(section, "hogs", classes, hog);
  return hog;
}

Clients ReadClients(const Section& root, const std::vector<Class>& classes,
                    double capacity) {
  const Section section = root["clients"].ReadTable("who asks");
  Clients clients;
  clients.count = static_cast<int32_t>(
      section["count"]
          .ReadInteger({.about = "how many clients there are",
                        .floor = 1,
                        .ceiling = 1'000'000,
                        .fallback = clients.count})
          .value);
  clients.zipf =
      section["zipf"]
          .ReadNumber({.about = "how unequal they are: client k asks in "
                                "proportion to 1 / k^zipf",
                       .floor = 0,
                       .ceiling = 3,
                       .fallback = 0})
          .value;
  clients.cooperative_ratio =
      section["cooperative_ratio"]
          .ReadNumber(
              RatioRule("the share of clients that obey Retry-After", 0))
          .value;
  for (const Section& hog : section["hogs"].ReadTables(
           "clients that ask on top of the phases' load")) {
    clients.hogs.push_back(ReadHog(hog, classes, capacity));
  }
  for (const Section& closed : section["closed"].ReadTables(
           "clients that wait for an answer, think, and ask again")) {
    clients.closed.push_back(ReadClosed(closed, classes));
  }
  return clients;
}

// The lengths of time that a caller waits, which depend on each other.
void ReadPatience(const Section& root, Scenario& scenario) {
  const Value timeout = root["timeout"];
  const auto given = timeout.ReadDuration(
      {.about = "when a caller gives up on an attempt and closes",
       .ceiling = std::chrono::hours(1),
       .above_floor = true,
       .absent = "the longest deadline"});
  Duration longest = scenario.deadline;
  for (const Class& cls : scenario.classes) {
    longest = std::max(longest, cls.deadline);
  }
  scenario.timeout = given.given ? given.value : longest;
  if (given.given && given.value < longest) {
    timeout.Complain("`timeout` is below a deadline",
                     "a caller that has gone gets no answer in time",
                     "raise it to " + config::FormatDuration(longest));
  }
  const auto patience = root["patience"].ReadDuration(
      {.about = "no retry starts later than this after the first attempt",
       .ceiling = kLongest,
       .absent = "as long as there are retries"});
  if (patience.given) scenario.patience = patience.value;
}

// Where the guard sits, and how long that which it sits in waits.
void ReadSeat(const Section& root, Scenario& scenario) {
  scenario.seat =
      root["seat"]
          .ReadChoice<Seat>(
              {.about = "where the guard of the first service sits: a proxy "
                        "frees the place of a caller that leaves, while the "
                        "service works on",
               .words = {{"service", Seat::kService}, {"proxy", Seat::kProxy}},
               .fallback = Seat::kService})
          .value;
  const auto timeout = root["proxy_timeout"].ReadDuration(
      {.about = "how long after it let a request go on the proxy answers with "
                "an error; the service works on",
       .ceiling = kLongest,
       .above_floor = true,
       .absent = "it waits as long as the caller"});
  root.OnlyWhen("proxy_timeout", scenario.seat == Seat::kProxy,
                "`seat` is \"proxy\"");
  if (timeout.given) scenario.proxy_timeout = timeout.value;
}

Scenario ReadScenario(const Section& root) {
  Scenario scenario;
  scenario.name =
      root["name"]
          .ReadText({.about = "what reports call it",
                     .shape = "1 to 64 characters",
                     .accepts =
                         [](std::string_view text) {
                           return !text.empty() && text.size() <= 64;
                         },
                     .required = true,
                     .example = "\"first-light\""})
          .value;
  scenario.description =
      root["description"]
          .ReadText({.about = "what it is for", .fallback = ""})
          .value;
  scenario.seed = static_cast<uint64_t>(
      root["seed"]
          .ReadInteger({.about = "the seed of all that is random",
                        .floor = 0,
                        .fallback = 1})
          .value);
  scenario.arrivals =
      root["arrivals"]
          .ReadChoice<Spacing>({.about = "how requests follow each other",
                                .words = {{"poisson", Spacing::kPoisson},
                                          {"constant", Spacing::kConstant}},
                                .fallback = Spacing::kPoisson})
          .value;
  scenario.deadline =
      root["deadline"]
          .ReadDuration(
              BudgetRule("within which an answer is useful", scenario.deadline))
          .value;
  scenario.classes = ReadClasses(root, scenario.deadline);
  ReadPatience(root, scenario);
  ReadSeat(root, scenario);
  scenario.routes = ReadRoutes(root);
  scenario.tiers = ReadTiers(root, scenario.routes);
  const double capacity = CapacityAt(scenario, Duration{});
  scenario.phases =
      ReadPhases(root, scenario.classes, scenario.routes, capacity);
  scenario.clients = ReadClients(root, scenario.classes, capacity);
  scenario.retries = ReadRetries(root);
  scenario.hedging.after =
      root["hedging"]
          .ReadTable(
              "a second attempt while the first one is not answered")["after"]
          .ReadDuration({.about = "how long the first one may take",
                         .ceiling = kLongest,
                         .absent = "no second attempt"})
          .value;
  scenario.callers = ReadCallers(root, scenario);
  scenario.bounds = ReadBounds(root, scenario);
  const bool queues = std::any_of(
      scenario.tiers.begin(), scenario.tiers.end(), [](const Tier& tier) {
        return std::any_of(
            tier.stages.begin(), tier.stages.end(),
            [](const Stage& stage) { return stage.kind != Stage::Kind::kIo; });
      });
  if (!queues) {
    root.Complain("this service has no capacity to speak of",
                  "loads are multiples of it, and no stage of it queues",
                  "add a stage of kind \"cpu\", \"lock\" or \"pool\"");
  }
  return scenario;
}

config::Checked<Scenario> Read(Document document) {
  Scenario scenario = ReadScenario(document.root());
  const config::Complaints& complaints = document.Finish();
  if (!complaints.empty()) return complaints;
  return scenario;
}

}  // namespace

void CheckUnique(const Value& value, const std::string& name,
                 std::vector<std::pair<std::string, config::Place>>& seen) {
  for (const auto& [other, place] : seen) {
    if (other != name) continue;
    value.Complain("\"" + name + "\" is used twice",
                   "reports and messages tell them apart by it",
                   "give one of them another name",
                   config::Note{place, "the other one is here"});
    return;
  }
  seen.emplace_back(name, value.place());
}

void CheckShares(const Value& list, std::string_view key,
                 const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.);
  if (std::abs(sum - 1) <= kShareError) return;
  list.Complain("the shares sum to " +
                    config::FormatNumber(std::round(sum * 1e6) / 1e6) +
                    ", not to 1",
                "every request is of one of them",
                "change a `" + std::string(key) + "` by " +
                    config::FormatNumber(std::round((1 - sum) * 1e6) / 1e6));
}

config::Checked<Scenario> ParseScenario(std::string text, std::string name) {
  return Read(Document::Parse(std::move(text), std::move(name)));
}

config::Checked<Scenario> LoadScenario(const std::string& path) {
  return Read(Document::Load(path));
}

std::vector<config::Row> ScenarioRows() {
  // One of everything that is only read when it is there.
  Document document = Document::Parse(
      "[[phases]]\n[[classes]]\n[[routes]]\n[[clients.hogs]]\n"
      "[[clients.closed]]\n"
      "[[tiers]]\n[[tiers.stages]]\n[[tiers.changes]]\n[[tiers.pauses]]\n"
      "[[tiers.failures]]\n[[tiers.calls]]\n[expect]\ngoodput_ratio = { min = "
      "0 }\n",
      "reference");
  ReadScenario(document.root());
  return document.Rows();
}

}  // namespace weir::scenario
