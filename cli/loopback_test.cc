#include "loopback.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace weir::cli {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// Listens on a free port of the loopback.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

TEST(LoopbackTest, AFreePortCanBeListenedOn) {
  const Result<uint16_t> port = FreePort();
  ASSERT_TRUE(port.ok());
  EXPECT_GT(*port, 0);
  EXPECT_FALSE(CheckPort(*port).has_value());
}

TEST(LoopbackTest, AUsedPortIsNamed) {
  const Listener listener;
  const std::optional<Error> error = CheckPort(listener.port());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->message,
            "port " + std::to_string(listener.port()) +
                " is in use; name another one, or none to get a free one");
}

TEST(LoopbackTest, ConnectsToWhatListens) {
  const Listener listener;
  EXPECT_FALSE(
      TryConnect({.host = "127.0.0.1", .port = listener.port()}, seconds(5)));
}

TEST(LoopbackTest, SaysWhyItCouldNotConnect) {
  const uint16_t port = FreePort().value();
  const std::optional<Error> refused =
      TryConnect({.host = "127.0.0.1", .port = port}, seconds(5));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->message,
            "nothing answers at 127.0.0.1:" + std::to_string(port) +
                ": Connection refused");
}

TEST(LoopbackTest, ReadsHostAndPort) {
  const auto text_of = [](std::string_view text) {
    return ParseHostPort(text).value().text();
  };
  EXPECT_EQ(text_of("localhost:80"), "localhost:80");
  EXPECT_EQ(text_of("http://127.0.0.1:8000/"), "127.0.0.1:8000");
  EXPECT_EQ(text_of("[::1]:65535"), "[::1]:65535");
}

TEST(LoopbackTest, RefusesWhatIsNoHostAndPort) {
  for (const std::string_view text :
       {"", "localhost", ":80", "localhost:", "localhost:0", "localhost:65536",
        "localhost:80x", "localhost:-1", "::1:80", "[]:80", "a b:80",
        "a;load_module x:80", "host/path:80", "https://host:443"}) {
    const Result<HostPort> parsed = ParseHostPort(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("host:port"));
  }
}

}  // namespace
}  // namespace weir::cli
