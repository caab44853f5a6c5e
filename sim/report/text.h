// Text and numbers as people read them.

#ifndef WEIR_SIM_REPORT_TEXT_H_
#define WEIR_SIM_REPORT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sim_report {

// For HTML's text and quoted attributes.  Control characters and what is not
// UTF-8 become U+FFFD.
std::string Escaped(std::string_view text);

// The same for names in narrow columns: they may be broken behind -, +, @, _, /
// and dots.
std::string Breakable(std::string_view name);

// At most `most` characters, with an ellipsis for those that were left out.
// Names often differ at their ends, so some of the end stays.
std::string Shortened(std::string_view text, size_t most);

// 12345.6 with one digit: "12 345.6", with narrow spaces that do not break.
std::string Grouped(double value, int digits);

// Three significant figures with a multiplier: 1500 is "1.5k".
std::string Compact(double value);

// "4.2 ms", "1.25 s".
std::string OfMilliseconds(double milliseconds);

// {1, 2, 3, 7}: "1–3, 7".
std::string Ranges(const std::vector<uint64_t>& numbers);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_TEXT_H_
