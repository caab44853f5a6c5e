// ServiceGuard: the guard of a service whose calls run in many threads.
//
//   ServiceGuard    policy file, region, housekeeping
//     Shard ...     a mutex and a Guard each; calls spread over them by CPU
//
// A Guard belongs to one thread at a time; here a shard's mutex makes it so.
// It is held for a decision and for the reading of the request, about half a
// microsecond, so one shard serves several CPUs; what waits in different
// shards is put in order only every millisecond, so there are not more than
// are needed.
//
// A thread of its own wakes what waits, takes back what dead processes held,
// and follows the policy file; it sleeps most of a second when nothing waits.
//
// Nothing in here knows gRPC.

#ifndef WEIR_GRPC_SERVICE_GUARD_H_
#define WEIR_GRPC_SERVICE_GUARD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/client/overload_level.h"
#include "weir/decision.h"
#include "weir/http/answer.h"
#include "weir/http/request_inputs.h"
#include "weir/permit.h"
#include "weir/policy.h"
#include "weir/region.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/time.h"
#include "weir/waiter.h"

namespace weir::grpc {

// What an adapter knows of a call.  Read while a shard's mutex is held, by the
// thread that asks; must not call the ServiceGuard.
class CallView : public http::Properties {
 public:
  // The peer's address, when it has one.  Only asked for when the policy
  // trusts anybody.
  virtual std::optional<http::Address> Peer() = 0;
  // When the caller gives up; kNever when it did not say.  It is the earliest
  // of this and what the policy reads that counts.
  virtual Instant Deadline() = 0;

 protected:
  ~CallView() = default;
};

class ServiceGuard {
 public:
  struct Options {
    // In shared memory, so that the service's other processes share the limit
    // and `weir top` sees it; else on the heap.
    bool shared = true;
    int shards =
        0;  // [1, Region::kShards]; 0: one for every four CPUs, at most 8.
    // How often the policy file is looked at.  [20 ms, 1 h].
    // Chosen: a person who saves a file waits that long without wondering.
    Duration file_interval = std::chrono::seconds(1);
    // Hears lines for a log: a policy that came into force or was refused.
    // Called from the housekeeping thread.
    std::function<void(const std::string& line)> log{};

    // The first broken rule of those above, or nothing.
    std::optional<Error> Check() const;
  };
  // A method of the service, as Register() returned it.
  using Method = uint32_t;

  // Follows the policy file from now on.  Both fail when the options or the
  // policy break a rule, or the region cannot be had.
  static Result<std::shared_ptr<ServiceGuard>> Load(
      const std::string& policy_path, const Options& options);
  static Result<std::shared_ptr<ServiceGuard>> Make(Policy policy,
                                                    const Options& options);
  // Calls must be gone.
  ~ServiceGuard();
  ServiceGuard(const ServiceGuard&) = delete;
  ServiceGuard& operator=(const ServiceGuard&) = delete;

  // A call, for as long as it is of interest here.  One thread at a time.
  class Call : private Waiter {
   public:
    // Ends the permit, if it was not, as kIgnored.  Must not be queued.
    virtual ~Call();

    // After Ask() answered otherwise than kQueue, or in Decided().
    const Decision& decision() const { return decision_; }
    // It holds a place.
    bool admitted() const { return static_cast<bool>(permit_); }
    const Request& request() const { return request_; }
    // Its resource is one of streams: its latency means nothing.
    bool stream() const { return stream_; }
    Instant admitted_at() const { return permit_.admitted_at(); }

   protected:
    Call() = default;
    // A call that Ask() queued is decided: decision() says how.  Comes once,
    // from whatever thread, which holds no lock and should be left soon.
    virtual void Decided() = 0;

   private:
    friend class ServiceGuard;
    ServiceGuard* guard_ = nullptr;
    int shard_ = 0;
    bool stream_ = false;
    Request request_;
    Decision decision_;
    Permit permit_;
    Call* next_ = nullptr;  // In a list of those to be told.
  };

  // The resource that a method, "/pkg.Service/Method", belongs to is the first
  // of these that the policy has:
  //   pkg.Service/Method   Service/Method   pkg.Service   Service   default
  // and the only one there is, when there is just one.  An error when there
  // is none.  May be called at any time; once for each method.
  Result<Method> Register(std::string_view full_name);

  // Decides.  kQueue: Decided() will be called, unless Cancel() comes before,
  // and may be by the time this returns.  `may_wait` false sheds (kLimit) what
  // would have to wait.
  [[nodiscard]] Verdict Ask(Call& call, Method method, CallView& view,
                            Instant now, bool may_wait = true);

  // Ends an admitted call; does nothing to others.
  void Finish(Call& call, Outcome outcome, Instant now);

  // The caller of a queued call went away.  True: it has left the queue and
  // Decided() will not be called.  False: it is being called, or was.
  bool Cancel(Call& call, Instant now);

  // How the refusal of a call is answered.
  http::Answer AnswerTo(const Call& call, Instant now);
  // The resource's name in the policy in force; for messages.
  std::string ResourceName(const Call& call);

  // What to tell callers about whom this process refuses; nothing when there is
  // nobody of whom nothing is admitted.
  std::optional<OverloadLevel> Level(Instant now);

  // Sheds what waits, and from now on what would have to, with kShutdown.
  void Stop();

  const Region& region() const;
  // What the service takes when idle; zero when not known.
  Duration base_latency() const;

 private:
  class Impl;
  explicit ServiceGuard(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::grpc

#endif  // WEIR_GRPC_SERVICE_GUARD_H_
