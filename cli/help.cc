#include "help.h"

#include <sstream>

namespace weir::cli {
namespace {

// Chosen: below this, what an option means stands under its name.
constexpr size_t kTwoColumns = 64;
constexpr size_t kRightColumn = 30;
constexpr size_t kNarrowIndent = 6;

}  // namespace

std::string Wrapped(std::string_view text, size_t column, size_t indent,
                    size_t width) {
  std::string out;
  bool begun = false;  // A word stands in this line already.
  while (!text.empty()) {
    const size_t space = text.find_first_of(" \n");
    std::string_view word = text.substr(0, space);
    size_t taken = space == std::string_view::npos ? text.size() : space + 1;
    if (word.size() + indent > width && width > indent) {
      const size_t comma = word.rfind(',', width - indent - 1);
      if (comma != std::string_view::npos && comma + 1 < word.size()) {
        word = word.substr(0, comma + 1);
        taken = comma + 1;
      }
    }
    const bool line_ends = taken > word.size() &&
                           space != std::string_view::npos &&
                           text[space] == '\n';
    if (!word.empty()) {
      if (begun && column + 1 + word.size() > width) {
        out += '\n' + std::string(indent, ' ');
        column = indent;
        begun = false;
      }
      if (begun) {
        out += ' ';
        ++column;
      }
      out += word;
      column += word.size();
      begun = true;
    }
    text.remove_prefix(taken);
    if (line_ends && !text.empty()) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
      begun = false;
    }
  }
  return out;
}

std::string HelpFormatter::Entry(const std::string& left,
                                 const std::string& right) const {
  const bool two = width_ >= kTwoColumns;
  const size_t indent = two ? kRightColumn : kNarrowIndent;
  std::string text = "  " + Wrapped(left, 2, 4, width_);
  if (right.empty()) return text + '\n';
  const size_t column = text.size() - (text.rfind('\n') + 1);
  if (two && text.find('\n') == std::string::npos && column + 2 <= indent) {
    text += std::string(indent - column, ' ');
  } else {
    text += '\n' + std::string(indent, ' ');
  }
  return text + Wrapped(right, indent, indent, width_) + '\n';
}

// Without what CLI11 adds of its own: "N", not "N:FLOAT in [0.01 - 1000]".
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  const std::string type = option->get_type_name();
  const size_t colon = type.find(':');
  const size_t at = text.find(type);
  if (colon == std::string::npos || at == std::string::npos) return text;
  const std::string name = type.substr(0, colon);
  const std::string range = type.substr(colon + 1);
  return text.replace(at, type.size(), range.starts_with(name) ? range : name);
}

// Lines that are indented stand as they are: they are to be copied.
std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string text;
  std::istringstream lines(app->get_footer());
  for (std::string line; std::getline(lines, line);) {
    text +=
        (line.starts_with("  ") || line.size() <= width_
             ? line
             : Wrapped(line, 0, line.starts_with("weir ") ? 4 : 0, width_)) +
        '\n';
  }
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option,
                                       bool is_positional) const {
  return Entry(
      make_option_name(option, is_positional) + make_option_opts(option),
      make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return Entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return Wrapped(app->get_description(), 0, 0, width_) + '\n';
}

std::string HelpFormatter::make_usage(const CLI::App* app,
                                      std::string name) const {
  return Wrapped(CLI::Formatter::make_usage(app, name), 0, 4, width_) + '\n';
}

}  // namespace weir::cli
