#include "answer_parser.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>

#include "weir/text.h"

namespace weir::cli {
namespace {

int64_t ToNumber(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void AnswerParser::Reset() {
  http_parser_init(&parser_, HTTP_RESPONSE);
  parser_.data = this;
  answer_ = {};
  field_.clear();
  value_.clear();
  complete_ = false;
  started_ = false;
}

bool AnswerParser::Feed(std::string_view bytes) {
  static const http_parser_settings settings = MakeSettings();
  started_ = started_ || !bytes.empty();
  const size_t used =
      http_parser_execute(&parser_, &settings, bytes.data(), bytes.size());
  if (complete_) {
    // Nothing may follow what nobody asked for.
    if (used < bytes.size()) answer_.keep = false;
    return true;
  }
  return HTTP_PARSER_ERRNO(&parser_) == HPE_OK;
}

void AnswerParser::EndHeader() {
  if (field_.size() >= 11) Header();  // None that we read is shorter.
  field_.clear();
  value_.clear();
  in_value_ = false;
}

void AnswerParser::Header() {
  if (text::EqualsIgnoringCase(field_, "weir-reason")) {
    answer_.reason = value_.empty() ? "unknown" : value_;
  } else if (text::EqualsIgnoringCase(field_, "weir-service-us")) {
    answer_.service = std::chrono::microseconds(
        std::clamp<int64_t>(ToNumber(value_), 0, int64_t{3600} * 1'000'000));
  } else if (text::EqualsIgnoringCase(field_, "retry-after")) {
    answer_.retry_after =
        std::chrono::seconds(std::clamp<int64_t>(ToNumber(value_), 0, 3600));
  }
}

http_parser_settings AnswerParser::MakeSettings() {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_header_field = [](http_parser* p, const char* at, size_t size) {
    AnswerParser& self = Of(p);
    if (self.in_value_) self.EndHeader();
    self.field_.append(at, size);
    return 0;
  };
  settings.on_header_value = [](http_parser* p, const char* at, size_t size) {
    AnswerParser& self = Of(p);
    self.in_value_ = true;
    self.value_.append(at, size);
    return 0;
  };
  settings.on_headers_complete = [](http_parser* p) {
    AnswerParser& self = Of(p);
    self.EndHeader();
    return self.bodiless_ ? 1 : 0;
  };
  settings.on_message_complete = [](http_parser* p) {
    AnswerParser& self = Of(p);
    self.complete_ = true;
    self.answer_.status = static_cast<int>(p->status_code);
    self.answer_.keep = http_should_keep_alive(p) != 0;
    http_parser_pause(p, 1);
    return 0;
  };
  return settings;
}

}  // namespace weir::cli
