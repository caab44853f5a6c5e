// What the page looks like.

#ifndef WEIR_SIM_REPORT_STYLE_H_
#define WEIR_SIM_REPORT_STYLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weir::sim_report {

// A colour on a light and on a dark page.
struct Ink {
  std::string_view light;
  std::string_view dark;
};

// Ground, text, text that steps back, and hairlines, in that order.
std::span<const Ink> Grounds();
// Of lines and their labels: each reads on its ground as text does.
// Source: [OKABE], colours that people with any kind of colour vision tell
// apart; for the light page darkened until the contrast suffices.
std::span<const Ink> LineInks();

// Grounds of table cells, from the best on; the first is none.
std::span<const Ink> Shades();

// Lines differ in dash as well as in colour: each style has an index into
// LineInks() and one into the dashes.
inline constexpr size_t kStyles = 36;
// For what is no algorithm, or steps back.
inline constexpr size_t kPlainStyle = kStyles;
size_t InkOfStyle(size_t style);
size_t DashOfStyle(size_t style);

// The style sheet for a page with this many algorithms.
std::string StyleSheet(size_t algorithms);

// Opens what is folded before printing and when a link leads into it.
std::string_view Script();

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_STYLE_H_
