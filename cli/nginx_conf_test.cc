#include "nginx_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

NginxConf Example() {
  return {.module = "/opt/my \"module\".so",
          .policy = "/tmp/up/policy.toml",
          .workers = 2,
          .open_files = 1000,
          .resource = "api",
          .health = "health",
          .guarded = {.port = 8001, .upstream = "127.0.0.1:9001"}};
}

TEST(NginxConfTest, AStringInQuotesIsOneWord) {
  EXPECT_EQ(NginxQuoted("a b"), "\"a b\"");
  EXPECT_EQ(NginxQuoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
}

TEST(NginxConfTest, TheModuleIsLoadedFirst) {
  EXPECT_THAT(Example().Text(),
              HasSubstr("ends.\nload_module \"/opt/my \\\"module\\\".so\";\n"));
}

TEST(NginxConfTest, WithoutAnUnguardedPortThereIsOneServer) {
  const std::string text = Example().Text();
  EXPECT_THAT(text, HasSubstr("listen 127.0.0.1:8001 "));
  EXPECT_THAT(text, Not(HasSubstr("weir off")));
  EXPECT_THAT(text, Not(HasSubstr("unprotected")));
}

TEST(NginxConfTest, TheUnguardedPortHasItsOwnUpstreamAndNoWeir) {
  NginxConf conf = Example();
  conf.unguarded = {.port = 8002, .upstream = "127.0.0.1:9002"};
  const std::string text = conf.Text();
  const size_t second = text.find("listen 127.0.0.1:8002 ");
  ASSERT_NE(second, std::string::npos);
  EXPECT_THAT(text.substr(second), HasSubstr("weir off;"));
  EXPECT_THAT(text.substr(second), HasSubstr("proxy_pass http://unprotected;"));
  EXPECT_THAT(text.substr(second), Not(HasSubstr("weir health;")));
}

TEST(NginxConfTest, OpenFilesBoundConnections) {
  NginxConf conf = Example();
  EXPECT_THAT(conf.Text(), HasSubstr("worker_connections 500;"));
  conf.open_files = uint64_t{1} << 40;
  EXPECT_THAT(conf.Text(), HasSubstr("worker_connections 65536;"));
}

TEST(NginxConfTest, OnlyRootNamesTheUserOfWorkers) {
  NginxConf conf = Example();
  EXPECT_THAT(conf.Text(), Not(HasSubstr("user ")));
  conf.root = true;
  EXPECT_THAT(conf.Text(), HasSubstr("\nuser root;\n"));
}

}  // namespace
}  // namespace weir::cli
