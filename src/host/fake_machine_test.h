// A machine of the tests' own: a directory with the files that sensors read.

#ifndef WEIR_HOST_FAKE_MACHINE_TEST_H_
#define WEIR_HOST_FAKE_MACHINE_TEST_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weir/host/reading.h"
#include "weir/time.h"

namespace weir::host {

using namespace std::chrono_literals;

// The value, or a failure that says why there is none.
template <typename T>
T Of(const Reading<T>& reading) {
  if (reading.ok()) return *reading;
  ADD_FAILURE() << "no value: " << reading.why();
  return T{};
}

inline constexpr Instant kStart = Instant(1h);

class FakeMachine {
 public:
  FakeMachine() {
    std::string name =
        (std::filesystem::temp_directory_path() / "weir-host-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) abort();
    root_ = name;
    // Also for the other user that PermissionDenied becomes.
    std::filesystem::permissions(root_, std::filesystem::perms(0755));
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  const std::string& root() const { return root_; }

  // In place, as the kernel's files change under an open descriptor.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << text;
  }
  void Link(const std::string& path, const std::string& target) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
  }
  void Remove(const std::string& path) {
    std::filesystem::remove_all(root_ + path);
  }
  void Forbid(const std::string& path) {
    std::filesystem::permissions(root_ + path, std::filesystem::perms(0));
  }

  // Of `type` "cgroup" or "cgroup2", with one mount a call.
  void Mount(const std::string& mount_root, const std::string& point,
             const std::string& type, const std::string& options) {
    mountinfo_ += "31 23 0:28 " + mount_root + " " + point +
                  " rw,relatime shared:9 - " + type + " cgroup " + options +
                  "\n";
    Write("/proc/self/mountinfo", mountinfo_);
  }

  // v2 counters of one cgroup.
  void Stat(const std::string& directory, Duration used, int periods = 0,
            int throttled = 0, Duration denied = {}) {
    Write(directory + "/cpu.stat",
          "usage_usec " + std::to_string(used / 1us) +
              "\nuser_usec 1\nsystem_usec 2\nnr_periods " +
              std::to_string(periods) + "\nnr_throttled " +
              std::to_string(throttled) + "\nthrottled_usec " +
              std::to_string(denied / 1us) + "\n");
  }

  void Online(const std::string& list) {
    Write("/sys/devices/system/cpu/online", list + "\n");
  }
  void Allowed(const std::string& list, const std::string& of = "") {
    Write("/proc/self" + of + "/status",
          "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list + "\n");
  }
  void FirstNamespaces() {
    Link("/proc/self/ns/pid", "pid:[4026531836]");
    Link("/proc/self/ns/cgroup", "cgroup:[4026531835]");
  }

 private:
  std::string root_;
  std::string mountinfo_;
};

// Linux lets root read everything, so root becomes nobody for a while.
class AsNobody {
 public:
  AsNobody() : was_root_(geteuid() == 0) {
    if (was_root_ && seteuid(65534) != 0) abort();
  }
  ~AsNobody() {
    if (was_root_ && seteuid(0) != 0) abort();
  }

 private:
  bool was_root_;
};

}  // namespace weir::host

#endif  // WEIR_HOST_FAKE_MACHINE_TEST_H_
