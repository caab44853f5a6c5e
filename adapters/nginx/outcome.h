// How an admitted request ended, judged by what nginx knows of it.

#ifndef WEIR_ADAPTERS_NGINX_OUTCOME_H_
#define WEIR_ADAPTERS_NGINX_OUTCOME_H_

#include <cstdint>

#include "weir/decision.h"
#include "weir/time.h"

namespace weir::nginx {

// How far the request got on its way to the service.
enum class Contact : uint8_t {
  kNone,        // nginx answers by itself: a file, a module, an early error.
  kCache,       // nginx would have asked, but had the answer.
  kNotReached,  // No connection to any server.
  kNoAnswer,    // Asked; no whole header of an answer came.
  kAnswered,    // A header came.
};

struct Ending {
  int status = 0;            // Of the answer to the client; 0: none.
  bool whole = false;        // The answer was made to its end.
  bool client_gone = false;  // The client left, or did not read in time.
  // An upgraded connection or an endless answer: ends when somebody tires of
  // it, so the time says nothing.
  bool stream = false;
  // The service had to wait for the client to read (unbuffered answers only).
  bool held_back = false;
  Contact contact = Contact::kNone;
  int grpc_status = -1;     // Of a gRPC answer; -1: none.
  Duration taken{};         // Since it was admitted.
  Duration base_latency{};  // What the service takes when idle; 0: unknown.
};

// What ends a permit teaches the limit only if it tells how long the service
// needs for its work.  So kIgnored for all that was too quick to be work
// (refused connections, errors in less than half the base latency, refusals by
// the service itself, answers out of a cache, access denied) and for what was
// paced by the client.  The status of a gRPC answer is the one in its headers
// or trailers: with HTTP it is 200 whatever came of the call.
Outcome Judge(const Ending& ending);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_OUTCOME_H_
