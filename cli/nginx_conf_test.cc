#include "nginx_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "scratch.h"

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

// Folders that this user may not read, or that lead nowhere, are common on a
// PATH; a link to itself fails for root as well.
TEST(NginxConfTest, AFolderOfThePathThatCannotBeReadIsPassedOver) {
  const auto scratch = Scratch::Make("weir-path-");
  ASSERT_TRUE(scratch.ok());
  std::filesystem::create_symlink("loop", scratch->Path("loop"));
  std::filesystem::create_directory(scratch->Path("bin"));
  std::filesystem::create_symlink("/bin/true", scratch->Path("bin/nginx"));
  const std::string before = std::getenv("PATH");
  setenv("PATH", (scratch->Path("loop") + ":" + scratch->Path("bin")).c_str(),
         1);
  const auto found = FindNginx();
  setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, scratch->Path("bin/nginx"));
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

TEST(NginxConfTest, EachRouteIsALocationOfItsResource) {
  NginxConf conf = Example();
  conf.routes = {{"/checkout", "checkout"}, {"/static", "off"}};
  const std::string text = conf.Text();
  EXPECT_THAT(text,
              HasSubstr("location \"/checkout\" {\n      weir checkout;"));
  EXPECT_THAT(text, HasSubstr("location \"/static\" {\n      weir off;"));
  EXPECT_THAT(text, HasSubstr("location / {\n      weir api;"));
  EXPECT_THAT(text, HasSubstr("location = /healthz {\n      weir health;"));
  conf.routes = {{"/", "shop"}, {"/healthz", "off"}};
  EXPECT_THAT(conf.Text(), Not(HasSubstr("weir api;")));
  EXPECT_THAT(conf.Text(), Not(HasSubstr("weir health;")));
}

TEST(NginxConfTest, TheLogIsOfTheGuardedPortInTheFormatOfReplay) {
  NginxConf conf = Example();
  EXPECT_THAT(conf.Text(), Not(HasSubstr("log_format")));
  conf.log = "/tmp/access.log";
  conf.unguarded = {.port = 8002, .upstream = "127.0.0.1:9002"};
  const std::string text = conf.Text();
  EXPECT_THAT(text, HasSubstr("log_format weir '$remote_addr [$msec]"));
  const size_t log = text.find("access_log \"/tmp/access.log\" weir;");
  ASSERT_NE(log, std::string::npos);
  EXPECT_LT(log, text.find("listen 127.0.0.1:8002"));
  EXPECT_EQ(text.find("access_log \"/tmp", log + 1), std::string::npos);
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
