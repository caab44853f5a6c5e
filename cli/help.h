// The text of --help, as wide as the terminal and 80 columns at most.

#ifndef WEIR_CLI_HELP_H_
#define WEIR_CLI_HELP_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

// `text` in lines of `width` columns at most, each after the first indented by
// `indent`; a longer word is broken after a comma, if it has any.  The first
// line begins at column `column`.
std::string Wrapped(std::string_view text, size_t column, size_t indent,
                    size_t width);

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(size_t width) : width_(width) {}

  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option,
                          bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;

 private:
  std::string Entry(const std::string& left, const std::string& right) const;

  size_t width_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_HELP_H_
