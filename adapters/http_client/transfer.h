// One attempt on the wire, and the connection that it uses.

#ifndef WEIR_HTTP_CLIENT_TRANSFER_H_
#define WEIR_HTTP_CLIENT_TRANSFER_H_

#include <curl/curl.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "weir/client/client_call.h"
#include "weir/http/client.h"

namespace weir::http {

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// An attempt that is being made.  Stays where it is: libcurl points to it.
class Transfer {
 public:
  explicit Transfer(size_t max_body_bytes);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets it up for `attempt`; null when libcurl lacks memory.
  CURL* Prepare(const ClientConfig& config, const ClientRequest& request,
                const ClientCall& call, const Attempt& attempt);

  CURL* easy() const { return easy_.get(); }

  // What it came to.  `code` is libcurl's; `repeatable` says whether an answer
  // from a gateway that did not reach the service may be taken for "not done".
  Answer Conclude(CURLcode code, bool repeatable);

  Response TakeResponse() { return std::move(response_); }
  std::string Error(CURLcode code) const;

 private:
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);

  std::unique_ptr<CURL, FreeEasy> easy_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  const size_t max_body_bytes_;
  Response response_;
  std::array<char, CURL_ERROR_SIZE> error_{};
};

}  // namespace weir::http

#endif  // WEIR_HTTP_CLIENT_TRANSFER_H_
