// Guard decides for each request of one service: run it, let it wait, shed it.
//
//   Region (shared)          limit, law, counts; see region.h
//     ^            ^
//   Guard        Guard       one for each worker: a process, or a thread;
//   queue        queue       requests wait in the worker that received them
//
// Stages, in order, cheap and certain first: exempt, switch, deadline, stale,
// quota, tiers, system, level, limit (docs/architecture.md).  A request is shed
// by the first stage that refuses it, and then everything that earlier stages
// counted for it is given back, also if it has waited: all or nothing.
//
//   Waiter waiter;                                // In the request's context.
//   Admission a = guard.Admit(request, waiter, now);
//   switch (a.decision.verdict) {
//     case Verdict::kAdmit: Run(std::move(a.permit)); break;
//     case Verdict::kQueue: break;                // Its decision comes below.
//     case Verdict::kShed:  Refuse(a.decision); break;
//   }
//   while (Waiter* w = guard.NextDecided()) { ... w->decision() ... }
//   SetTimer(guard.NextWake());                   // Then call guard.Tick(now).
//   ...
//   guard.Finish(std::move(permit), Outcome::kOk, now);
//
// After each call that takes `now`, drain NextDecided() and set the timer
// anew.  No callbacks: the caller chooses when to resume its requests.
//
// Threads: a guard and its permits and waiters belong to one thread (or to
// whoever holds the caller's lock); any number of guards, in any number of
// processes, share a Region.  Cost: Admit() and Finish() are O(1), a few tens
// of nanoseconds, when there is room; O(log queue) when requests wait.
// Nothing allocates, blocks, reads a clock or does I/O after Make().
//
// Time: if `now` steps back, the latest `now` seen is used instead.

#ifndef WEIR_GUARD_H_
#define WEIR_GUARD_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/decision.h"
#include "weir/permit.h"
#include "weir/policy.h"
#include "weir/queue/due_places.h"
#include "weir/queue/waiting_queue.h"
#include "weir/region.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/signal/recent_load.h"
#include "weir/signal/usual_latency.h"
#include "weir/waiter.h"

namespace weir {

struct Admission {
  Decision decision;
  Permit permit;  // Not empty exactly when decision.verdict is kAdmit.
};

class Guard {
 public:
  // A guard that works as shard `shard` of `region`, which must be claimed for
  // it (Region::ClaimShard) and not be used by another guard.  Fails when the
  // policy breaks a rule, is another service's than the region's, or brings
  // more resources than the region has room for.  `region` must outlive it.
  static Result<std::unique_ptr<Guard>> Make(
      std::shared_ptr<const Policy> policy, Region& region, int shard,
      Instant now);

  // Requests that still wait leave as cancelled; permits must be gone, unless
  // it has left.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Decides at once; where a request would have to wait it is shed (kLimit).
  [[nodiscard, gnu::flatten]] Admission Admit(const Request& request,
                                              Instant now);

  // Decides, or links `waiter` into the queue and answers kQueue.  It must be
  // idle: new, or NextDecided() has returned it, or Cancel() took it back.
  [[nodiscard, gnu::flatten]] Admission Admit(const Request& request,
                                              Waiter& waiter, Instant now);

  // Whether Admit() would shed `request` at `now` whatever room there is: its
  // resource is paused, its deadline has passed, or all of its class are being
  // shed.  Counts nothing.  For adapters that would have to do something costly
  // before they ask, such as reading a body.
  bool IsRefusedAnyhow(const Request& request, Instant now) const;

  // Ends an admitted request.  An empty permit is fine and does nothing.
  [[gnu::flatten]] void Finish(Permit&& permit, Outcome outcome, Instant now);

  // The caller of a waiting request went away.  Does nothing unless it waits
  // or its decision has not been taken yet (then a permit is given back).
  void Cancel(Waiter& waiter, Instant now);

  // Housekeeping: expires waiting requests, follows other workers' changes.
  void Tick(Instant now);

  // When Tick() must be called at the latest; kNever when nothing waits.
  Instant NextWake() const;

  // A waiting request whose decision has fallen since, oldest first; null when
  // there is none.  Each is returned once.
  Waiter* NextDecided();

  // Follows a new policy of the same service; earned state, permits and
  // waiting requests stay.  An error leaves everything as it was.  Indices in
  // Request::resource refer to the new policy from now on.
  std::optional<Error> Apply(std::shared_ptr<const Policy> policy, Instant now);

  // What the machine says, for the system stage of all workers.  Below zero:
  // unknown.  After kSignalsAge it is not believed any more and the arms that
  // need it are inert: call it each second or more often.  It also keeps what
  // the region says of demand and overload true while no request comes, and
  // gives an idle worker's spare places back.
  // Chosen: a few of those intervals, so that one that is late changes nothing.
  static constexpr Duration kSignalsAge = std::chrono::seconds(3);
  struct HostReadings {
    double load = -1;       // One-minute average of runnable threads.
    double cpu_ratio = -1;  // Used of what the service may use, [0, 1].
  };
  void Watch(const HostReadings& readings, Instant now);

  // The calendar window of the quota of `resource` and when it ends; windows
  // that follow are taken to be as far apart as `length` until told anew.  A
  // quota by calendar counts nothing before it is told.
  struct CalendarPeriod {
    uint32_t number = 0;
    Instant end{};
    Duration length = std::chrono::hours(24);
  };
  void SetPeriod(uint16_t resource, const CalendarPeriod& period);

  // Sheds all that waits here with kShutdown (drain NextDecided() after it).
  void Stop(Instant now);

  // Stop(), and then nothing of this guard counts any more: its places go back,
  // permits that are still out end without a trace and new requests are shed
  // (kShutdown).  To be called before the shard is given back while permits are
  // out, by a worker that stays for a few connections after a reload, for one.
  void Leave(Instant now);

  // In the child of a fork(), of all guards that came from the parent: what
  // they have in the region is the parent's, and destroying them, their waiters
  // and permits changes nothing there.  shm::ShardLease calls it.
  static void NoteFork() { forks_.fetch_add(1, std::memory_order_relaxed); }

  const Policy& policy() const { return *policy_; }
  const Region& region() const { return region_; }
  int64_t waiting() const { return queue_.size(); }  // In this worker.
  int64_t inflight() const { return inflight_; }     // Of this worker.
  int64_t limit() const;                             // Of the service.

 private:
  friend class Permit;
  friend class Waiter;

  // Sums over all workers, at about now.  What waits in a worker that free
  // places were left to in vain, and that has not moved since, is not counted.
  struct Totals {
    int64_t held = 0;
    int64_t queued = 0;
    std::array<int64_t, kCriticalities> waiting{};
    bool Has(size_t criticality) const { return waiting[criticality] > 0; }
  };
  using Rows = std::array<uint16_t, kMaxResources>;
  // What changes when a worker with waiting requests moves.
  struct YieldedTo {
    int64_t oldest_ns = 0;
    int64_t held = 0;
    bool operator==(const YieldedTo&) const = default;
  };

  Guard(std::shared_ptr<const Policy> policy, Region& region, int shard,
        const Rows& rows, Instant now);
  static Result<Rows> MapResources(const Policy& policy, Region& region);
  void ApplySwitches();

  // Degrading: guard_degrade.cc.
  void Degrade(const Request& request, Instant now, Admission& admission);
  DrillSide SideOf(const Request& request, uint16_t row, Instant now,
                   uint8_t& level);
  void CountDrilled(const Permit::Data& permit, Outcome outcome, Instant now);
  void StepLadders(const LimitLaw& law, Instant now);
  void StepRetries(int64_t arrivals, Instant now);

  // Deciding.
  Admission Decide(const Request& request, Waiter* waiter, Instant now);
  [[gnu::noinline]] Admission DecideStaged(const Request& request,
                                           Waiter* waiter, Instant now);
  Admission DecideByCapacity(const Request& request, Waiter* waiter,
                             StageMode limit_mode, const Taken& taken,
                             Instant now);
  [[gnu::noinline]] Admission DecideWithoutRoom(const Request& request,
                                                Waiter* waiter,
                                                const Taken& taken,
                                                Instant now);
  Admission Wait(const Request& request, Waiter& waiter, uint8_t rank,
                 const Taken& taken, bool forms_queue, Instant now);
  bool MakeRoom(const Request& request, uint8_t rank, bool overloaded,
                Totals totals, Instant now);
  Admission Run(const Request& request, Reason reason, bool counted,
                const Taken& taken, Instant now);
  void End(const Permit::Data& permit, Outcome outcome, Instant now);
  Admission Refuse(const Request& request, Reason reason, int64_t queued,
                   uint8_t rank, const Taken& taken);
  Admission Shed(const Request& request, Reason reason, Duration retry_after);
  void AdviseIfRetriesAbound(const Request& request, Decision& decision);
  bool IsPaused(const Request& request, Instant now) const;
  Duration PauseLeft(const Request& request, Instant now) const;
  // Whether a request that `stage` refuses goes on all the same, since the
  // stage is off or in shadow for its resource.
  bool GoesOn(const Request& request, Stage stage);
  bool Enforces(const Request& request, Stage stage) const;
  // Whether it cannot be answered by `deadline` any more, as far as is known.
  bool IsHopeless(const Request& request, Instant deadline, Instant now) const;

  // The stages stale to system, for resources that have any of them.
  struct Refusal {
    Reason reason{};
    Duration retry_after{};
  };
  void ConfigureStages();
  [[gnu::noinline]] std::optional<Refusal> PassStages(const Request& request,
                                                      Taken& taken,
                                                      Instant now);
  bool HasStage(uint16_t resource, Stage stage) const {
    return (stages_of_[resource] >> Index(stage) & 1) != 0;
  }
  bool PassQuota(const Request& request, Taken& taken, Refusal& refusal,
                 Instant now);
  bool PassClientQuota(const Request& request, Taken& taken, Refusal& refusal,
                       Instant now);
  bool PassTiers(const Request& request, Refusal& refusal, Instant now);
  bool PassSystem(const Request& request, Taken& taken, Refusal& refusal,
                  Instant now);
  Quota::Period PeriodAt(uint16_t resource, Instant now) const;
  SystemRule::Signals SignalsAt(Instant now) const;
  double ExecutorLoad(int64_t inside, Instant now);
  [[gnu::noinline]] void GiveBack(const Request& request, const Taken& taken);
  [[gnu::noinline]] void EndInSystem(const Permit::Data& permit,
                                     Outcome outcome, Instant now);
  void LeaveSystem();

  // What waits.
  [[gnu::noinline]] void Pump(Instant now);
  bool MayGoFirst(const Totals& totals, Instant now);
  Waiter* NextToRun();
  YieldedTo StandingOf(const Region::Shard& shard) const;
  void NoteQueueEmpty(bool backlog_dropped, Instant now);
  void PurgeExcess(Instant now);
  // The highest rank that waits in any worker, in the class `least`, which is
  // the least critical of all that wait; and how many of the class wait in the
  // workers that have it.
  struct Worst {
    uint8_t rank = 0;
    int64_t waiting = 0;
  };
  Worst FindWorst(size_t least) const;
  void ShedWaiting(Waiter& waiter, Reason reason, Instant now);
  void RunWaiting(Waiter& waiter, Instant now);
  void SetDecided(Waiter& waiter, const Decision& decision);
  void TakeDecided(Waiter& waiter);
  void Unlink(Waiter& waiter);
  void Forget(Waiter& waiter);
  // Whether this process is not the one that made the guard.
  bool IsForked() const {
    return forks_.load(std::memory_order_relaxed) != forks_before_;
  }
  void PublishQueue();

  // Places under the limit.
  bool Acquire();
  [[gnu::noinline]] bool AcquireShared();
  void AcquireAnyway();
  void Release();
  void ReturnFree();
  void Haunt(Instant now);
  void FadeGhosts(Instant now);
  void LapseOverdue(Instant now);
  void GiveBackPlace(const Permit::Data& permit, bool lost, Instant now);
  bool HasItsShare(uint16_t row, size_t criticality) const;
  void NoteRow(uint16_t row, Instant now);
  bool Tight() const;
  void SetTight(bool tight);
  // Workers that own a shard.
  int64_t Members() const;
  bool IsAlone() const;

  // Measuring.
  void CountArrival(const Request& request, Instant now);
  void OpenShardRound(uint64_t round);
  // The same for one that a stage before the level refuses: it is no demand on
  // the limit, but tells how many try again.
  void CountEarlyArrival(const Request& request, Instant now);
  void Sample(const Permit::Data& permit, Instant now);
  void SampleLost(const Permit::Data& permit, Instant now);
  void StepAfterAnswer(int64_t answers, Instant now);
  void SampleCalm(const Permit::Data& permit, Duration took, double latency);
  void MarkUnbound();
  [[gnu::noinline]] void StepLaw(Instant now, bool queue_formed = false,
                                 bool queue_empty = false);
  // The shortest time between two steps of the law by this worker, each of
  // which reads two lines of all shards.
  Duration LeastStep() const;
  LawInput GatherInput(const LimitLaw& law) const;
  void FlushPending();
  Totals SumShards() const;
  const Region::Shard* FirstElsewhere() const;
  int64_t InflightOfAll(Instant now);
  bool IsOverloaded() const;
  int64_t WaitingBound() const;
  Duration RetryAfter(Reason reason, int64_t queued) const;
  void Count(ClassCounter counter, Criticality criticality);
  void Count(Counter counter);
  Instant Advance(Instant now) { return now_ = std::max(now_, now); }

  static inline std::atomic<uint32_t> forks_ = 0;

  std::shared_ptr<const Policy> policy_;
  Region& region_;
  Region::Shard& shard_;
  const int shard_index_;
  Rows rows_{};  // Index in the policy -> row in the region.
  const uint32_t forks_before_ = forks_.load(std::memory_order_relaxed);
  bool left_ = false;
  bool configure_law_ = false;
  bool has_ladders_ = false;
  // Several resources, which share the places; the rows that asked lately, and
  // those before that.
  bool has_kinds_ = false;
  uint64_t rows_asking_ = 0;
  uint64_t rows_asked_ = 0;
  Instant rows_since_;
  // Bit mask by Stage: which of stale to system a resource has.
  std::array<uint16_t, kMaxResources> stages_of_{};
  TierTable tier_table_;
  std::array<std::optional<CalendarPeriod>, kMaxResources> periods_;
  RecentLoad recent_load_;
  SystemRule::Worker system_;
  double executor_load_ = 0;  // Requests that run, smoothed, and
  Instant executor_at_;       // when it was that.

  WaitingQueue queue_;
  Waiter* decided_first_ = nullptr;
  Waiter* decided_last_ = nullptr;

  Instant now_;
  int64_t inflight_ = 0;  // Counted permits that are out.
  int64_t free_ = 0;      // Places held, but not in use.
  // In service: of each row, and of all.
  std::array<UsualLatency, kMaxResources> usual_latency_;
  UsualLatency stay_;
  // Places of callers who left, for whom the service still works: their
  // expected number, and what of it is held.
  double ghosts_ = 0;
  int64_t ghost_places_ = 0;
  Instant ghosts_at_;
  DuePlaces due_places_;
  Instant answered_at_;        // When the last answer was seen.
  int64_t lapsed_ = 0;         // Requests at work that hold no place any more.
  double usual_inflight_ = 0;  // Smoothed inflight at admission.
  mutable uint64_t members_version_ = 0;  // That members_ is of.
  mutable int64_t members_ = 0;
  int64_t elsewhere_ = 0;  // Inflight of the other shards, which is
  Instant elsewhere_until_ = Instant::min();  // believed until then.
  // The worker that free places are left to, and since when one is free.
  YieldedTo yielding_to_;
  Instant yielding_since_ = kNever;
  bool yielded_in_vain_ = false;  // It has not moved since.
  const Region::Shard* yielding_shard_ = nullptr;
  Instant last_step_;
  Instant last_ladders_;

  // Not yet added to Region::pending.
  int64_t arrivals_ = 0;
  int64_t budgets_ = 0;
  int64_t budget_us_ = 0;
  int64_t retries_ = 0;
  int64_t refused_ = 0;
  int64_t early_arrivals_ = 0;  // Refused by a stage before the level.
  int64_t calm_ = 0;
  int64_t calm_ns_ = 0;
  int64_t calm_deviation_ppm_ = 0;
};

}  // namespace weir

#endif  // WEIR_GUARD_H_
