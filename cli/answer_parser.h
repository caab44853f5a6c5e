// What the generator reads of an answer, and how it ended.

#ifndef WEIR_CLI_ANSWER_PARSER_H_
#define WEIR_CLI_ANSWER_PARSER_H_

#include <http_parser.h>

#include <string>
#include <string_view>

#include "storm_calls.h"
#include "weir/time.h"

namespace weir::cli {

// What an answer says.
struct Answer {
  int status = 0;
  std::string reason{};  // weir's, when it refused.
  Duration service{};
  Duration retry_after{};
  bool keep = false;

  StormOutcome outcome() const {
    if (!reason.empty() || status == 429 || status == 503) {
      return StormOutcome::kShed;
    }
    return status >= 200 && status < 400 ? StormOutcome::kAnswered
                                         : StormOutcome::kFailed;
  }
};

// Reads one answer after another.  Not copied: the parser points at it.
class AnswerParser {
 public:
  AnswerParser() { Reset(); }
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  void Reset();

  // Whether answers bring no body although they say so: those to HEAD.
  void set_bodiless(bool bodiless) { bodiless_ = bodiless; }

  // False: this is no HTTP.  An empty view means the end of the stream.
  bool Feed(std::string_view bytes);

  bool complete() const { return complete_; }
  bool started() const { return started_; }
  const Answer& answer() const { return answer_; }

 private:
  static AnswerParser& Of(http_parser* p) {
    return *static_cast<AnswerParser*>(p->data);
  }
  static http_parser_settings MakeSettings();
  void EndHeader();
  void Header();

  http_parser parser_{};
  Answer answer_;
  std::string field_;
  std::string value_;
  bool in_value_ = false;
  bool bodiless_ = false;
  bool complete_ = false;
  bool started_ = false;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_ANSWER_PARSER_H_
