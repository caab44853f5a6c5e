#include "registry.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace rpc {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;

const std::string kRoot = "/weir-rpc";
// After an error that another try may mend.
constexpr auto kRetry = 200ms;

struct Close {
  void operator()(zhandle_t* handle) const { zookeeper_close(handle); }
};
using Handle = std::unique_ptr<zhandle_t, Close>;

// An interior node, which stays.  That it exists already is fine.
int MakeNode(zhandle_t* handle, const std::string& path) {
  const int status = zoo_create(handle, path.c_str(), "", 0,
                                &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
  return status == ZNODEEXISTS ? ZOK : status;
}

}  // namespace

class Registry::Impl {
 public:
  explicit Impl(Config config)
      : config_(std::move(config)), thread_([this] { Run(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      Wake();
    }
    thread_.join();
  }

  void Announce(const std::string& service, const std::string& address) {
    const std::lock_guard lock(mutex_);
    announced_.push_back({service, address, false});
    Wake();
  }

  void Follow(const std::string& service, Changed changed) {
    const std::lock_guard lock(mutex_);
    followed_.push_back({service, std::move(changed), true, {}});
    Wake();
  }

 private:
  struct Announced {
    std::string service;
    std::string address;
    bool done = false;  // In this session.
  };
  struct Followed {
    std::string service;
    Changed changed;
    bool stale = true;  // Its list must be read.
    std::vector<std::string> known;
  };

  // From ZooKeeper's thread: it must not wait there for an answer, so all that
  // happens is noted for ours.
  static void OnEvent(zhandle_t*, int type, int state, const char* path,
                      void* self) {
    static_cast<Impl*>(self)->Note(type, state, path == nullptr ? "" : path);
  }

  void Note(int type, int state, const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (type == ZOO_SESSION_EVENT) {
      connected_ = state == ZOO_CONNECTED_STATE;
      expired_ = expired_ || state == ZOO_EXPIRED_SESSION_STATE ||
                 state == ZOO_AUTH_FAILED_STATE;
      // A watch that was set over a lost connection may have missed something.
      for (Followed& f : followed_) f.stale = f.stale || connected_;
    } else {
      for (Followed& f : followed_) {
        f.stale = f.stale || path == kRoot + "/" + f.service;
      }
    }
    Wake();
  }

  void Wake() {
    woken_ = true;
    changed_.notify_all();
  }

  void Log(const std::string& line) {
    if (config_.log) config_.log(line);
  }

  // A session after the other.
  void Run() {
    while (true) {
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      connected_ = expired_ = false;
      for (Announced& a : announced_) a.done = false;
      lock.unlock();
      // Closing it, at the end of this block, ends the session.
      const Handle handle(
          zookeeper_init(config_.servers.c_str(), &OnEvent,
                         static_cast<int>(config_.session_timeout / 1ms),
                         nullptr, this, ZOO_NO_LOG_CLIENTENV));
      lock.lock();
      if (handle == nullptr) {
        changed_.wait_for(lock, kRetry, [this] { return stopping_; });
        continue;
      }
      Instant lost = Clock::now();
      while (!stopping_ && !expired_) {
        const bool done = !connected_ || CatchUp(lock, handle.get());
        const auto woken = [this] { return std::exchange(woken_, false); };
        if (connected_ && done) {
          changed_.wait(lock, woken);
        } else {
          changed_.wait_for(lock, kRetry, woken);
        }
        if (connected_) lost = Clock::now();
        // A ZooKeeper that has lost its data never lets an old session in.
        expired_ =
            expired_ || Clock::now() - lost > 2 * config_.session_timeout;
      }
      if (!stopping_) Log("the session has expired, a new one begins");
      lock.unlock();
    }
  }

  // Does what is due, without the lock while ZooKeeper is asked.  Both lists
  // only grow meanwhile.  Returns whether nothing is left to do.
  bool CatchUp(std::unique_lock<std::mutex>& lock, zhandle_t* handle) {
    bool done = true;
    for (size_t i = 0; i < announced_.size(); ++i) {
      if (announced_[i].done) continue;
      const std::string service = announced_[i].service;
      const std::string address = announced_[i].address;
      lock.unlock();
      const int status = Create(handle, service, address);
      Log("announce " + address + " of " + service + ": " + zerror(status));
      lock.lock();
      announced_[i].done = status == ZOK;
      done = done && status == ZOK;
    }
    for (size_t i = 0; i < followed_.size(); ++i) {
      if (!std::exchange(followed_[i].stale, false)) continue;
      const std::string service = followed_[i].service;
      const Changed changed = followed_[i].changed;
      std::vector<std::string> list;
      lock.unlock();
      const int status = List(handle, service, list);
      lock.lock();
      if (status != ZOK) {
        followed_[i].stale = true;
        done = false;
      } else if (!list.empty() && list != followed_[i].known) {
        followed_[i].known = list;
        lock.unlock();
        changed(list);
        lock.lock();
      }
    }
    return done;
  }

  static int Create(zhandle_t* handle, const std::string& service,
                    const std::string& address) {
    int status = MakeNode(handle, kRoot);
    if (status == ZOK) status = MakeNode(handle, kRoot + "/" + service);
    if (status != ZOK) return status;
    const std::string path = kRoot + "/" + service + "/" + address;
    const auto create = [&] {
      return zoo_create(handle, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                        ZOO_EPHEMERAL, nullptr, 0);
    };
    status = create();
    if (status != ZNODEEXISTS) return status;
    // Of this session, or left by a server that was killed and has come back
    // sooner than ZooKeeper noticed: that one will vanish, so it must go first.
    Stat stat{};
    status = zoo_exists(handle, path.c_str(), 0, &stat);
    if (status == ZOK &&
        stat.ephemeralOwner == zoo_client_id(handle)->client_id) {
      return ZOK;
    }
    if (status == ZOK) status = zoo_delete(handle, path.c_str(), -1);
    return status == ZOK || status == ZNONODE ? create() : status;
  }

  // The list, and a watch that tells of the next change.
  int List(zhandle_t* handle, const std::string& service,
           std::vector<std::string>& list) {
    int status = MakeNode(handle, kRoot);
    if (status == ZOK) status = MakeNode(handle, kRoot + "/" + service);
    if (status != ZOK) return status;
    String_vector children{};
    status = zoo_wget_children(handle, (kRoot + "/" + service).c_str(),
                               &OnEvent, this, &children);
    if (status != ZOK) return status;
    list.assign(children.data, children.data + children.count);
    deallocate_String_vector(&children);
    std::sort(list.begin(), list.end());
    return ZOK;
  }

  const Config config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool connected_ = false;
  bool expired_ = false;
  bool woken_ = false;
  std::vector<Announced> announced_;
  std::vector<Followed> followed_;
  std::thread thread_;  // Last: it uses all of the above.
};

weir::Result<std::unique_ptr<Registry>> Registry::Make(const Config& config) {
  if (config.servers.empty()) return weir::Error{"no ZooKeeper was named"};
  if (config.session_timeout < 1s || config.session_timeout > 1h) {
    return weir::Error{"the session timeout must lie between 1s and 1h"};
  }
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  return std::unique_ptr<Registry>(
      new Registry(std::make_unique<Impl>(config)));
}

Registry::Registry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Registry::~Registry() = default;

void Registry::Announce(const std::string& service,
                        const std::string& address) {
  impl_->Announce(service, address);
}

void Registry::Follow(const std::string& service, Changed changed) {
  impl_->Follow(service, std::move(changed));
}

}  // namespace rpc
