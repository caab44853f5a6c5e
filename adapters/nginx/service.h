// Service: one policy file, and what guards its service in this process.
//
//   nginx reads its configuration      Service, Refer(), Attach()
//   fork
//   worker                             Start(), guard(), Stop()
//
// The region is mapped before the fork, by the master, so that workers may run
// as a user who could not open it.  A worker claims its shard of the region
// after the fork, and has timers for four things: to wake requests that wait
// (to the millisecond, and only while some do), to take back what dead workers
// held, to follow its policy file, and to tell the guard what the host says.

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
  std::optional<Error> Attach();

  // In a worker.  When it fails, requests pass as if weir were off: a service
  // without protection is better than none.
  void Start(ngx_log_t* log);
  void Stop();

  // Null when Start() failed.
  Guard* guard() { return guard_.get(); }
  // The index in the policy that is in force now.
  uint16_t resource(size_t reference) const { return indices_[reference]; }

  // Call after each call of the guard.  Requests that were decided by it go on
  // in this turn of the event loop, but not inside this call.
  void Decided();
  void NoteWaiting(int change) { waiting_ += change; }

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
  int waiting_ = 0;  // Requests that the guard has not decided, or not told of.
  Event wake_;
  Event drain_;
  Event house_;
};

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_SERVICE_H_
