// The example of weir/stream/server.h, to the letter: a test compares them.

#include <chrono>
#include <span>

#include "weir/stream/client.h"
#include "weir/stream/server.h"

using namespace std::chrono_literals;
namespace stream = weir::stream;

int main() {
  int left = 3;
  const auto execute = [&](stream::Peer& peer, auto message) {
    peer.Send(message);  // Your work, in this thread.
    --left;
  };
  auto server = stream::Server::Make({}, execute);
  if (!server) return 1;
  auto client = stream::Client::Connect({.port = (*server)->port()});
  if (!client) return 1;
  const auto message = std::as_bytes(std::span("hi"));
  for (int i = 0; i < 3; ++i) (*client)->Send(message);
  while (left > 0) (*server)->Run(10ms);
}
