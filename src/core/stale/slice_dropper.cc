#include "weir/stale/slice_dropper.h"

namespace weir {

Result<SliceDropper> SliceDropper::Make(const Config& config) {
  if (auto timeline = HelloTimeline::Make(config.hello); !timeline) {
    return Error{"`hello`: " + timeline.error().message};
  }
  if (config.threshold <= Duration{})
    return Error{"`threshold` is not above 0"};
  if (config.patience <= Duration{}) return Error{"`patience` is not above 0"};
  if (config.lifetime < Duration{}) return Error{"`lifetime` is below 0"};
  if (config.interval < Duration{}) return Error{"`interval` is below 0"};
  return SliceDropper(config);
}

SliceDropper::Link::Link(SliceDropper& dropper)
    : dropper_(dropper),
      index_(dropper.links_.size()),
      timeline_(HelloTimeline::Make(dropper.config_.hello).value()) {
  dropper.links_.push_back(this);
}

SliceDropper::Link::~Link() {
  dropper_.Drop(*this, false);
  Link* const last = dropper_.links_.back();
  dropper_.links_[index_] = last;
  last->index_ = index_;
  dropper_.links_.pop_back();
}

void SliceDropper::Judge(const CapacityMeter::Reading& reading, Instant now) {
  if (!overloaded_) {
    if (!(reading.demand > reading.capacity)) return;
    overloaded_ = true;
    // By their last Hello: the next one may be a whole queue away.
    for (Link* const link : links_) JudgeLink(*link, now);
    return;
  }
  for (Link* const link : links_) {
    if (link->dropping_ && now - link->timeline_.at() > config_.patience) {
      Drop(*link, false);
    }
  }
  // An idle server whose capacity is zero is not overloaded.
  if (dropping_ == 0 &&
      (reading.demand < reading.unit_capacity || reading.demand <= 0)) {
    overloaded_ = false;
  }
}

void SliceDropper::Hello(Link& link, uint32_t stamp, Instant now) {
  link.timeline_.Hello(stamp, now, overloaded_);
  if (!overloaded_) return;
  JudgeLink(link, now);
  if (!link.dropping_ || now - link.lowest_at_ <= config_.patience) return;
  ++new_rulers_;
  link.timeline_.Reset();
  link.timeline_.Hello(stamp, now, overloaded_);
  Drop(link, false);
}

void SliceDropper::JudgeLink(Link& link, Instant now) {
  const Duration delay = link.timeline_.delay();
  const bool late = delay > config_.threshold;
  if (late && (!link.dropping_ || delay < link.lowest_)) {
    link.lowest_ = delay;
    link.lowest_at_ = now;
  }
  Drop(link, late);
}

void SliceDropper::Drop(Link& link, bool drop) {
  if (link.dropping_ == drop) return;
  link.dropping_ = drop;
  dropping_ += drop ? 1 : -1;
}

bool SliceDropper::Admit(const Link& link, Instant now) const {
  if (!overloaded_) return true;
  if (link.dropping_) return false;
  if (config_.lifetime == Duration{} || link.timeline_.empty()) return true;
  const Duration youngest =
      link.timeline_.delay() + (now - link.timeline_.at()) - config_.interval;
  return youngest <= config_.lifetime;
}

}  // namespace weir
