#include "service.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "log.h"
#include "request.h"
#include "weir/config/policy.h"

namespace weir::nginx {
namespace {

using namespace std::chrono_literals;

// How often the policy file is looked at.
// Chosen: a person who saves a file waits that long without wondering.
constexpr Duration kFileInterval = 1s;

// Longest that a timer of nginx is set for: a day, far from where its
// milliseconds would wrap.
constexpr Duration kLongestTimer = 24h;

Instant Now() { return host::MonotonicClock::Now(); }

// Milliseconds to set a timer for so that it does not fire before `at`.
ngx_msec_t Until(Instant at, Instant now) {
  const Duration wait = std::clamp(at - now, Duration::zero(), kLongestTimer);
  return static_cast<ngx_msec_t>(
      std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

}  // namespace

Service::Service(std::string path, Policy policy)
    : path_(std::move(path)),
      policy_(std::make_shared<const Policy>(std::move(policy))) {}

Service::~Service() = default;

Result<size_t> Service::Refer(Reference reference) {
  const auto index = policy_->FindResource(reference.resource);
  if (!index) {
    return Error{"the policy \"" + path_ + "\" has no resource `" +
                 reference.resource + "`" +
                 NearestResource(*policy_, reference.resource)};
  }
  for (size_t i = 0; i < references_.size(); ++i) {
    if (references_[i].resource == reference.resource) return i;
  }
  references_.push_back(std::move(reference));
  indices_.push_back(*index);
  return references_.size() - 1;
}

std::optional<Error> Service::Attach(const shm::SegmentAccess& access) {
  auto region = shm::SharedRegion::Open(*policy_, Now(), access);
  if (!region) return region.error();
  region_.emplace(std::move(region).value());
  return std::nullopt;
}

void Service::Event::Set(Service* owner, void (Service::*member)(),
                         ngx_log_t* log) {
  service = owner;
  call = member;
  connection.fd = static_cast<ngx_socket_t>(-1);
  connection.data = this;
  event.data = &connection;
  event.log = log;
  event.handler = [](ngx_event_t* ev) {
    auto* self =
        static_cast<Event*>(static_cast<ngx_connection_t*>(ev->data)->data);
    (self->service->*self->call)();
  };
}

std::optional<Error> Service::TryToClaim() {
  auto lease = shm::ShardLease::Claim(**region_);
  if (!lease) return lease.error();
  auto guard = Guard::Make(policy_, **region_, lease->shard(), Now());
  if (!guard) return guard.error();
  lease_.emplace(std::move(lease).value());
  guard_ = std::move(guard).value();
  return std::nullopt;
}

// Says once that it failed, and once that it did not any more.
bool Service::Claim() {
  std::optional<Error> error;
  try {
    error = TryToClaim();
  } catch (const std::exception& e) {
    error = Error{e.what()};
  }
  if (error) {
    if (!is_off_) {
      LogLines(NGX_LOG_ALERT, log_,
               "weir is off in this worker, and tries again each second: " +
                   error->message);
    }
    is_off_ = true;
    return false;
  }
  if (is_off_) LogLines(NGX_LOG_ALERT, log_, "weir is on in this worker");
  is_off_ = false;
  TellHost(Now());
  return true;
}

void Service::GiveBack() {
  guard_.reset();
  lease_.reset();
}

Guard* Service::Enter() {
  // Others are tried for by the house timer.
  if (!guard_ && region_ && ngx_exiting && !is_off_) Claim();
  return guard_.get();
}

void Service::Start(ngx_log_t* log) {
  log_ = log;
  if (!region_) return;
  wake_.Set(this, &Service::Wake, log_);
  drain_.Set(this, &Service::Drain, log_);
  house_.Set(this, &Service::KeepHouse, log_);
  // A worker that is asked to leave need not stay for it.
  house_.event.cancelable = 1;
  feed_.emplace([this](const std::string& line) {
    // All workers see the same; one of them says so.
    LogLines(ngx_worker == 0 ? NGX_LOG_NOTICE : NGX_LOG_INFO, log_,
             "weir: `" + policy_->service + "`: " + line);
  });
  Claim();
  if (ngx_worker == 0 && !region_->warning().empty()) {
    LogLines(NGX_LOG_WARN, log_, "weir: " + region_->warning());
  }
  reclaimer_.emplace(**region_);
  // The file may have changed since the master read it: when a dead worker is
  // replaced, for one.
  file_.emplace(path_);
  FollowFile(file_->Reload());
  KeepHouse();
}

void Service::Stop() {
  if (!region_) return;
  if (wake_.event.timer_set) {
    ngx_del_timer(&wake_.event);
  }
  if (drain_.event.posted) {
    ngx_delete_posted_event(&drain_.event);
  }
  if (house_.event.timer_set) {
    ngx_del_timer(&house_.event);
  }
  // A worker that is told to end at once leaves its requests as they are; their
  // permits point to the guard, so it stays where it is.  Giving the shard back
  // takes their places back.
  if (running_ > 0 || waiting_ > 0) {
    static_cast<void>(guard_.release());
  }
  GiveBack();
}

void Service::Decided() {
  // Without anything that waits the guard may still ask for a Tick(), to give
  // spare places to other workers; it can come late, but must come.
  if (waiting_ > 0 ||
      (!wake_.event.timer_set && guard_->NextWake() != kNever)) {
    ngx_post_event(&drain_.event, &ngx_posted_events);
  }
}

void Service::Wake() {
  if (!guard_) return;
  guard_->Tick(Now());
  Drain();
}

void Service::Drain() {
  if (!guard_) return;
  while (Waiter* waiter = guard_->NextDecided()) Resume(*waiter);

  ngx_event_t* event = &wake_.event;
  const Instant wake = guard_->NextWake();
  // What waits keeps a worker from leaving; spare places do not.
  event->cancelable = waiting_ == 0;
  if (wake == kNever) {
    if (event->timer_set) {
      ngx_del_timer(event);
    }
    return;
  }
  const ngx_msec_t ms = Until(wake, Now());
  if (event->timer_set) {
    const auto earlier =
        static_cast<ngx_msec_int_t>(ngx_current_msec + ms - event->timer.key);
    if (earlier >= 0) return;
    // nginx leaves a timer alone that is set to nearly the same time, and
    // 300 ms are near to it.
    ngx_del_timer(event);
  }
  ngx_add_timer(event, ms);
}

void Service::KeepHouse() {
  const Instant now = Now();
  const int64_t reclaimed = reclaimer_->Run(now);
  if (reclaimed > 0) {
    ngx_log_error(NGX_LOG_NOTICE, log_, 0,
                  "weir: %L requests of dead workers of `%s` taken back",
                  reclaimed, policy_->service.c_str());
    if (guard_) Decided();
  }
  if (ngx_exiting && running_ == 0 && waiting_ == 0) GiveBack();
  if (now >= file_due_ && !ngx_exiting) {
    file_due_ = now + kFileInterval;
    if (!guard_) Claim();
    try {
      FollowFile(file_->Poll());
    } catch (const std::exception& e) {
      ngx_log_error(NGX_LOG_ALERT, log_, 0, "weir: reading \"%s\": %s",
                    path_.c_str(), e.what());
    }
  }
  TellHost(now);
  ngx_add_timer(&house_.event, Until(reclaimer_->next(), now));
}

void Service::TellHost(Instant now) {
  if (!guard_) return;
  try {
    feed_->Tell(*guard_, now, std::chrono::system_clock::now());
  } catch (const std::exception& e) {
    ngx_log_error(NGX_LOG_ALERT, log_, 0, "weir: reading the host: %s",
                  e.what());
  }
}

void Service::FollowFile(config::PolicyFile::Change change) {
  using Change = config::PolicyFile::Change;
  if (change == Change::kNone) return;
  // All workers see the same; one of them says so.
  const ngx_uint_t level = ngx_worker == 0 ? NGX_LOG_ERR : NGX_LOG_INFO;
  if (change == Change::kComplaints) {
    LogLines(level, log_, file_->report());
    return;
  }
  if (config::PrintPolicy(*file_->policy()) == config::PrintPolicy(*policy_)) {
    return;
  }
  if (const auto error = Apply(*file_->policy())) {
    LogLines(level, log_,
             "weir_policy \"" + path_ + "\" changed and is refused: " +
                 error->message + "; the running policy is unchanged");
    return;
  }
  // Debian's error log begins at this level, and who changed a policy looks
  // there whether it took.
  LogLines(level, log_,
           "weir_policy \"" + path_ + "\" changed and is in force");
}

std::optional<Error> Service::Apply(const Policy& policy) {
  std::vector<uint16_t> indices;
  for (const Reference& reference : references_) {
    const auto index = policy.FindResource(reference.resource);
    if (!index) {
      return Error{"it has no resource `" + reference.resource +
                   "`, which is used in " + reference.place};
    }
    indices.push_back(*index);
  }
  auto next = std::make_shared<const Policy>(policy);
  if (guard_) {
    if (auto error = guard_->Apply(next, Now())) return error;
  }
  policy_ = std::move(next);
  indices_ = std::move(indices);
  TellHost(Now());
  if (guard_) Decided();
  return std::nullopt;
}

}  // namespace weir::nginx
