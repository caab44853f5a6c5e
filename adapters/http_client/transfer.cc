#include "transfer.h"

#include <string_view>

#include "weir/client/wire.h"
#include "weir/text.h"

namespace weir::http {
namespace {

long Milliseconds(Duration duration) {
  return static_cast<long>(duration / std::chrono::milliseconds(1));
}

}  // namespace

Transfer::Transfer(size_t max_body_bytes)
    : easy_(curl_easy_init()), max_body_bytes_(max_body_bytes) {}

CURL* Transfer::Prepare(const ClientConfig& config,
                        const ClientRequest& request, const ClientCall& call,
                        const Attempt& attempt) {
  CURL* const easy = easy_.get();
  if (easy == nullptr) return nullptr;
  curl_easy_reset(easy);
  response_ = {};
  error_.fill('\0');

  curl_slist* list = nullptr;
  const auto put = [&list](std::string_view name, std::string_view value) {
    std::string line(name);
    // libcurl leaves out a header that is empty after its colon.
    line += value.empty() ? ";" : ": ";
    line += value;
    if (curl_slist* const longer = curl_slist_append(list, line.c_str())) {
      list = longer;
    }
  };
  wire::PutRequestHeaders(wire::Protocol::kHttp, call, attempt, put);
  for (const auto& [name, value] : request.headers) put(name, value);
  // A body is sent at once: who is refused saves a round trip less than all
  // others would lose.
  list = curl_slist_append(list, "Expect:");
  headers_.reset(list);

  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_URL, (config.url + request.path).c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, Milliseconds(attempt.budget));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   Milliseconds(config.connect_timeout));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_.data());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET" || !request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (!request.body.empty() || request.method == "POST") {
      // The request outlives the transfer.
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
    }
  }
  return easy;
}

Answer Transfer::Conclude(CURLcode code, bool repeatable) {
  Answer answer;
  switch (code) {
    case CURLE_OK: {
      long status = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
      response_.status = static_cast<int>(status);
      answer.kind = wire::KindOfHttpStatus(response_.status);
      // A gateway says 502 also when the service died at work.
      if (answer.kind == AnswerKind::kUnavailable && !repeatable) {
        answer.kind = AnswerKind::kError;
      }
      for (const auto& [name, value] : response_.headers) {
        wire::ReadAnswerHeader(name, value, answer);
      }
      return answer;
    }
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      answer.kind = AnswerKind::kUnavailable;
      answer.unreached = true;
      return answer;
    case CURLE_OPERATION_TIMEDOUT: {
      // Without a connection nothing can have been done.
      curl_off_t connected_us = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T,
                        &connected_us);
      answer.unreached = connected_us == 0;
      answer.kind =
          answer.unreached ? AnswerKind::kUnavailable : AnswerKind::kTimedOut;
      return answer;
    }
    default:
      answer.kind = AnswerKind::kError;
      return answer;
  }
}

std::string Transfer::Error(CURLcode code) const {
  if (code == CURLE_WRITE_ERROR) {
    return "the answer is longer than " + std::to_string(max_body_bytes_) +
           " bytes";
  }
  return error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
}

size_t Transfer::OnHeader(char* data, size_t size, size_t count, void* self) {
  auto& response = static_cast<Transfer*>(self)->response_;
  const std::string_view line(data, size * count);
  // Each status line begins an answer of its own: 100 and 103 come first.
  if (line.starts_with("HTTP/")) {
    response.headers.clear();
  } else if (const size_t colon = line.find(':');
             colon != std::string_view::npos) {
    response.headers.emplace_back(line.substr(0, colon),
                                  text::Trim(line.substr(colon + 1)));
  }
  return line.size();
}

size_t Transfer::OnBody(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const size_t bytes = size * count;
  std::string& body = transfer.response_.body;
  if (bytes > transfer.max_body_bytes_ - body.size()) return 0;  // Ends it.
  body.append(data, bytes);
  return bytes;
}

}  // namespace weir::http
