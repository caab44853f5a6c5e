// weir replay: turns an nginx access log into a scenario.

#include "replay.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command.h"
#include "sim_options.h"
#include "weir/config/units.h"
#include "weir/scenario/read.h"

namespace weir::cli {
namespace {

struct Options {
  std::vector<std::string> logs;
  std::string format;
  std::string client = "remote_addr";
  std::string out;
  std::string name;
  std::string deadline;
  std::string time;
  std::string from;
  std::string to;
  std::vector<std::string> classes;
  std::vector<std::string> routes;
  std::optional<int> workers;
  int most_routes = 10;
  int most_steps = 240;
  bool play = false;
  SimOptions sim;  // How it is played then.
};

// Lines of a file without their ends; memory does not follow their length.
class LineReader {
 public:
  explicit LineReader(std::FILE* file) : file_(file) {}

  // False at the end.  A line beyond kLongest is cut, and `cut` says so.
  bool Next(std::string& line, bool& cut) {
    // Chosen: nginx allows 32 KiB of request line and headers.
    constexpr size_t kLongest = size_t{64} << 10;
    line.clear();
    cut = false;
    for (int c = Byte(); c != EOF; c = Byte()) {
      if (c == '\n') return true;
      if (line.size() < kLongest) {
        line.push_back(static_cast<char>(c));
      } else {
        cut = true;
      }
    }
    return !line.empty();
  }

 private:
  int Byte() {
    if (at_ == size_) {
      size_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
      at_ = 0;
      if (size_ == 0) return EOF;
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

  std::FILE* file_;
  std::array<char, 65'536> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
};

// What a file of these first bytes must be piped through, or nothing.
std::string_view Unpacker(std::string_view line) {
  if (line.starts_with("\x1f\x8b")) return "zcat";
  if (line.starts_with("\x28\xb5\x2f\xfd")) return "zstdcat";
  if (line.starts_with("\xfd"
                       "7zXZ"))
    return "xzcat";
  if (line.starts_with("BZh")) return "bzcat";
  return {};
}

// Reads logs line by line into a profile.
class Reader {
 public:
  Reader(std::vector<LogFormat> formats, const LogProfile::Options& options)
      : formats_(std::move(formats)), options_(options) {}

  // Each file is read once, from its first line to its last.
  std::optional<Error> Read(const std::string& path);
  // What was broken, and its lines.
  void PrintBroken() const;

  uint64_t lines() const { return lines_; }
  uint64_t broken() const { return broken_; }
  // Null until a line was understood.
  const LogProfile* profile() const { return profile_ ? &*profile_ : nullptr; }
  const LogFormat& format() const { return formats_[chosen_]; }

 private:
  std::optional<LogEntry> ReadLine(std::string_view line, std::string* why);

  std::vector<LogFormat> formats_;
  size_t chosen_ = 0;
  const LogProfile::Options& options_;
  std::optional<LogProfile> profile_;
  uint64_t lines_ = 0;
  uint64_t broken_ = 0;
  std::vector<std::string> first_broken_;
};

// The first line that a format understands chooses it for all.
std::optional<LogEntry> Reader::ReadLine(std::string_view line,
                                         std::string* why) {
  if (profile_) return formats_[chosen_].Read(line, why);
  for (size_t i = 0; i < formats_.size(); ++i) {
    const auto entry = formats_[i].Read(line, why);
    if (!entry) continue;
    chosen_ = i;
    profile_.emplace(formats_[i], options_);
    return entry;
  }
  return std::nullopt;
}

std::optional<Error> Reader::Read(const std::string& path) {
  const bool standard = path == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      standard ? stdin : std::fopen(path.c_str(), "rb"),
      standard ? [](std::FILE*) { return 0; } : std::fclose);
  if (file == nullptr) {
    return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  }
  LineReader reader(file.get());
  std::string line;
  std::string why;
  bool cut = false;
  for (uint64_t number = 1; reader.Next(line, cut); ++number) {
    if (number == 1) {
      if (const std::string_view unpacker = Unpacker(line); !unpacker.empty()) {
        return standard
                   ? Error{fmt::format("the standard input is compressed; put "
                                       "{} before it",
                                       unpacker)}
                   : Error{fmt::format(
                         "{} is compressed; pipe it: {} {} | weir replay -",
                         path, unpacker, path)};
      }
    }
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    ++lines_;
    std::optional<LogEntry> entry;
    if (cut) {
      why = "is longer than 64 KiB";
    } else {
      entry = ReadLine(line, first_broken_.size() < 3 ? &why : nullptr);
    }
    if (entry) {
      profile_->Add(*entry);
      continue;
    }
    ++broken_;
    if (first_broken_.size() < 3) {
      first_broken_.push_back(fmt::format(
          "{}:{}: {}", standard ? "standard input" : path, number, why));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  }
  return std::nullopt;
}

void Reader::PrintBroken() const {
  if (broken_ == 0) return;
  fmt::print(stderr, "weir: {} of {} lines are not of this format{}\n", broken_,
             lines_,
             broken_ > first_broken_.size() ? "; the first three:" : ":");
  for (const std::string& line : first_broken_) {
    // Logs hold whatever strangers send; a terminal gets none of it raw.
    std::string safe;
    for (const char c : line) {
      const auto byte = static_cast<unsigned char>(c);
      safe += byte >= 0x20 && byte < 0x7f ? std::string(1, c)
                                          : fmt::format("\\x{:02x}", byte);
    }
    fmt::print(stderr, "  {}\n", safe);
  }
}

Result<std::vector<LogFormat>> Formats(const Options& options) {
  std::vector<std::string_view> texts = {kWeirLogFormat, kPlainLogFormat,
                                         kCombinedLogFormat, kMainLogFormat};
  if (options.format == "combined") {
    texts = {kCombinedLogFormat};
  } else if (options.format == "main") {
    texts = {kMainLogFormat};
  } else if (options.format == "weir") {
    texts = {kWeirLogFormat, kPlainLogFormat};
  } else if (!options.format.empty()) {
    texts = {options.format};
  }
  std::vector<LogFormat> formats;
  for (const std::string_view text : texts) {
    auto format = LogFormat::Parse(text, options.client);
    if (!format) return format.error();
    formats.push_back(*std::move(format));
  }
  return formats;
}

// A duration of an option, which may be absent.
std::optional<Error> ReadDuration(std::string_view option,
                                  const std::string& text,
                                  std::optional<Duration>& out) {
  if (text.empty()) return std::nullopt;
  const auto duration = config::ParseDuration(text);
  if (!duration || *duration <= Duration{}) {
    return Error{fmt::format(
        "{} {}: {}; write it as 20ms or 1.5s", option, text,
        duration ? "it is not above zero" : duration.error().message)};
  }
  out = *duration;
  return std::nullopt;
}

std::optional<Error> ReadInstant(std::string_view option,
                                 const std::string& text,
                                 std::optional<Duration>& out) {
  if (text.empty()) return std::nullopt;
  const auto time = ParseIsoTime(text);
  if (!time) {
    return Error{
        fmt::format("{} {}: write it with its zone, as "
                    "2024-05-01T12:00:00+02:00 or 2024-05-01T10:00:00Z",
                    option, text)};
  }
  out = time->utc;
  return std::nullopt;
}

std::optional<Error> ReadRules(std::string_view option,
                               const std::vector<std::string>& texts,
                               std::vector<LogRule>& out) {
  for (const std::string& text : texts) {
    auto rule = LogRule::Parse(text);
    if (!rule)
      return Error{fmt::format("{}: {}", option, rule.error().message)};
    if (option == "--class" && !ParseCriticality(rule->value)) {
      return Error{fmt::format(
          "--class: `{}` is no criticality; there are vital, important, "
          "deferrable and sheddable",
          rule->value)};
    }
    out.push_back(*std::move(rule));
  }
  return std::nullopt;
}

std::string NameOf(const Options& options) {
  std::string name = options.name;
  if (name.empty()) {
    name = options.logs[0] == "-"
               ? "replay"
               : std::filesystem::path(options.logs[0]).stem().string();
  }
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (!plain) c = '-';
  }
  return name.substr(0, 64);
}

// Plays what was made of the log, after saying what that is.
int Play(const Options& options, const ReplayedScenario& made) {
  SimOptions sim = options.sim;
  const std::string name =
      options.out.empty() ? NameOf(options) + ".toml" : options.out;
  sim.scenarios = {name};
  auto scenario = scenario::ParseScenario(made.toml, name);
  if (!scenario) {
    std::fputs(scenario.complaints().Print("nothing was played").c_str(),
               stderr);
    return kCouldNotRun;
  }
  // The standard output of --json is one object for a program to read.
  std::FILE* const to = sim.json ? stderr : stdout;
  for (const std::string& note : made.notes) fmt::print(to, "{}\n", note);
  if (!sim.json) fmt::print("\n");
  return PlayScenario(sim, *std::move(scenario));
}

// Options of playing without --sim would do nothing, unnoticed.
std::optional<Error> CheckPlaying(const Options& options) {
  const SimOptions& sim = options.sim;
  if (!options.play) {
    for (const auto& [name, given] :
         {std::pair{"--against", !sim.against.empty()},
          {"--seeds", !sim.seeds.empty()},
          {"--report", !sim.report.empty()},
          {"--json", sim.json}}) {
      if (given) {
        return Error{fmt::format(
            "{} is about playing the scenario; add --sim, or --policy P.toml",
            name)};
      }
    }
  }
  if (!sim.report.empty() && options.out.empty()) {
    return Error{
        "--report says how to play the scenario again, so there must be a "
        "file of it; add --out FILE.toml"};
  }
  return std::nullopt;
}

int Run(Options options) {
  options.play = options.play || !options.sim.policy.empty();
  if (const auto error = CheckPlaying(options)) {
    return Fail(kWrongInput, error->message);
  }
  // A wrong policy is better known before hours of log are read.
  std::shared_ptr<const Policy> policy;
  if (!LoadPolicyOf(options.sim.policy, policy)) return kWrongInput;
  auto formats = Formats(options);
  if (!formats)
    return Fail(kWrongInput, "--format: " + formats.error().message);
  LogProfile::Options profile;
  ReplayOptions replay{.name = NameOf(options), .workers = options.workers};
  replay.most_routes = static_cast<size_t>(options.most_routes);
  replay.most_steps = static_cast<size_t>(options.most_steps);
  for (const std::optional<Error>& error :
       {ReadDuration("--deadline", options.deadline, replay.deadline),
        ReadDuration("--time", options.time, replay.time),
        ReadInstant("--from", options.from, profile.from),
        ReadInstant("--to", options.to, profile.to),
        ReadRules("--class", options.classes, profile.classes),
        ReadRules("--route", options.routes, profile.routes)}) {
    if (error) return Fail(kWrongInput, error->message);
  }
  Reader reader(*std::move(formats), profile);
  for (const std::string& log : options.logs) {
    if (const auto error = reader.Read(log)) {
      return Fail(kWrongInput, error->message);
    }
  }
  reader.PrintBroken();
  if (reader.profile() == nullptr) {
    return Fail(kWrongInput,
                reader.lines() == 0
                    ? "the log is empty"
                    : "no line is of this format; pass --format with what "
                      "stands in your log_format, in single quotes");
  }
  const auto made = MakeReplay(*reader.profile(), reader.format(), replay);
  if (!made) return Fail(kWrongInput, made.error().message);
  if (options.out.empty()) {
    if (options.play) return Play(options, *made);
    // The notes stand at the head of the file.
    fmt::print("{}", made->toml);
    return kFine;
  }
  std::ofstream file(options.out, std::ios::binary);
  file << made->toml;
  if (!file.flush()) {
    return Fail(kCouldNotRun, fmt::format("cannot write {}: {}", options.out,
                                          std::strerror(errno)));
  }
  if (options.play) return Play(options, *made);
  for (const std::string& note : made->notes) fmt::print("{}\n", note);
  return kFine;
}

}  // namespace

void AddReplayCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("replay", "Turn an nginx access log into a scenario");
  command->footer(
      "The best log to replay is written by\n"
      "  log_format weir '$remote_addr [$msec] \"$request\" $status "
      "$request_time '\n"
      "                  '\"$upstream_response_time\" "
      "\"$http_weir_criticality\"';");
  command
      ->add_option("logs", options->logs,
                   "Access logs, uncompressed; - is the standard input")
      ->required()
      ->type_name("FILE");
  command
      ->add_option(
          "--format", options->format,
          "combined, main, weir, or the text of your log_format; tried in "
          "turn when absent")
      ->type_name("FORMAT");
  command
      ->add_option("--client", options->client,
                   "The variable that tells callers apart")
      ->capture_default_str();
  command
      ->add_option("--out", options->out,
                   "Write the scenario here and the findings to the "
                   "standard output; else all goes there")
      ->type_name("FILE");
  command->add_option("--name", options->name,
                      "Name of the scenario; after the log when absent");
  command->add_option("--deadline", options->deadline,
                      "An answer within it is good; 1s when absent");
  command->add_option("--time", options->time,
                      "Service time of every request, instead of the log's");
  command
      ->add_option("--workers", options->workers,
                   "How many requests the service works on at a time; "
                   "estimated when absent")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--from", options->from,
                      "Leave out what arrived before, as "
                      "2024-05-01T12:00:00+02:00");
  command->add_option("--to", options->to,
                      "Leave out what arrived from then on");
  command
      ->add_option("--class", options->classes,
                   "How critical requests are, as '/checkout*=vital' or 'POST "
                   "/*=vital'; the first that matches counts")
      ->type_name("PATTERN=CRITICALITY")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--route", options->routes,
                   "What requests are one route, as '/api/*=/api'")
      ->type_name("PATTERN=ROUTE")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--routes", options->most_routes,
                   "Routes at most; the rest is one")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--steps", options->most_steps, "Steps of the rate at most")
      ->check(CLI::Range(1, 5000))
      ->capture_default_str();
  command->add_flag("--sim", options->play,
                    "Play it at once, as weir sim does; --out keeps it too");
  command
      ->add_option("--policy", options->sim.policy, "Play it under this policy")
      ->type_name("FILE");
  command->add_option("--against", options->sim.against,
                      "With --sim: compare with these, as in weir sim");
  command->add_option("--seeds", options->sim.seeds,
                      "With --sim: such as 1-10");
  command
      ->add_option("--report", options->sim.report,
                   "With --sim and --out: write tables and charts to this "
                   "HTML file")
      ->type_name("FILE");
  command->add_flag("--json", options->sim.json,
                    "With --sim: print one JSON object; the findings go to "
                    "the standard error");
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
