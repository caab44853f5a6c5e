// A policy file that may change while it is in force.
//
//   PolicyFile file("/etc/weir/shop.toml");
//   if (file.Reload() != PolicyFile::Change::kPolicy) Fail(file.report());
//   ... every second:
//   switch (file.Poll()) {
//     case PolicyFile::Change::kNone: break;
//     case PolicyFile::Change::kPolicy: Use(*file.policy()); break;
//     case PolicyFile::Change::kComplaints: Log(file.report()); break;
//   }

#ifndef WEIR_CONFIG_POLICY_FILE_H_
#define WEIR_CONFIG_POLICY_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "weir/config/complaint.h"
#include "weir/policy.h"

namespace weir::config {

// Does I/O in Poll() and Reload(), and nothing by itself.  Not thread-safe.
class PolicyFile {
 public:
  enum class Change : uint8_t {
    kNone,
    kPolicy,      // policy() is new, or back in force after complaints.
    kComplaints,  // report() is new; policy() is the last good one.
  };

  explicit PolicyFile(std::string path);

  // Reads the file now: at the start, and when an operator asks (SIGHUP).
  // Never kNone.
  Change Reload();

  // Looks whether the file changed: replaced, written in place, or its symbolic
  // link (or that of a directory on the way) led elsewhere.  One stat() when it
  // did not.  A change is read once two polls in a row see the same file, so a
  // file that is being written is left alone, and not read by halves.  The same
  // complaints are reported once.  Polls must be 20 ms apart or more, the step
  // of the time stamps of file systems.
  Change Poll();

  const std::string& path() const { return path_; }
  // The last good policy; null before the first.
  const Policy* policy() const { return policy_ ? &*policy_ : nullptr; }
  // What was complained of when the file was last read, printed.  Empty when
  // nothing was.
  const std::string& report() const { return report_; }

 private:
  // What tells one state of a file from another.  All zero: there is none.
  struct Stamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp Look(const std::string& path);
  Change Take(Checked<Policy> read);

  std::string path_;
  std::optional<Policy> policy_;
  std::string report_;
  Stamp taken_;                   // Of what was read last.
  std::optional<Stamp> pending_;  // Seen by the last poll, not yet read.
};

}  // namespace weir::config

#endif  // WEIR_CONFIG_POLICY_FILE_H_
