// Service: one policy file, and what guards its service in this process.
//
//   nginx reads its configuration      Service, Refer(), Attach()
//   fork
//   worker                             Start(), guard(), Stop()
//
// The region is mapped before the fork, by the master, so that workers may run
// as a user who could not open it.  A worker claims its shard of the region
// after the fork, again and again if there is none, and has timers for four
// things: to wake requests that wait (to the millisecond, and only while some
// do), to take back what dead workers held, to follow its policy file, and to
// tell the guard what the host says.
//
// After a reload old workers stay for their last connections, for days where
// those are websockets.  One that has no request left to guard gives its shard
// back, and claims one again should another request come.

#ifndef WEIR_ADAPTERS_NGINX_SERVICE_H_
#define WEIR_ADAPTERS_NGINX_SERVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nginx_api.h"
#include "weir/config/policy_file.h"
#include "weir/guard.h"
#include "weir/host/clock.h"
#include "weir/host/feed.h"
#include "weir/policy.h"
#include "weir/shm/lease.h"
#include "weir/shm/segment.h"

namespace weir::nginx {

// A `weir RESOURCE` in nginx's configuration.
struct Reference {
  std::string resource;
  std::string place;  // "nginx.conf:12"
};

class Service {
 public:
  Service(std::string path, Policy policy);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::string& path() const { return path_; }
  const Policy& policy() const { return *policy_; }

  // Notes a use of a resource and returns a handle for resource(); an error
  // when the policy has no such resource.
  Result<size_t> Refer(Reference reference);

  // Maps the service's region; makes it if there is none.
  std::optional<Error> Attach(const shm::SegmentAccess& access);
  // What was there before and could not be used; empty when nothing was.
  const std::string& replaced() const { return region_->replaced(); }

  // In a worker.
  void Start(ngx_log_t* log);
  void Stop();

  // Null while there is none: no region could be mapped, or no shard is free.
  // Then requests pass as if weir were off: a service without protection is
  // better than none.
  Guard* guard() { return guard_.get(); }
  // The same for a request that comes; claims a shard if this worker gave its
  // own back.
  Guard* Enter();
  // The index in the policy that is in force now.
  uint16_t resource(size_t reference) const { return indices_[reference]; }

  // Call after each call of the guard.  Requests that were decided by it go on
  // in this turn of the event loop, but not inside this call.
  void Decided();
  void NoteWaiting(int change) { waiting_ += change; }
  // Of requests that have a permit.
  void NoteRunning(int change) { running_ += change; }

 private:
  // An event of nginx that calls a member function.  nginx's debug log takes
  // an event's data for a connection.
  struct Event {
    void Set(Service* service, void (Service::*call)(), ngx_log_t* log);
    ngx_event_t event{};
    ngx_connection_t connection{};
    Service* service = nullptr;
    void (Service::*call)() = nullptr;
  };

  bool Claim();
  std::optional<Error> TryToClaim();
  void GiveBack();
  void Wake();
  void Drain();
  void KeepHouse();
  void FollowFile(config::PolicyFile::Change change);
  std::optional<Error> Apply(const Policy& policy);
  void TellHost(Instant now);

  const std::string path_;
  std::shared_ptr<const Policy> policy_;
  std::vector<Reference> references_;
  std::vector<uint16_t> indices_;  // Of each reference, in *policy_.
  std::optional<shm::SharedRegion> region_;

  ngx_log_t* log_ = nullptr;
  std::optional<shm::ShardLease> lease_;
  std::optional<shm::Reclaimer> reclaimer_;
  std::unique_ptr<Guard> guard_;
  std::optional<config::PolicyFile> file_;
  std::optional<host::HostFeed> feed_;
  Instant file_due_{};
  bool is_off_ = false;  // As the log was told.
  int running_ = 0;
  int waiting_ = 0;  // Requests that the guard has not decided, or not told of.
  Event wake_;
  Event drain_;
  Event house_;
};

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_SERVICE_H_
