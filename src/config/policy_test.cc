#include "weir/config/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "weir/config/units.h"

namespace weir::config {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

fs::path ProjectDir() {
  const char* dir = std::getenv("WEIR_SOURCE_DIR");
  return dir != nullptr ? fs::path(dir) : fs::path(WEIR_SOURCE_DIR);
}

fs::path TestData() { return ProjectDir() / "src/config/testdata"; }

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> Policies() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(TestData())) {
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Shown(const Checked<Policy>& policy) {
  return policy ? PrintPolicy(*policy) : policy.complaints().Print();
}

// Each X.toml of testdata comes out as X.expected: the normal form of a good
// policy, or all complaints.  To write the expectations anew, after which git
// shows what changed: WEIR_UPDATE_GOLDEN=1 config_test --gtest_filter=*Golden*
TEST(PolicyTest, EveryGoldenFileComesOutAsExpected) {
  const bool update = std::getenv("WEIR_UPDATE_GOLDEN") != nullptr;
  const std::vector<fs::path> paths = Policies();
  ASSERT_GT(paths.size(), 25u);
  for (const fs::path& path : paths) {
    const auto policy = ParsePolicy(ReadAll(path), path.filename());
    const bool should_be_good = path.filename().string().starts_with("good-");
    EXPECT_EQ(policy.ok(), should_be_good) << path << '\n' << Shown(policy);
    fs::path expected = path;
    expected.replace_extension(".expected");
    if (update) std::ofstream(expected, std::ios::binary) << Shown(policy);
    EXPECT_EQ(Shown(policy), ReadAll(expected)) << path;
  }
}

TEST(PolicyTest, EveryComplaintSaysWhyAndHowToFixIt) {
  for (const fs::path& path : Policies()) {
    const auto policy = ParsePolicy(ReadAll(path), path.filename());
    if (policy) continue;
    for (const Complaint& complaint : policy.complaints().list()) {
      EXPECT_FALSE(complaint.why.empty()) << path << ": " << complaint.what;
      EXPECT_FALSE(complaint.fix.empty()) << path << ": " << complaint.what;
      EXPECT_NE(complaint.what.back(), '.') << path << ": " << complaint.what;
      EXPECT_GE(complaint.place.line, 1) << path << ": " << complaint.what;
      EXPECT_GE(complaint.place.column, 1) << path << ": " << complaint.what;
    }
  }
}

TEST(PolicyTest, TheSmallestPolicyHasTheDocumentedDefaults) {
  const auto policy = ParsePolicy("service = 'x'\n[resource.api]\n", "x");
  ASSERT_TRUE(policy.ok()) << Shown(policy);
  Policy expected;
  expected.service = "x";
  expected.deadline_from = {
      {Source::Kind::kHeader, "x-envoy-expected-rq-timeout-ms"},
      {Source::Kind::kHeader, "grpc-timeout"}};
  expected.criticality_from = {{Source::Kind::kBaggage, "criticality"},
                               {Source::Kind::kHeader, "weir-criticality"}};
  expected.resources.resize(1);
  expected.resources[0].name = "api";
  EXPECT_EQ(*policy, expected);
}

TEST(PolicyTest, ResourcesKeepTheOrderOfTheFile) {
  const auto policy = ParsePolicy(
      "service = 'x'\n[resource.z]\n[resource.a]\n[resource.m]\n", "x");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy->FindResource("z"), 0);
  EXPECT_EQ(policy->FindResource("a"), 1);
  EXPECT_EQ(policy->FindResource("m"), 2);
}

// Goal: whatever the text, what is accepted passes Check() and prints to a
// policy file that reads back the same.
// Method: 6,000 times one of the golden files, half of them good ones, changed
// in one to three random ways: a line dropped, doubled or taken from another
// file, a value or a byte replaced.
class Mutator {
  size_t Below(size_t count) { return random_() % count; }
  template <typename Items>
  auto& Pick(Items& items) {
    return items[Below(items.size())];
  }

 public:
  explicit Mutator(unsigned seed) : random_(seed) {
    for (const fs::path& path : Policies()) {
      files_.push_back(Split(ReadAll(path)));
      if (path.filename().string().starts_with("good-")) {
        good_.push_back(files_.back());
      }
    }
  }

  std::string Next() {
    std::vector<std::string> lines = Pick(Below(2) == 0 ? good_ : files_);
    for (unsigned changes = 1 + Below(3); changes > 0; --changes) {
      if (lines.empty()) lines.emplace_back();
      Change(lines);
    }
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    return text;
  }

 private:
  static std::vector<std::string> Split(const std::string& text) {
    std::vector<std::string> lines;
    std::string line;
    for (const char c : text) {
      if (c == '\n') {
        lines.push_back(std::exchange(line, {}));
      } else {
        line += c;
      }
    }
    return lines;
  }

  void Change(std::vector<std::string>& lines) {
    static const std::vector<std::string> kValues = {
        "0",   "1",     "-1",   "64",      "1000000",   "1000001", "nan",
        "inf", "1e300", "true", "\"x\"",   "\"1ms\"",   "\"1h\"",  "\"61s\"",
        "[]",  "{}",    "429",  "\"off\"", "[\"::/0\"]"};
    std::string& line = Pick(lines);
    const size_t equals = line.find('=');
    switch (Below(5)) {
      case 0:
        line.clear();
        break;
      case 1:
        line = Pick(lines);
        break;
      case 2:
        if (const auto& other = Pick(files_); !other.empty()) {
          line = other[Below(other.size())];
        }
        break;
      case 3:
        if (equals != std::string::npos) {
          line = line.substr(0, equals + 1) + Pick(kValues);
        }
        break;
      default:
        if (!line.empty()) Pick(line) = static_cast<char>(random_());
    }
  }

  std::mt19937 random_;
  std::vector<std::vector<std::string>> files_;
  std::vector<std::vector<std::string>> good_;
};

TEST(PolicyTest, WhatIsAcceptedPassesCheckAndRoundTrips) {
  constexpr unsigned kSeed = 1;
  Mutator mutator(kSeed);
  std::set<std::string> accepted;
  for (int i = 0; i < 6'000; ++i) {
    const std::string text = mutator.Next();
    const auto policy = ParsePolicy(text, "mutant.toml");
    if (!policy) {
      ASSERT_FALSE(policy.complaints().empty()) << text;
      continue;
    }
    const auto error = policy->Check();
    ASSERT_FALSE(error.has_value()) << error->message << '\n' << text;
    const std::string printed = PrintPolicy(*policy);
    const auto again = ParsePolicy(printed, "printed.toml");
    ASSERT_TRUE(again.ok()) << again.complaints().Print() << text;
    ASSERT_EQ(*again, *policy) << text << "\n-- printed:\n" << printed;
    accepted.insert(printed);
  }
  EXPECT_GT(accepted.size(), 50u) << "too few to show anything";
}

TEST(PolicyTest, EveryRuleOfCheckIsAComplaintWithAPlace) {
  const std::vector<std::string> broken = {
      "service = ''\n[resource.a]",
      "service = 'A'\n[resource.a]",
      "service = 'x'\ndeadline.default = '0.9ms'\n[resource.a]",
      "service = 'x'\ndeadline.ceiling = '61m'\n[resource.a]",
      "service = 'x'\ndeadline.default = '2m'\n[resource.a]",
      "service = 'x'\nlimit.workers = 1000001\n[resource.a]",
      "service = 'x'\nlimit.floor = 0\n[resource.a]",
      "service = 'x'\nlimit.ceiling = 1000001\n[resource.a]",
      "service = 'x'\nlimit.floor = 3\nlimit.ceiling = 2\n[resource.a]",
      "service = 'x'\nanswer.status = 404\n[resource.a]",
      "service = 'x'",
      "service = 'x'\n[resource.'']",
      "service = 'x'\n[resource.a]\n[resource.a]",
      "service = 'x'\n[resource.a]\ndeadline = '61s'",
      "service = 'x'\n[resource.a]\ndegrade = [{name = 'a b'}]",
      "service = 'x'\nclient.from = ['variable:a']\n"
      "client_quota.calls = 0\n[resource.a]",
      "service = 'x'\nclient.from = ['variable:a']\n"
      "client_quota.calls = 1\nclient_quota.window = '9ms'\n[resource.a]",
      "service = 'x'\nclient_quota.window = '9s'\n[resource.a]",
      "service = 'x'\nclient_quota.calls = 1\n[resource.a]",
      "service = 'x'\n[resource.a]\ndegrade = [{name = 'b', excess = 101}]",
      "service = 'x'\n[resource.a]\n"
      "degrade = [{name = 'b', excess = 2}, {name = 'c'}]"};
  for (const std::string& text : broken) {
    const auto policy = ParsePolicy(text, "x");
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_EQ(policy.complaints().size(), 1u) << Shown(policy);
    EXPECT_GE(policy.complaints().list()[0].place.line, 1) << text;
  }
}

TEST(PolicyTest, ATextLargerThanTheMostIsNotRead) {
  const std::string head = "service = 'x'\n[resource.a]\n#";
  const auto padded = [&](size_t size) {
    return head + std::string(size - head.size(), 'x');
  };
  EXPECT_TRUE(ParsePolicy(padded(Document::kMaxBytes), "x").ok());
  const auto policy = ParsePolicy(padded(Document::kMaxBytes + 1), "x");
  ASSERT_FALSE(policy.ok());
  EXPECT_THAT(policy.complaints().Print(), HasSubstr("larger than 1 MiB"));
  EXPECT_EQ(policy.complaints().size(), 1u);
}

// The rows of the reference are those that the reader asks for, word by word.
TEST(PolicyTest, TheReferenceHasEveryKeyWithItsRangeAndDefault) {
  // Keys of a list are asked for once it has an element.
  Document document = Document::Parse(
      "service = 'x'\n[resource.a]\ndegrade = [{name = 'b'}]", "x");
  ASSERT_TRUE(ReadPolicy(document).ok());
  std::vector<std::string> expected;
  for (const Row& row : document.Rows()) {
    std::string fallback = row.absent;
    if (row.required) fallback = "required";
    if (!row.fallback.empty()) fallback = '`' + row.fallback + '`';
    expected.push_back("| `" + row.path + "` | " + row.shape + " | " +
                       fallback + " | " + row.about + " |");
  }
  std::vector<std::string> documented;
  std::ifstream doc(ProjectDir() / "docs/policy.md");
  for (std::string line; std::getline(doc, line);) {
    if (line.starts_with("| `")) documented.push_back(line);
  }
  EXPECT_EQ(documented, expected);
}

TEST(PolicyTest, NetworksAreHeldAsIpv6) {
  const Network v4 = *ParseNetwork("10.0.0.0/8");
  EXPECT_EQ(v4.prefix_bits, 104);
  EXPECT_EQ(v4.address[10], 0xff);
  EXPECT_EQ(v4.address[12], 10);
  EXPECT_EQ(FormatNetwork(v4), "10.0.0.0/8");
  EXPECT_EQ(*ParseNetwork("::ffff:10.0.0.0/104"), v4);
  EXPECT_EQ(FormatNetwork(*ParseNetwork("0.0.0.0/0")), "0.0.0.0/0");
  EXPECT_EQ(FormatNetwork(*ParseNetwork("::/0")), "::/0");
  EXPECT_EQ(FormatNetwork(*ParseNetwork("::1")), "::1/128");
}

}  // namespace
}  // namespace weir::config
