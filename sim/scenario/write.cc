#include "weir/scenario/write.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "weir/config/units.h"

namespace weir::scenario {
namespace {

using config::FormatDuration;
using config::FormatNumber;

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The keys of one table: `key = value` by `between`, without a name.
class Keys {
 public:
  void Raw(std::string_view key, const std::string& value) {
    keys_.push_back(std::string(key) + " = " + value);
  }
  void Text(std::string_view key, std::string_view text) {
    Raw(key, Quoted(text));
  }
  void Number(std::string_view key, double number) {
    Raw(key, FormatNumber(number));
  }
  void Time(std::string_view key, Duration time) {
    Raw(key, '"' + FormatDuration(time) + '"');
  }
  void Flag(std::string_view key, bool flag) {
    Raw(key, flag ? "true" : "false");
  }
  bool empty() const { return keys_.empty(); }
  std::string Join(std::string_view between) const {
    std::string out;
    for (const std::string& key : keys_) {
      if (!out.empty()) out += between;
      out += key;
    }
    return out;
  }
  std::string Inline() const { return "{ " + Join(", ") + " }"; }

 private:
  std::vector<std::string> keys_;
};

// A list of tables, one a line.
std::string List(const std::vector<std::string>& items) {
  std::string out = "[\n";
  for (const std::string& item : items) out += "  " + item + ",\n";
  return out + "]";
}

std::string Numbers(const std::vector<uint16_t>& numbers) {
  std::string out = "[";
  for (const uint16_t number : numbers) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(number);
  }
  return out + "]";
}

void AddSpan(const Span& span, Keys& keys) {
  using enum Span::Distribution;
  switch (span.distribution) {
    case kConstant:
      break;
    case kExponential:
      keys.Text("distribution", "exponential");
      break;
    case kLognormal:
      keys.Text("distribution", "lognormal");
      break;
    case kUniform:
      keys.Text("distribution", "uniform");
      break;
    case kBimodal:
      keys.Text("distribution", "bimodal");
      keys.Time("fast", span.fast);
      keys.Time("slow", span.slow);
      keys.Number("slow_ratio", span.slow_ratio);
      return;
  }
  keys.Time("time", span.mean);
  if (span.distribution == kLognormal) keys.Number("sigma", span.sigma);
}

class Writer {
 public:
  explicit Writer(const Scenario& scenario) : s_(scenario) {}

  std::string Write() const {
    std::string out = Head();
    const std::string clients = ClientKeys();
    if (!clients.empty()) out += "\n[clients]\n" + clients;
    const std::string retries = RetryKeys();
    if (!retries.empty()) out += "\n[retries]\n" + retries;
    if (s_.hedging.after > Duration{}) {
      Keys keys;
      keys.Time("after", s_.hedging.after);
      out += "\n[hedging]\n" + keys.Join("\n") + "\n";
    }
    const bool one = s_.tiers.size() == 1;
    for (const Tier& tier : s_.tiers) {
      out += one ? "\n[service]\n"
                 : "\n[[tiers]]\nname = " + Quoted(tier.name) + "\n";
      out += TierKeys(tier);
    }
    if (!s_.bounds.empty()) out += "\n[expect]\n" + BoundKeys();
    return out;
  }

 private:
  std::string Head() const {
    Keys keys;
    keys.Text("name", s_.name);
    if (!s_.description.empty()) keys.Text("description", s_.description);
    keys.Raw("seed", std::to_string(s_.seed));
    if (s_.arrivals == Spacing::kConstant) keys.Text("arrivals", "constant");
    keys.Time("deadline", s_.deadline);
    keys.Time("timeout", s_.timeout);
    if (s_.patience) keys.Time("patience", *s_.patience);
    if (s_.seat == Seat::kProxy) keys.Text("seat", "proxy");
    if (s_.proxy_timeout) keys.Time("proxy_timeout", *s_.proxy_timeout);
    std::vector<std::string> items;
    const bool classes = s_.classes.size() > 1 ||
                         s_.classes[0].criticality != Criticality::kImportant ||
                         s_.classes[0].deadline != s_.deadline;
    for (const Class& cls : s_.classes) {
      Keys item;
      item.Text("name", Name(cls.criticality));
      item.Number("share", cls.share);
      if (cls.deadline != s_.deadline) item.Time("deadline", cls.deadline);
      items.push_back(item.Inline());
    }
    if (classes) keys.Raw("classes", List(items));
    items.clear();
    for (const Route& route : s_.routes) {
      Keys item;
      item.Text("name", route.name);
      item.Number("share", route.share);
      items.push_back(item.Inline());
    }
    if (s_.routes.size() > 1 || s_.routes[0].name != "/") {
      keys.Raw("routes", List(items));
    }
    items.clear();
    for (const Phase& phase : s_.phases) items.push_back(PhaseItem(phase));
    keys.Raw("phases", List(items));
    return keys.Join("\n") + "\n";
  }

  std::string PhaseItem(const Phase& phase) const {
    Keys item;
    item.Text("name", phase.name);
    item.Time("duration", phase.duration);
    using enum Phase::Shape;
    switch (phase.shape) {
      case kConstant:
        break;
      case kRamp:
        item.Text("shape", "ramp");
        break;
      case kSquare:
        item.Text("shape", "square");
        break;
      case kBursts:
        item.Text("shape", "bursts");
        break;
    }
    if (phase.shares.empty()) {
      item.Number("load", phase.load);
    } else {
      Keys loads;
      for (size_t i = 0; i < phase.shares.size(); ++i) {
        loads.Number(Name(s_.classes[i].criticality),
                     phase.load * phase.shares[i]);
      }
      item.Raw("loads", loads.Inline());
    }
    if (phase.shape != kConstant) item.Number("to", phase.to);
    if (phase.shape == kSquare || phase.shape == kBursts) {
      item.Time("every", phase.every);
      item.Time("peak_for", phase.peak_for);
    }
    if (!phase.mix.empty()) {
      Keys mix;
      for (size_t i = 0; i < phase.mix.size(); ++i) {
        mix.Number(Quoted(s_.routes[i].name), phase.mix[i]);
      }
      item.Raw("mix", mix.Inline());
    }
    if (phase.of_current) item.Text("relative_to", "now");
    if (!phase.measured) item.Flag("measured", false);
    return item.Inline();
  }

  // What hogs and closed clients have in common.
  template <typename Who>
  void AddWho(const Who& who, Keys& item) const {
    item.Text("class", Name(s_.classes[who.cls].criticality));
    if (who.from > Duration{}) item.Time("from", who.from);
    if (who.until) item.Time("until", *who.until);
  }

  std::string ClientKeys() const {
    const Clients defaults;
    Keys keys;
    if (s_.clients.count != defaults.count) {
      keys.Raw("count", std::to_string(s_.clients.count));
    }
    if (s_.clients.zipf > 0) keys.Number("zipf", s_.clients.zipf);
    if (s_.clients.cooperative_ratio > 0) {
      keys.Number("cooperative_ratio", s_.clients.cooperative_ratio);
    }
    std::vector<std::string> items;
    for (const Hog& hog : s_.clients.hogs) {
      Keys item;
      item.Raw("count", std::to_string(hog.count));
      item.Number("load", hog.load);
      AddWho(hog, item);
      items.push_back(item.Inline());
    }
    if (!items.empty()) keys.Raw("hogs", List(items));
    items.clear();
    for (const ClosedClients& closed : s_.clients.closed) {
      Keys item;
      item.Raw("count", std::to_string(closed.count));
      item.Time("think", closed.think);
      if (!closed.exponential) item.Text("distribution", "constant");
      AddWho(closed, item);
      items.push_back(item.Inline());
    }
    if (!items.empty()) keys.Raw("closed", List(items));
    return keys.empty() ? "" : keys.Join("\n") + "\n";
  }

  std::string RetryKeys() const {
    const Retries& retries = s_.retries;
    if (retries.count == 0) return "";
    Keys keys;
    keys.Raw("count", std::to_string(retries.count));
    if (!retries.on_timeout || !retries.on_shed || !retries.on_error) {
      std::string causes;
      const auto add = [&causes](bool is, std::string_view name) {
        if (!is) return;
        causes += (causes.empty() ? "" : ", ") + Quoted(name);
      };
      add(retries.on_timeout, "timeout");
      add(retries.on_shed, "shed");
      add(retries.on_error, "error");
      keys.Raw("on", "[" + causes + "]");
    }
    keys.Time("backoff", retries.backoff);
    keys.Number("factor", retries.factor);
    keys.Time("ceiling", retries.ceiling);
    keys.Number("jitter", retries.jitter);
    if (retries.layers > 1) {
      keys.Raw("layers", std::to_string(retries.layers));
    }
    if (retries.budget_ratio > 0) {
      keys.Number("budget_ratio", retries.budget_ratio);
    }
    return keys.Join("\n") + "\n";
  }

  std::string StageItem(const Stage& stage) const {
    Keys item;
    item.Text("name", stage.name);
    using enum Stage::Kind;
    switch (stage.kind) {
      case kCpu:
        break;
      case kIo:
        item.Text("kind", "io");
        break;
      case kLock:
        item.Text("kind", "lock");
        break;
      case kPool:
        item.Text("kind", "pool");
        item.Raw("size", std::to_string(stage.size));
        break;
    }
    AddSpan(stage.time, item);
    if (stage.ratio < 1) item.Number("ratio", stage.ratio);
    if (stage.route) item.Text("route", s_.routes[*stage.route].name);
    return item.Inline();
  }

  static std::string ChangeItem(const Change& change, const Tier& tier) {
    Keys item;
    item.Time("at", change.at);
    if (change.over > Duration{}) item.Time("over", change.over);
    if (!change.replicas.empty()) {
      item.Raw("replicas", Numbers(change.replicas));
    }
    if (change.workers) item.Raw("workers", std::to_string(*change.workers));
    if (change.speed) item.Number("speed", *change.speed);
    if (change.up) item.Flag("up", *change.up);
    if (change.time || change.slow_ratio) {
      item.Text("stage", tier.stages[change.stage].name);
    }
    if (change.time) item.Time("time", *change.time);
    if (change.slow_ratio) item.Number("slow_ratio", *change.slow_ratio);
    return item.Inline();
  }

  static std::string PauseItem(const Pause& pause) {
    Keys item;
    item.Time("length", pause.length);
    if (pause.every > Duration{}) item.Time("every", pause.every);
    item.Time("first", pause.first);
    if (!pause.regular) item.Flag("regular", false);
    if (!pause.replicas.empty()) item.Raw("replicas", Numbers(pause.replicas));
    return item.Inline();
  }

  std::string FailureItem(const Failure& failure) const {
    Keys item;
    item.Number("ratio", failure.ratio);
    if (failure.from > Duration{}) item.Time("from", failure.from);
    if (failure.until) item.Time("until", *failure.until);
    if (failure.after) item.Time("after", *failure.after);
    if (failure.route) item.Text("route", s_.routes[*failure.route].name);
    return item.Inline();
  }

  std::string TierKeys(const Tier& tier) const {
    Keys keys;
    keys.Raw("workers", std::to_string(tier.workers));
    if (tier.discipline == Discipline::kSharing) {
      keys.Text("discipline", "sharing");
    }
    std::vector<std::string> items;
    for (const Stage& stage : tier.stages) items.push_back(StageItem(stage));
    keys.Raw("stages", List(items));
    items.clear();
    for (const Change& change : tier.changes) {
      items.push_back(ChangeItem(change, tier));
    }
    if (!items.empty()) keys.Raw("changes", List(items));
    items.clear();
    for (const Pause& pause : tier.pauses) items.push_back(PauseItem(pause));
    if (!items.empty()) keys.Raw("pauses", List(items));
    items.clear();
    for (const Failure& failure : tier.failures) {
      items.push_back(FailureItem(failure));
    }
    if (!items.empty()) keys.Raw("failures", List(items));
    if (tier.reject_cost > Duration{}) {
      keys.Time("reject_cost", tier.reject_cost);
    }
    if (tier.cancel_at_deadline) keys.Flag("cancel_at_deadline", true);
    if (tier.replicas > 1) keys.Raw("replicas", std::to_string(tier.replicas));
    if (tier.balancer == Balancer::kTwoChoices) {
      keys.Text("balancer", "two-choices");
    } else if (tier.balancer == Balancer::kLeastLoaded) {
      keys.Text("balancer", "least-loaded");
    }
    if (MeanDelay(tier.network) > Duration{}) {
      Keys network;
      AddSpan(tier.network, network);
      keys.Raw("network", network.Inline());
    }
    if (!tier.guard) keys.Flag("guard", false);
    if (tier.client_guard) keys.Flag("client_guard", true);
    items.clear();
    for (const Call& call : tier.calls) {
      Keys item;
      item.Text("tier", s_.tiers[call.tier].name);
      if (call.times > 1) item.Raw("times", std::to_string(call.times));
      if (call.parallel) item.Flag("parallel", true);
      items.push_back(item.Inline());
    }
    if (!items.empty()) keys.Raw("calls", List(items));
    return keys.Join("\n") + "\n";
  }

  static Duration MeanDelay(const Span& span) {
    return span.distribution == Span::Distribution::kBimodal
               ? std::max(span.fast, span.slow)
               : span.mean;
  }

  std::string BoundKeys() const {
    std::string out;
    for (const Bound& bound : s_.bounds) {
      Keys keys;
      if (bound.min) keys.Number("min", *bound.min);
      if (bound.max) keys.Number("max", *bound.max);
      if (bound.goal) keys.Number("goal", *bound.goal);
      const std::string of = Quoted(bound.of);
      out += (bound.scope == Bound::Scope::kPhase   ? "phase." + of + "."
              : bound.scope == Bound::Scope::kClass ? "class." + of + "."
                                                    : "") +
             bound.metric + " = " + keys.Inline() + "\n";
    }
    return out;
  }

  const Scenario& s_;
};

}  // namespace

std::string ToToml(const Scenario& scenario) {
  return Writer(scenario).Write();
}

}  // namespace weir::scenario
