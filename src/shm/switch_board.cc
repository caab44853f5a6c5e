#include "weir/shm/switch_board.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "segment_file.h"
#include "switch_file.h"
#include "weir/snapshot.h"

namespace weir::shm {
namespace {

// A file of switches has a line for each of 64 resources at most.
constexpr size_t kMostBytes = 16384;

// The turn to change or load switches, while it lives.  A lock of its own kind,
// apart from the flock() by which a segment is known to be used.
class Turn {
 public:
  explicit Turn(int fd) : fd_(fd) {
    // Chosen: a second in all.  Its holder needs far less, unless it is
    // stopped, and a service must not wait for that to start.
    constexpr int kTries = 100;
    for (int i = 0; i < kTries && !held_; ++i) {
      if (i > 0) ::poll(nullptr, 0, 10);
      held_ = Lock(F_WRLCK);
    }
  }
  ~Turn() {
    if (held_) Lock(F_UNLCK);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool held() const { return held_; }

 private:
  bool Lock(short type) const {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return ::fcntl(fd_, F_OFD_SETLK, &lock) == 0;
  }

  int fd_;
  bool held_ = false;
};

const Complaint kNoTurn = {
    "another process holds the turn to change its switches",
    "it had it for a second, so it must be stopped or hang",
    "find it (`weir switch`, `lsof` on the segment), let it go on or end it"};

struct File {
  std::optional<std::vector<NamedSwitch>> switches;
  std::optional<Complaint> complaint;
};

// No switches when there is no file.  It must be of the user whose segment it
// is for, or root's: anybody may make files there.
File ReadFile(const std::string& path, int segment) {
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return {std::vector<NamedSwitch>{}, {}};
  const Mapping closer(fd, nullptr);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) {
    return {{}, Complaint{"cannot be read", System(errno), "see the cause"}};
  }
  if (auto complaint = CheckOwner(info, Use::kLook)) return {{}, complaint};
  struct stat owner {};
  if (::fstat(segment, &owner) != 0 ||
      (info.st_uid != owner.st_uid && info.st_uid != 0)) {
    return {
        {},
        Complaint{"belongs to another user (uid " +
                      std::to_string(info.st_uid) + ", the segment is of uid " +
                      std::to_string(owner.st_uid) + ')',
                  "anybody may make files there, and this one could pause the "
                  "service; "
                  "its switches are not obeyed",
                  "find out who made it; let that user or root remove it"}};
  }
  std::array<char, kMostBytes> bytes;
  size_t size = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (got > 0) size += static_cast<size_t>(got);
  } while (got > 0 && size < bytes.size());
  File file{ParseSwitches({bytes.data(), size}), {}};
  if (!file.switches) {
    file.complaint = Complaint{
        "these are no whole switches",
        "weir replaces the file as one, so something else wrote into it; the "
        "switches that are in force stay as they are",
        "look with `weir switch SERVICE`, set again what is missing; or "
        "remove the file"};
  }
  return file;
}

// The old file, or the new one; nothing between.  For `owner`, whoever does it.
std::optional<Error> WriteFile(const std::string& path, const std::string& text,
                               const struct stat& owner) {
  const auto failed = [&](int code) {
    return At(path, {"the switches cannot be kept", System(code),
                     "nothing was changed; free room in /dev/shm, or set "
                     "`paused` in the policy"});
  };
  const std::string next = path + ".new";
  ::unlink(next.c_str());  // Of one who died here.
  const int fd = ::open(
      next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return failed(errno);
  const Mapping closer(fd, nullptr);
  const auto written = ::write(fd, text.data(), text.size());
  const bool good =
      written == static_cast<ssize_t>(text.size()) && ::fchmod(fd, 0600) == 0 &&
      (::geteuid() != 0 || ::fchown(fd, owner.st_uid, owner.st_gid) == 0) &&
      ::rename(next.c_str(), path.c_str()) == 0;
  if (good) return std::nullopt;
  const int code = written >= 0 && written < static_cast<ssize_t>(text.size())
                       ? ENOSPC
                       : errno;
  ::unlink(next.c_str());
  return failed(code);
}

}  // namespace

std::string SwitchesPath(std::string_view service) {
  return SegmentPath(service) + ".switches";
}

std::string LoadSwitches(const Mapping& mapping, const Policy& policy,
                         Instant now) {
  auto& region = *static_cast<Region*>(mapping.memory());
  const std::string path = SwitchesPath(policy.service);
  const Turn turn(mapping.fd());
  if (!turn.held()) return At(path, kNoTurn).message;
  const File file = ReadFile(path, mapping.fd());
  if (file.complaint) return At(path, *file.complaint).message;
  if (file.switches->empty()) return "";
  // First the policy's, so that no name of former days takes their rows.
  for (const Resource& resource : policy.resources) {
    region.ResourceRow(resource.name);
  }
  for (const auto& [name, set] : *file.switches) {
    if (!set.ActiveAt(now)) continue;
    if (const auto row = region.ResourceRow(name)) {
      region.resources[*row].by_hand.store(set.Pack());
    }
  }
  return "";
}

Result<SwitchBoard> SwitchBoard::Open(std::string_view service) {
  auto mapping = OpenExisting(service, Use::kOperate);
  if (!mapping) return mapping.error();
  return SwitchBoard(std::move(*mapping), std::string(service));
}

Region& SwitchBoard::shared() const {
  return *static_cast<Region*>(mapping_.memory());
}

const Region& SwitchBoard::region() const { return shared(); }

std::optional<Error> SwitchBoard::Set(const std::vector<uint16_t>& rows,
                                      const Switch& set, Instant now) {
  Region& region = shared();
  const std::string segment = SegmentPath(service_);
  const std::string path = SwitchesPath(service_);
  const Turn turn(mapping_.fd());
  if (!turn.held()) return At(segment, kNoTurn);
  struct stat info {};
  if (!HasName(mapping_.fd()) || ::fstat(mapping_.fd(), &info) != 0) {
    return At(segment, {"the segment was removed",
                        "workers that start from now on make a new one",
                        "restart the service, then try again"});
  }
  const auto chosen = [&](size_t row) {
    return std::find(rows.begin(), rows.end(), row) != rows.end();
  };
  std::vector<NamedSwitch> kept;
  const Snapshot seen = Read(region);
  for (size_t row = 0; row < seen.resources.size(); ++row) {
    const Snapshot::Resource& resource = seen.resources[row];
    const Switch& after = chosen(row) ? set : resource.by_hand;
    if (after.ActiveAt(now)) kept.emplace_back(resource.name, after);
  }
  if (kept.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return At(path, {"cannot be removed", System(errno),
                       "run this as its owner or as root"});
    }
  } else if (auto wrong = WriteFile(path, PrintSwitches(kept), info)) {
    return wrong;
  }
  for (const uint16_t row : rows) {
    region.resources[row].by_hand.store(set.Pack());
  }
  return std::nullopt;
}

std::optional<Error> SwitchBoard::Begin(const Drill& drill, Instant now) {
  auto& flags = shared().flags;
  const std::string path = SegmentPath(service_);
  if (flags.overloaded.load() != 0) {
    return At(path, {"the service is overloaded",
                     "a drill in a real overload would make it worse, and "
                     "tell nothing of the branch",
                     "try again when `weir top` says ok"});
  }
  uint64_t before = flags.drill.load();
  if (Drill::Unpack(before).ActiveAt(now) ||
      !flags.drill.compare_exchange_strong(before, drill.Pack())) {
    return At(path,
              {"a drill is running", "two at once could not be told apart",
               "wait for its end (`weir top` shows it)"});
  }
  return std::nullopt;
}

bool SwitchBoard::End(const Drill& drill) {
  uint64_t expected = drill.Pack();
  return shared().flags.drill.compare_exchange_strong(expected, 0);
}

}  // namespace weir::shm
