#include <utility>

#include "file.h"
#include "own_cgroup.h"
#include "text.h"
#include "weir/host/load.h"

namespace weir::host {
namespace {

// The value of a word "KEY=VALUE"; empty when it is not one.
std::string_view After(std::string_view key, std::string_view word) {
  if (word.substr(0, key.size()) != key) return {};
  return word.substr(key.size());
}

// "some avg10=P avg60=P avg300=P total=MICROSECONDS", the first word taken.
std::optional<Stall> ParseStall(std::string_view line) {
  const auto percent = ToReal(After("avg10=", TakeWord(line)));
  TakeWord(line);
  TakeWord(line);
  const auto total =
      ToTime(After("total=", TakeWord(line)), std::chrono::microseconds(1));
  if (!percent || *percent > 100 || !total) return std::nullopt;
  return Stall{*percent / 100, *total};
}

std::optional<PressureReading> ParsePressure(std::string_view text) {
  std::optional<Stall> some;
  std::optional<Stall> full = Stall();
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    const std::string_view kind = TakeWord(line);
    if (kind == "some") some = ParseStall(line);
    if (kind == "full") full = ParseStall(line);
  }
  if (!some || !full) return std::nullopt;
  return PressureReading{*some, *full};
}

Reading<PressureReading> ReadPressure(File& file) {
  Buffer buffer;
  const auto text = file.Read(buffer);
  if (!text) {
    const std::string_view fix =
        file.absent() ? "; is the kernel booted with psi=1" : "";
    return Reading<PressureReading>::Inert(text.error().message +
                                           std::string(fix));
  }
  if (const auto pressure = ParsePressure(*text)) return *pressure;
  return Reading<PressureReading>::Inert(file.Says("no pressure in it"));
}

}  // namespace

std::string_view Name(PressureKind kind) {
  constexpr std::string_view kNames[] = {"cpu", "memory", "io"};
  return kNames[static_cast<size_t>(kind)];
}

struct Pressure::State {
  File file;
};

Pressure::Pressure(PressureKind kind, const std::string& root)
    : state_(std::make_unique<State>(
          State{File(root + "/proc/pressure/" + std::string(Name(kind)))})) {}
Pressure::~Pressure() = default;
Pressure::Pressure(Pressure&&) noexcept = default;
Pressure& Pressure::operator=(Pressure&&) noexcept = default;

Reading<PressureReading> Pressure::Read() { return ReadPressure(state_->file); }

struct CgroupPressure::State {
  struct Files {
    explicit Files(const std::string& directory)
        : cpu(directory + "/cpu.pressure"),
          memory(directory + "/memory.pressure"),
          io(directory + "/io.pressure") {}
    File cpu, memory, io;
  };

  explicit State(std::string root) : own(std::move(root)) {}

  OwnCgroup own;
  std::optional<Files> files;
};

CgroupPressure::CgroupPressure(std::string root)
    : state_(std::make_unique<State>(std::move(root))) {}
CgroupPressure::~CgroupPressure() = default;
CgroupPressure::CgroupPressure(CgroupPressure&&) noexcept = default;
CgroupPressure& CgroupPressure::operator=(CgroupPressure&&) noexcept = default;

Pressures CgroupPressure::Read(Instant now) {
  State& state = *state_;
  const CgroupPlace& place = state.own.unified();
  if (state.own.Refresh(now)) {
    state.files.reset();
    if (place && *place) state.files.emplace((*place)->leaf());
  }
  if (!state.files) {
    const auto none = Reading<PressureReading>::Inert(
        place ? "this process is in no cgroup v2, and v1 has no pressure"
              : place.error().message);
    return {none, none, none};
  }
  return {ReadPressure(state.files->cpu), ReadPressure(state.files->memory),
          ReadPressure(state.files->io)};
}

}  // namespace weir::host
