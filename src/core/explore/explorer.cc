#include "explore/explorer.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "explore/word.h"

namespace weir::explore {
namespace {

constexpr size_t kStack = 256 * 1024;
constexpr size_t kMostHeld = 8;  // As many as a core holds back, about.

struct HeldStore {
  void* word;
  size_t size;
  uint64_t value;
};

struct Thread {
  const std::function<void()>* body = nullptr;
  std::unique_ptr<char[]> stack;
  ucontext_t start;
  jmp_buf resume;
  bool begun = false;
  bool done = false;
  std::vector<HeldStore> held;
};

struct World {
  std::vector<Thread> threads;
  Plan plan;
  const std::function<std::optional<std::string>()>* look = nullptr;
  size_t current = 0;
  size_t next_switch = 0;
  size_t next_kill = 0;
  int64_t held_since = 0;
  Run run;
  ucontext_t home;
  jmp_buf back;
};

World* world = nullptr;

void Write(const HeldStore& store) {
  std::memcpy(store.word, &store.value, store.size);
}

void SettleAll(Thread& thread) {
  for (const HeldStore& store : thread.held) Write(store);
  thread.held.clear();
}

// The stacks of a kind that is used again: making them anew costs more than a
// run.
std::vector<std::unique_ptr<char[]>>& Stacks() {
  static std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

[[noreturn]] void GoHome() { ::_longjmp(world->back, 1); }

void Begin() {
  (*world->threads[world->current].body)();
  Thread& self = world->threads[world->current];
  SettleAll(self);
  self.done = true;
  GoHome();
}

// Leaves the thread that is running; comes back when it shall go on.
void Leave() {
  if (::_setjmp(world->threads[world->current].resume) == 0) GoHome();
}

void Resume(size_t next) {
  world->current = next;
  Thread& thread = world->threads[next];
  if (::_setjmp(world->back) != 0) return;
  if (thread.begun) ::_longjmp(thread.resume, 1);
  thread.begun = true;
  ::setcontext(&thread.start);
}

}  // namespace

std::string Plan::Print() const {
  std::string text = "switches";
  for (const Step& s : switches) {
    text += ' ' + std::to_string(s.at) + "->" + std::to_string(s.thread);
  }
  text += ", kills";
  for (const Step& s : kills) {
    text += ' ' + std::to_string(s.at) + ':' + std::to_string(s.thread);
  }
  return text + ", stores held " + std::to_string(hold_stores);
}

void Point() {
  if (world == nullptr) return;
  World& w = *world;
  const int64_t at = w.run.accesses++;
  if (at > 1'000'000) Fault("it goes on without end");
  for (size_t i = 0; i < w.threads.size(); ++i) {
    Thread& other = w.threads[i];
    if (i != w.current && !other.held.empty() &&
        at - w.held_since >= w.plan.hold_stores) {
      SettleAll(other);
    }
  }
  if (const auto wrong = (*w.look)()) Fault(*wrong);
  while (w.next_kill < w.plan.kills.size() &&
         w.plan.kills[w.next_kill].at <= at) {
    const size_t victim = w.plan.kills[w.next_kill++].thread;
    Thread& thread = w.threads[victim];
    if (thread.done) continue;
    SettleAll(thread);  // As the core does when the kernel ends a process.
    thread.done = true;
    w.run.killed[victim] = true;
    if (victim == w.current) GoHome();
  }
  if (w.next_switch < w.plan.switches.size() &&
      w.plan.switches[w.next_switch].at <= at) {
    const size_t to = w.plan.switches[w.next_switch].thread;
    if (to != w.current && !w.threads[to].done) {
      w.held_since = at;
      Leave();
    } else {
      ++w.next_switch;
    }
  }
}

uint64_t Load(const void* word, size_t size) {
  if (world != nullptr) {
    const auto& held = world->threads[world->current].held;
    for (size_t i = held.size(); i-- > 0;) {
      if (held[i].word == word) return held[i].value;
    }
  }
  uint64_t value = 0;
  std::memcpy(&value, word, size);
  return value;
}

void Store(void* word, size_t size, uint64_t value, bool wait) {
  const HeldStore store{word, size, value};
  if (world == nullptr || world->plan.hold_stores == 0) return Write(store);
  Thread& self = world->threads[world->current];
  self.held.push_back(store);
  if (wait) return SettleAll(self);
  if (self.held.size() > kMostHeld) {
    Write(self.held.front());
    self.held.erase(self.held.begin());
  }
}

void Settle() {
  if (world != nullptr) SettleAll(world->threads[world->current]);
}

bool IsKilled(size_t thread) {
  return world != nullptr && world->run.killed[thread];
}

void Fault(const std::string& what) {
  world->run.fault = what;
  GoHome();
}

Run Explore(const std::vector<std::function<void()>>& threads, const Plan& plan,
            const std::function<std::optional<std::string>()>& look) {
  World w;
  w.plan = plan;
  w.look = &look;
  w.threads.resize(threads.size());
  w.run.killed.resize(threads.size());
  while (Stacks().size() < threads.size()) {
    Stacks().push_back(std::make_unique<char[]>(kStack));
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    Thread& thread = w.threads[i];
    thread.body = &threads[i];
    ::getcontext(&thread.start);
    thread.start.uc_stack.ss_sp = Stacks()[i].get();
    thread.start.uc_stack.ss_size = kStack;
    thread.start.uc_link = nullptr;
    ::makecontext(&thread.start, &Begin, 0);
  }
  world = &w;
  while (!w.run.fault) {
    size_t next = w.current;
    if (w.next_switch < plan.switches.size() &&
        plan.switches[w.next_switch].at < w.run.accesses) {
      next = plan.switches[w.next_switch++].thread;
    }
    // One that has ended makes room for the first that has not.
    if (w.threads[next].done) {
      next = 0;
      while (next < threads.size() && w.threads[next].done) ++next;
      if (next == threads.size()) break;
    }
    Resume(next);
  }
  world = nullptr;
  return w.run;
}

}  // namespace weir::explore
