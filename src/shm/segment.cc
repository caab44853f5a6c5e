#include "weir/shm/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "process.h"
#include "segment_file.h"
#include "weir/shm/lease.h"

namespace weir::shm {
namespace {

constexpr std::string_view kDirectory = "/dev/shm";
constexpr std::string_view kPrefix = "weir.";

// What every version begins with: enough to tell whose it is.
struct Preamble {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint64_t layout;
};
static_assert(offsetof(Region, header) == 0);
static_assert(offsetof(Region::Header, magic) == offsetof(Preamble, magic));
static_assert(offsetof(Region::Header, version) == offsetof(Preamble, version));
static_assert(offsetof(Region::Header, size) == offsetof(Preamble, size));
static_assert(offsetof(Region::Header, layout) == offsetof(Preamble, layout));

std::string RemoveHint(std::string_view service) {
  return "stop what uses it, then run `weir segment remove " +
         std::string(service) + '`';
}

// The name becomes part of a path, so it must not bring a '/'.
std::optional<Error> CheckName(std::string_view service) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (!service.empty() && service.size() <= kMaxNameBytes &&
      std::all_of(service.begin(), service.end(), allowed)) {
    return std::nullopt;
  }
  return Error{"error: `" + std::string(service) +
               "` cannot be the name of a service\n"
               "  why: names are 1 to 47 characters of a-z, 0-9 and '-'\n"
               "  fix: give the `service` of the policy; `weir segment list` "
               "shows those there are"};
}

int OpenSegment(const std::string& path, int access) {
  // O_NONBLOCK: a FIFO of that name must not stop us.
  return ::open(path.c_str(), access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

bool Lock(int fd, int operation) {
  int status;
  do {
    status = ::flock(fd, operation);
  } while (status != 0 && errno == EINTR);
  return status == 0;
}

// What the file at `path` is and what `fd` has open are the same.
bool IsAt(int fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Whether a region of weir is there, be it of another version.
bool IsOtherVersion(int fd) {
  Preamble preamble{};
  return ::pread(fd, &preamble, sizeof preamble, 0) ==
             static_cast<ssize_t>(sizeof preamble) &&
         preamble.magic == Region::kMagic &&
         (preamble.version != Region::kVersion ||
          preamble.layout != Region::LayoutHash() ||
          preamble.size != sizeof(Region));
}

// Whether its content is a region of this version.
std::optional<Complaint> CheckContent(int fd, const struct stat& file,
                                      std::string_view service) {
  Preamble preamble{};
  if (::pread(fd, &preamble, sizeof preamble, 0) !=
          static_cast<ssize_t>(sizeof preamble) ||
      preamble.magic != Region::kMagic) {
    return Complaint{"holds no region of weir",
                     "it does not begin as one; another program made it, or "
                     "something wrote over it",
                     RemoveHint(service)};
  }
  if (preamble.version != Region::kVersion ||
      preamble.layout != Region::LayoutHash() ||
      preamble.size != sizeof(Region)) {
    const bool same = preamble.version == Region::kVersion;
    return Complaint{
        "made by another version of weir (region version " +
            std::to_string(preamble.version) +
            (same ? " of another layout or build"
                  : ", this is " + std::to_string(Region::kVersion)) +
            ')',
        "the two lay out shared memory differently and cannot share a limit",
        RemoveHint(service) + ", or run the version that made it"};
  }
  const auto size = static_cast<off_t>(sizeof(Region));
  if (file.st_size < size || file.st_blocks * 512 < size) {
    return Complaint{"torn: pages of the region are missing",
                     "it has " + std::to_string(file.st_size) + " bytes (" +
                         std::to_string(file.st_blocks * 512) +
                         " in memory) of " + std::to_string(size),
                     RemoveHint(service)};
  }
  return std::nullopt;
}

uint64_t NamespacesOf(int fd) {
  uint64_t namespaces = 0;
  return ::pread(fd, &namespaces, sizeof namespaces,
                 offsetof(Region::Header, namespaces)) ==
                 static_cast<ssize_t>(sizeof namespaces)
             ? namespaces
             : 0;
}

// Who planted a segment may have written any name into it; it must not lead a
// reader anywhere.
std::optional<Complaint> CheckService(int fd, std::string_view service) {
  std::array<char, kMaxNameBytes + 1> name{};
  if (::pread(fd, name.data(), name.size(),
              offsetof(Region::Header, service)) ==
          static_cast<ssize_t>(name.size()) &&
      service.size() < name.size() &&
      std::equal(service.begin(), service.end(), name.begin()) &&
      name[service.size()] == '\0') {
    return std::nullopt;
  }
  return Complaint{"holds the region of another service",
                   "its header and its name do not agree; somebody renamed or "
                   "planted it",
                   RemoveHint(service)};
}

std::optional<Complaint> Inspect(int fd, std::string_view service, Use use) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) {
    return Complaint{"cannot be looked at", System(errno), "see the cause"};
  }
  if (auto complaint = CheckOwner(file, use)) return complaint;
  if (auto complaint = CheckContent(fd, file, service)) return complaint;
  return CheckService(fd, service);
}

Complaint CannotOpen(const std::string& path, int code, Use use) {
  if (code == ELOOP || code == ENXIO || code == ENODEV || code == EISDIR) {
    return Complaint{"not a segment of shared memory",
                     "something else than a file has its name",
                     "remove it, or name the service otherwise"};
  }
  struct stat file {};
  if (code == EACCES && ::lstat(path.c_str(), &file) == 0) {
    if (auto complaint = CheckOwner(file, use)) return *complaint;
    const uid_t user = ::geteuid();
    if (file.st_uid != user) {
      return Complaint{
          "belongs to another user (uid " + std::to_string(file.st_uid) +
              ", this is uid " + std::to_string(user) +
              "), and is not for others to look at",
          "a segment is for its own user and root, unless the service gives a "
          "group the right to read it",
          "run this as that user or as root"};
    }
    return Complaint{"its mode does not let its own user open it",
                     "weir makes segments with mode 0600",
                     "find out who changed it; then `chmod 600` it"};
  }
  return Complaint{"cannot be opened", System(code),
                   code == EMFILE || code == ENFILE
                       ? "allow more open files (`ulimit -n`)"
                       : "check that " + std::string(kDirectory) +
                             " is a tmpfs that this user may use"};
}

// Maps what Inspect() found to be good.
Result<Mapping> Map(Mapping file, const std::string& path,
                    std::string_view service, int protection) {
  const int fd = file.fd();
  // Populate: no page fault, hence no stall, at the first request.
  void* memory = ::mmap(nullptr, sizeof(Region), protection,
                        MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) {
    return At(path, {"cannot be mapped", System(errno),
                     "free memory, or raise the "
                     "memory limit of the service"});
  }
  file.Adopt(memory);
  if (auto wrong = Region::CheckLayout(memory, sizeof(Region))) {
    return At(path,
              {"holds no sound region", wrong->message, RemoveHint(service)});
  }
  return file;
}

// Takes the name from a segment that nobody uses.  Nobody can begin to use it
// meanwhile, as we hold the lock for ourselves; and nobody but who holds that
// lock takes the name away, so what was looked at under it is what goes.
enum class Removal { kDone, kUsed, kNotThere, kFailed };
Removal RemoveIfUnused(int fd, const std::string& path) {
  if (!Lock(fd, LOCK_EX | LOCK_NB)) return Removal::kUsed;
  if (!IsAt(fd, path)) return Removal::kNotThere;
  if (::unlink(path.c_str()) == 0) return Removal::kDone;
  return errno == ENOENT ? Removal::kNotThere : Removal::kFailed;
}

// One who replaces a segment has its lock for a moment, and so has one who
// asks whether he may.  Chosen: a second in all, far more than a moment.
constexpr int kTries = 100;
constexpr int kTryMs = 10;

const Complaint kOtherNamespace = {
    "used by processes of another pid or time namespace",
    "their workers and these could not see each other die, nor agree on the "
    "time",
    "give each container its own /dev/shm, or let them share pids "
    "(`--pid=host`, `shareProcessNamespace: true`)"};

// What one look at the name found.
struct Found {
  enum class State {
    kNothing,
    kGood,     // `mapping`, with the lock of those who use it.
    kUseless,  // `complaint`, but it may be replaced if nobody uses it.
    kRefused,  // `complaint`.
  };
  State state;
  std::optional<Mapping> mapping;
  std::optional<Error> complaint;
};

Found Refused(Error error) {
  return {Found::State::kRefused, std::nullopt, std::move(error)};
}

Found Useless(Mapping file, const std::string& path,
              const Complaint& complaint) {
  return {Found::State::kUseless, std::move(file), At(path, complaint)};
}

Found Look(std::string_view service) {
  const std::string path = SegmentPath(service);
  const int fd = OpenSegment(path, O_RDWR);
  if (fd < 0) {
    if (errno == ENOENT) return {Found::State::kNothing, {}, {}};
    return Refused(At(path, CannotOpen(path, errno, Use::kWork)));
  }
  Mapping file(fd, nullptr);
  if (auto complaint = Inspect(fd, service, Use::kWork)) {
    struct stat info {};
    const bool ours = ::fstat(fd, &info) == 0 && !CheckOwner(info, Use::kWork);
    if (ours && IsOtherVersion(fd)) {
      return Useless(std::move(file), path, *complaint);
    }
    return Refused(At(path, *complaint));
  }
  // Before there is a lock of ours on it, which would keep others from removing
  // what nobody uses.
  if (NamespacesOf(fd) != Namespaces()) {
    return Useless(std::move(file), path, kOtherNamespace);
  }
  // Held by those who use it; one who replaces it has it for a moment.
  if (!Lock(fd, LOCK_SH)) {
    return Refused(
        At(path, {"cannot be locked", System(errno), "see the cause"}));
  }
  // It may have been removed before we had the lock; then it is nobody's.
  if (!IsAt(fd, path)) return {Found::State::kNothing, {}, {}};
  Result<Mapping> mapping =
      Map(std::move(file), path, service, PROT_READ | PROT_WRITE);
  if (!mapping) return Refused(mapping.error());
  return {Found::State::kGood, std::move(*mapping), {}};
}

Error CannotMake(const std::string& path, const char* step, int code) {
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
    return At(path, {std::string(kDirectory) + " has no room for the region",
                     "it takes " + std::to_string(sizeof(Region)) +
                         " bytes: " + System(code),
                     "remove what is not needed there (`weir segment list`), "
                     "or make it larger (`mount -o remount,size=`, docker "
                     "`--shm-size`)"});
  }
  return At(path,
            {"cannot be made (" + std::string(step) + ')', System(code),
             "check that " + std::string(kDirectory) +
                 " is a tmpfs that this user may write, and /proc is mounted"});
}

// Gives others the access that they shall have, whatever the umask.
std::optional<Error> GiveAccess(int fd, const std::string& path,
                                const SegmentAccess& access) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return CannotMake(path, "stat", errno);
  if (access.group != static_cast<gid_t>(-1) && access.group != file.st_gid &&
      ::fchown(fd, static_cast<uid_t>(-1), access.group) != 0) {
    return At(path, {"cannot be given to group " + std::to_string(access.group),
                     System(errno),
                     "name a group that this user is in, or run it as root"});
  }
  if ((file.st_mode & 07777) != access.mode && ::fchmod(fd, access.mode) != 0) {
    return CannotMake(path, "chmod", errno);
  }
  return std::nullopt;
}

// Makes the segment and gives it its name.  Nothing when another process was
// first.
std::optional<Result<Mapping>> Make(const Policy& policy, Instant now,
                                    const SegmentAccess& access) {
  const std::string path = SegmentPath(policy.service);
  const int fd =
      ::open(kDirectory.data(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return CannotMake(path, "open", errno);
  Mapping mapping(fd, nullptr);
  if (auto wrong = GiveAccess(fd, path, access)) return *wrong;
  // Takes the pages now: a full tmpfs must say so here, not by a SIGBUS later.
  if (int code = ::posix_fallocate(fd, 0, sizeof(Region)); code != 0) {
    return CannotMake(path, "allocate", code);
  }
  if (!Lock(fd, LOCK_SH)) return CannotMake(path, "lock", errno);
  void* memory = ::mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) return CannotMake(path, "map", errno);
  mapping.Adopt(memory);
  std::array<uint64_t, 3> random{};
  if (::getrandom(random.data(), sizeof random, 0) !=
      static_cast<ssize_t>(sizeof random)) {
    return CannotMake(path, "random", errno);
  }
  Region* region = Region::Create(memory, policy.service, policy, now,
                                  {random[0], random[1]});
  region->header.identity.store(random[2] | 1, std::memory_order_relaxed);
  region->header.namespaces.store(Namespaces(), std::memory_order_relaxed);
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    if (errno == EEXIST) return std::nullopt;
    return CannotMake(path, "link", errno);
  }
  return mapping;
}

int AliveWorkers(const Region& region) {
  const bool same_host = SameHost(region);
  int alive = 0;
  for (int shard = 0; shard < static_cast<int>(Region::kShards); ++shard) {
    const ProcessId owner = region.Owner(shard);
    if (owner.pid != 0 && (!same_host || IsAlive(owner))) ++alive;
  }
  return alive;
}

SegmentInfo Describe(std::string_view service, const struct stat& file) {
  SegmentInfo info{.service = std::string(service),
                   .owner = file.st_uid,
                   .size = static_cast<size_t>(file.st_size),
                   .workers = 0,
                   .problem = {}};
  const auto region = ObservedRegion::Open(service);
  if (!region) {
    // The first line, behind "PATH: error: ".
    const std::string& message = region.error().message;
    const std::string head = SegmentPath(service) + ": error: ";
    info.problem = message.substr(0, message.find('\n'));
    if (info.problem.starts_with(head)) info.problem.erase(0, head.size());
  } else {
    info.workers = AliveWorkers(**region);
  }
  return info;
}

}  // namespace

Error At(const std::string& path, const Complaint& complaint) {
  return Error{path + ": error: " + complaint.what +
               "\n  why: " + complaint.why + "\n  fix: " + complaint.fix};
}

std::string System(int code) { return std::strerror(code); }

std::optional<Complaint> CheckOwner(const struct stat& file, Use use) {
  if (!S_ISREG(file.st_mode)) {
    return Complaint{"not a segment of shared memory",
                     "something else than a file has its name",
                     "remove it, or name the service otherwise"};
  }
  const uid_t user = ::geteuid();
  if (use != Use::kLook && file.st_uid != user &&
      !(use == Use::kOperate && user == 0)) {
    return Complaint{
        "belongs to another user (uid " + std::to_string(file.st_uid) +
            ", this is uid " + std::to_string(user) + ')',
        "anybody may make files there; one that another user planted could "
        "steer or read this service",
        use == Use::kOperate
            ? "run this as that user or as root"
            : "run the service as that user, or name it otherwise, or "
              "let that user or root remove the segment"};
  }
  if ((file.st_mode & 0133) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", file.st_mode & 07777U);
    return Complaint{
        std::string("open to other users (mode ") + mode.data() + ')',
        "weir makes segments that only their user may write; what others may "
        "write cannot be trusted",
        "find out who changed it; then `chmod 600` it, or remove it"};
  }
  return std::nullopt;
}

bool HasName(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && file.st_nlink > 0;
}

Mapping::~Mapping() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof(Region));
  if (fd_ >= 0) ::close(fd_);
}

std::string SegmentPath(std::string_view service) {
  return std::string(kDirectory) + '/' + std::string(kPrefix) +
         std::string(service);
}

Result<SharedRegion> SharedRegion::Open(const Policy& policy, Instant now,
                                        const SegmentAccess& access) {
  if (auto wrong = policy.Check()) return *wrong;
  const std::string path = SegmentPath(policy.service);
  if (Namespaces() == 0) {
    return At(path, {"cannot be used without /proc",
                     "whether a worker is alive is read there", "mount /proc"});
  }
  if ((access.mode & ~mode_t{0044}) != 0600) {
    return At(path, {"cannot have that mode",
                     "others may look at a segment, never write it",
                     "take 0600, 0640, 0604 or 0644"});
  }
  std::string replaced;
  std::optional<Error> last;
  for (int turn = 0; turn < kTries; ++turn) {
    if (turn > 0 && last) ::poll(nullptr, 0, kTryMs);
    last.reset();
    Found found = Look(policy.service);
    if (found.state == Found::State::kRefused) return *found.complaint;
    if (found.state == Found::State::kUseless) {
      const Removal removal = RemoveIfUnused(found.mapping->fd(), path);
      if (removal == Removal::kFailed) return *found.complaint;
      // Perhaps somebody only asks, as we do.
      if (removal == Removal::kUsed) last = found.complaint;
      if (removal == Removal::kDone) {
        replaced =
            "a segment that nobody used was replaced, and what it had "
            "learned is gone: " +
            found.complaint->message;
      }
      continue;
    }
    const bool created = found.state == Found::State::kNothing;
    std::optional<Result<Mapping>> opened;
    if (created) {
      opened = Make(policy, now, access);
      // Another process was first.
      if (!opened) continue;
      if (!*opened) return opened->error();
    } else {
      if (auto wrong = GiveAccess(found.mapping->fd(), path, access)) {
        return *wrong;
      }
      opened = std::move(*found.mapping);
    }
    std::string warning = LoadSwitches(**opened, policy, now);
    return SharedRegion(std::move(**opened), created, std::move(replaced),
                        std::move(warning));
  }
  if (last) return *last;
  return At(path,
            {"is made and removed again without end",
             "other processes did so 100 times while this one tried to attach",
             "find out what runs `weir segment remove`"});
}

Result<std::string> SharedRegion::Foresee(const Policy& policy) {
  if (auto wrong = policy.Check()) return *wrong;
  Found found = Look(policy.service);
  if (found.state == Found::State::kRefused) return *found.complaint;
  if (found.state != Found::State::kUseless) return std::string();
  // Asks no longer than for a moment, and leaves it there.
  for (int turn = 0; turn < kTries; ++turn) {
    if (Lock(found.mapping->fd(), LOCK_EX | LOCK_NB)) {
      return "a segment that nobody uses will be replaced: " +
             found.complaint->message;
    }
    ::poll(nullptr, 0, kTryMs);
  }
  return *found.complaint;
}

Result<Mapping> OpenExisting(std::string_view service, Use use) {
  if (auto wrong = CheckName(service)) return *wrong;
  const std::string path = SegmentPath(service);
  const int fd = OpenSegment(path, use == Use::kLook ? O_RDONLY : O_RDWR);
  if (fd < 0 && errno == ENOENT) {
    return At(path, {"there is no such segment",
                     "no service of that name has run here since boot, or it "
                     "runs in another container",
                     "start the service, or see `weir segment list`"});
  }
  if (fd < 0) return At(path, CannotOpen(path, errno, use));
  Mapping file(fd, nullptr);
  if (auto complaint = Inspect(fd, service, use)) return At(path, *complaint);
  if (use == Use::kLook) return file;
  return Map(std::move(file), path, service, PROT_READ | PROT_WRITE);
}

void ObservedRegion::Free::operator()(Region* region) const {
  std::free(region);
}

Result<ObservedRegion> ObservedRegion::Open(std::string_view service) {
  auto file = OpenExisting(service, Use::kLook);
  if (!file) return file.error();
  ObservedRegion observed(std::move(*file), std::string(service));
  if (auto wrong = observed.Take(/*whole=*/true)) return *wrong;
  return observed;
}

std::optional<Error> ObservedRegion::Refresh() { return Take(/*whole=*/false); }

std::optional<Error> ObservedRegion::Take(bool whole) {
  const std::string path = SegmentPath(service_);
  std::unique_ptr<Region, Free> next(
      static_cast<Region*>(std::aligned_alloc(Region::kLine, sizeof(Region))));
  if (next == nullptr) {
    return At(path, {"cannot be read", System(ENOMEM), "free memory"});
  }
  auto* const to = reinterpret_cast<char*>(next.get());
  const auto read = [&](size_t from, size_t end) {
    while (from < end) {
      const ssize_t got = ::pread(mapping_.fd(), to + from, end - from,
                                  static_cast<off_t>(from));
      if (got <= 0) return false;
      from += static_cast<size_t>(got);
    }
    return true;
  };
  constexpr size_t kQuotas = offsetof(Region, client_quotas);
  constexpr size_t kBehind = offsetof(Region, usage);
  if (!whole && copy_ != nullptr) {
    std::copy_n(reinterpret_cast<const char*>(copy_.get()) + kQuotas,
                kBehind - kQuotas, to + kQuotas);
  }
  const bool read_all = whole
                            ? read(0, sizeof(Region))
                            : read(0, kQuotas) && read(kBehind, sizeof(Region));
  const auto wrong = read_all ? Region::CheckLayout(to, sizeof(Region))
                              : std::optional(Error{"it was cut short"});
  if (wrong || next->service() != service_) {
    return At(path, {"holds no sound region any more",
                     wrong ? wrong->message : "it says another service's name",
                     RemoveHint(service_)});
  }
  copy_ = std::move(next);
  return std::nullopt;
}

bool ObservedRegion::removed() const { return !HasName(mapping_.fd()); }

Result<std::vector<SegmentInfo>> ListSegments() {
  std::vector<SegmentInfo> found;
  DIR* directory = ::opendir(kDirectory.data());
  if (directory == nullptr) {
    return At(std::string(kDirectory),
              {"cannot be read", System(errno), "check that it is a tmpfs"});
  }
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    const std::string_view service = name.substr(kPrefix.size());
    struct stat file {};
    if (CheckName(service) ||
        ::lstat(SegmentPath(service).c_str(), &file) != 0) {
      continue;
    }
    if (::geteuid() == file.st_uid ||
        ::access(SegmentPath(service).c_str(), R_OK) == 0) {
      found.push_back(Describe(service, file));
    }
  }
  ::closedir(directory);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.service < b.service; });
  return found;
}

std::optional<Error> RemoveSegment(std::string_view service, bool force) {
  if (auto wrong = CheckName(service)) return wrong;
  const std::string path = SegmentPath(service);
  const auto failed = [&](int code) {
    return At(path, {"cannot be removed", System(code),
                     "run this as its owner or as root"});
  };
  for (int turn = 0; turn < kTries; ++turn) {
    const int fd = OpenSegment(path, O_RDONLY);
    const int code = errno;
    const Mapping closer(fd, nullptr);
    if (fd < 0 && code == ENOENT) {
      return At(path, {"there is no such segment", "nothing has that name",
                       "see `weir segment list`"});
    }
    if (fd < 0 && !force)
      return At(path, CannotOpen(path, code, Use::kOperate));
    if (force) {
      if (::unlink(path.c_str()) == 0) return std::nullopt;
      return failed(errno);
    }
    switch (RemoveIfUnused(fd, path)) {
      case Removal::kDone:
        return std::nullopt;
      case Removal::kFailed:
        return failed(errno);
      case Removal::kNotThere:
        break;  // Another one has its name now.
      case Removal::kUsed:
        ::poll(nullptr, 0, kTryMs);
    }
  }
  return At(path, {"still used",
                   "at least one process has it mapped; workers that start "
                   "later would not share its limit",
                   "stop the service first, or add `--force`"});
}

}  // namespace weir::shm
