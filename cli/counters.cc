#include "counters.h"

#include <fmt/format.h>

#include <string_view>

#include "weir/snapshot.h"

namespace weir::cli {
namespace {

// `row` writes one counter; `head` opens a group.
template <typename Head, typename Row>
std::string Write(Head head, Row row) {
  std::string text = head("gauges");
  for (const CounterInfo& info : kGaugeInfo) text += row(info);
  text += '\n' + head("counters of each criticality");
  for (const CounterInfo& info : kClassCounterInfo) text += row(info);
  text += '\n' + head("counters");
  for (const CounterInfo& info : kCounterInfo) text += row(info);
  return text;
}

}  // namespace

std::string CountersText() {
  return Write(
      [](std::string_view group) { return fmt::format("{}\n", group); },
      [](const CounterInfo& info) {
        return fmt::format("  {:<25} {:<11} {}\n", info.name, info.unit,
                           info.help);
      });
}

std::string CountersMarkdown() {
  return Write(
      [](std::string_view group) {
        return fmt::format("| {} | unit | meaning |\n| --- | --- | --- |\n",
                           group);
      },
      [](const CounterInfo& info) {
        return fmt::format("| `{}` | {} | {} |\n", info.name, info.unit,
                           info.help);
      });
}

}  // namespace weir::cli
