#include "agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using nlohmann::json;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double Goodput(const json& figures) {
  const double offered = figures.at("offered");
  return offered == 0 ? 1 : figures.at("good").get<double>() / offered;
}

// Of a report the figures of phase `phase`, or of all of it.
const json& PartOf(const json& report, int phase) {
  return phase < 0 ? report
                   : report.at("phases").at(static_cast<size_t>(phase));
}

}  // namespace

bool Agreement::agrees() const {
  return !judged || std::abs(difference) <= allowed;
}

std::vector<Agreement> Compare(const std::vector<json>& simulated,
                               const std::vector<json>& real,
                               const Tolerance& tolerance) {
  std::vector<Agreement> list;
  const auto phases = static_cast<int>(real.at(0).at("phases").size());
  for (int phase = -1; phase < phases; ++phase) {
    const auto add = [&](std::string_view figure, double allowed,
                         const auto& value) {
      const auto median = [&](const std::vector<json>& reports) {
        std::vector<double> values;
        for (const json& report : reports) {
          values.push_back(value(PartOf(report, phase)));
        }
        return Median(std::move(values));
      };
      Agreement agreement{
          .name = phase < 0
                      ? "all"
                      : PartOf(real[0], phase).at("name").get<std::string>(),
          .figure = std::string(figure),
          .simulated = median(simulated),
          .real = median(real),
          .allowed = allowed,
          .judged = phase < 0};
      const double off = agreement.simulated - agreement.real;
      if (off != 0) {
        agreement.difference = agreement.real == 0
                                   ? std::numeric_limits<double>::infinity()
                                   : off / agreement.real;
      }
      list.push_back(agreement);
    };
    add("goodput", tolerance.goodput, Goodput);
    for (const char* quantile : {"p50", "p99"}) {
      add(std::string(quantile) + " ms", tolerance.latency,
          [&](const json& figures) {
            return figures.at("latency_ms").at(quantile).get<double>();
          });
    }
  }
  return list;
}

json ProtectedReport(std::string_view text) {
  while (!text.empty()) {
    const size_t start = text.rfind('\n');
    const std::string_view line =
        start == std::string_view::npos ? text : text.substr(start + 1);
    if (line.starts_with('{')) {
      const json parsed = json::parse(line, nullptr, false);
      if (parsed.is_object() && parsed.contains("protected")) {
        return parsed["protected"];
      }
    }
    if (start == std::string_view::npos) break;
    text = text.substr(0, start);
  }
  return nullptr;
}

}  // namespace weir::cli
