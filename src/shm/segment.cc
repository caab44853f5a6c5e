#include "weir/shm/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

std::optional<Complaint> Inspect(int fd, std::string_view service,
                                 bool observer) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) {
    return Complaint{"cannot be looked at", System(errno), "see the cause"};
  }
  if (auto complaint = CheckOwner(file, observer)) return complaint;
  return CheckContent(fd, file, service);
}

Complaint CannotOpen(const std::string& path, int code, bool observer) {
  if (code == ELOOP || code == ENXIO || code == ENODEV || code == EISDIR) {
    return Complaint{"not a segment of shared memory",
                     "something else than a file has its name",
                     "remove it, or name the service otherwise"};
  }
  struct stat file {};
  if (code == EACCES && ::lstat(path.c_str(), &file) == 0) {
    if (auto complaint = CheckOwner(file, observer)) return *complaint;
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
Result<Mapping> Map(int fd, const std::string& path, std::string_view service,
                    int protection) {
  // Populate: no page fault, hence no stall, at the first request.
  void* memory = ::mmap(nullptr, sizeof(Region), protection,
                        MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) {
    const int code = errno;
    ::close(fd);
    return At(path, {"cannot be mapped", System(code),
                     "free memory, or raise the "
                     "memory limit of the service"});
  }
  Mapping mapping(fd, memory);
  if (auto wrong = Region::CheckLayout(memory, sizeof(Region))) {
    return At(path,
              {"holds no sound region", wrong->message, RemoveHint(service)});
  }
  return mapping;
}

// Of another namespace and used by nobody: what a container left behind that
// is gone.  Nobody can map it meanwhile, as we hold the lock for ourselves.
bool RemoveIfUnused(const Mapping& mapping, const std::string& path) {
  if (!Lock(mapping.fd(), LOCK_EX | LOCK_NB)) return false;
  return ::unlink(path.c_str()) == 0 || errno == ENOENT;
}

// Nothing when there is no such segment.
std::optional<Result<Mapping>> Attach(std::string_view service) {
  const std::string path = SegmentPath(service);
  const int fd = OpenSegment(path, O_RDWR);
  if (fd < 0) {
    if (errno == ENOENT) return std::nullopt;
    return At(path, CannotOpen(path, errno, false));
  }
  if (auto complaint = Inspect(fd, service, false)) {
    ::close(fd);
    return At(path, *complaint);
  }
  Result<Mapping> mapping = Map(fd, path, service, PROT_READ | PROT_WRITE);
  if (!mapping) return mapping;
  if (!SameHost(*static_cast<Region*>(mapping->memory()))) {
    if (RemoveIfUnused(*mapping, path)) return std::nullopt;
    return At(path,
              {"used by processes of another pid or time namespace",
               "their workers and these could not see each other die, nor "
               "agree on the time",
               "give each container its own " + std::string(kDirectory) +
                   ", or let them share pids (`--pid=host`, "
                   "`shareProcessNamespace: true`)"});
  }
  if (!Lock(mapping->fd(), LOCK_SH)) {
    return At(path, {"cannot be locked", System(errno), "see the cause"});
  }
  // It may have been removed before we had the lock; then it is nobody's.
  if (!HasName(mapping->fd())) return std::nullopt;
  return mapping;
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

// Makes the segment and gives it its name.  Nothing when another process was
// first.
std::optional<Result<Mapping>> Make(const Policy& policy, Instant now) {
  const std::string path = SegmentPath(policy.service);
  const int fd =
      ::open(kDirectory.data(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return CannotMake(path, "open", errno);
  Mapping mapping(fd, nullptr);
  // The umask may have taken bits away.
  if (::fchmod(fd, 0600) != 0) return CannotMake(path, "chmod", errno);
  // Takes the pages now: a full tmpfs must say so here, not by a SIGBUS later.
  if (int code = ::posix_fallocate(fd, 0, sizeof(Region)); code != 0) {
    return CannotMake(path, "allocate", code);
  }
  if (!Lock(fd, LOCK_SH)) return CannotMake(path, "lock", errno);
  void* memory = ::mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) return CannotMake(path, "map", errno);
  mapping.Adopt(memory);
  Region* region = Region::Create(memory, policy.service, policy, now);
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
  const std::string path = SegmentPath(service);
  const int fd = OpenSegment(path, O_RDONLY);
  if (fd < 0) {
    info.problem = CannotOpen(path, errno, true).what;
  } else if (auto complaint = Inspect(fd, service, true)) {
    ::close(fd);
    info.problem = complaint->what;
  } else if (auto mapping = Map(fd, path, service, PROT_READ); !mapping) {
    info.problem = "holds no sound region";
  } else {
    info.workers = AliveWorkers(*static_cast<const Region*>(mapping->memory()));
  }
  return info;
}

}  // namespace

Error At(const std::string& path, const Complaint& complaint) {
  return Error{path + ": error: " + complaint.what +
               "\n  why: " + complaint.why + "\n  fix: " + complaint.fix};
}

std::string System(int code) { return std::strerror(code); }

std::optional<Complaint> CheckOwner(const struct stat& file, bool observer) {
  if (!S_ISREG(file.st_mode)) {
    return Complaint{"not a segment of shared memory",
                     "something else than a file has its name",
                     "remove it, or name the service otherwise"};
  }
  const uid_t user = ::geteuid();
  if (file.st_uid != user && !(observer && user == 0)) {
    return Complaint{
        "belongs to another user (uid " + std::to_string(file.st_uid) +
            ", this is uid " + std::to_string(user) + ')',
        "anybody may make files there; one that another user planted could "
        "steer or read this service",
        observer ? "run this as that user or as root"
                 : "run the service as that user, or name it otherwise, or "
                   "let that user or root remove the segment"};
  }
  if ((file.st_mode & 077) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", file.st_mode & 07777U);
    return Complaint{
        std::string("open to other users (mode ") + mode.data() + ')',
        "weir makes segments with mode 0600; what others may write cannot be "
        "trusted",
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

Result<SharedRegion> SharedRegion::Open(const Policy& policy, Instant now) {
  if (auto wrong = policy.Check()) return *wrong;
  if (Namespaces() == 0) {
    return At(SegmentPath(policy.service),
              {"cannot be used without /proc",
               "whether a worker is alive is read there", "mount /proc"});
  }
  // Each turn another process made or removed it between our two looks.
  for (int turn = 0; turn < 100; ++turn) {
    auto opened = Attach(policy.service);
    const bool created = !opened;
    if (created) opened = Make(policy, now);
    if (!opened) continue;
    if (!*opened) return opened->error();
    std::string warning = LoadSwitches(**opened, policy, now);
    return SharedRegion(std::move(**opened), created, std::move(warning));
  }
  return At(SegmentPath(policy.service),
            {"is made and removed again without end",
             "other processes did so 100 times while this one tried to attach",
             "find out what runs `weir segment remove`"});
}

Result<Mapping> OpenExisting(std::string_view service, bool writable) {
  if (auto wrong = CheckName(service)) return *wrong;
  const std::string path = SegmentPath(service);
  const int fd = OpenSegment(path, writable ? O_RDWR : O_RDONLY);
  if (fd < 0 && errno == ENOENT) {
    return At(path, {"there is no such segment",
                     "no service of that name has run here since boot, or it "
                     "runs in another container",
                     "start the service, or see `weir segment list`"});
  }
  if (fd < 0) return At(path, CannotOpen(path, errno, true));
  if (auto complaint = Inspect(fd, service, true)) {
    ::close(fd);
    return At(path, *complaint);
  }
  return Map(fd, path, service, writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

Result<ObservedRegion> ObservedRegion::Open(std::string_view service) {
  auto mapping = OpenExisting(service, /*writable=*/false);
  if (!mapping) return mapping.error();
  return ObservedRegion(std::move(*mapping));
}

bool ObservedRegion::removed() const { return !HasName(mapping_.fd()); }

Result<std::vector<SegmentInfo>> ListSegments() {
  std::vector<SegmentInfo> found;
  DIR* directory = ::opendir(kDirectory.data());
  if (directory == nullptr) {
    return At(std::string(kDirectory),
              {"cannot be read", System(errno), "check that it is a tmpfs"});
  }
  const uid_t user = ::geteuid();
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    const std::string_view service = name.substr(kPrefix.size());
    struct stat file {};
    if (CheckName(service) ||
        ::lstat(SegmentPath(service).c_str(), &file) != 0) {
      continue;
    }
    if (user == 0 || file.st_uid == user) {
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
  const int fd = OpenSegment(path, O_RDONLY);
  if (fd < 0 && errno == ENOENT) {
    return At(path, {"there is no such segment", "nothing has that name",
                     "see `weir segment list`"});
  }
  if (fd < 0 && !force) return At(path, CannotOpen(path, errno, true));
  // Held until the name is gone, so that nobody attaches in between.
  const Mapping closer(fd, nullptr);
  if (!force && !Lock(fd, LOCK_EX | LOCK_NB)) {
    return At(path, {"still used",
                     "at least one process has it mapped; workers that start "
                     "later would not share its limit",
                     "stop the service first, or add `--force`"});
  }
  if (::unlink(path.c_str()) != 0) {
    return At(path, {"cannot be removed", System(errno),
                     "run this as its owner or as root"});
  }
  return std::nullopt;
}

}  // namespace weir::shm
