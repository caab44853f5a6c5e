// A server of echo.proto in the loopback, by any of gRPC's server APIs, whose
// handlers a test can hold.

#ifndef WEIR_ADAPTERS_GRPC_TESTING_ECHO_SERVER_H_
#define WEIR_ADAPTERS_GRPC_TESTING_ECHO_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "echo.grpc.pb.h"
#include "weir/grpc/server.h"

namespace weir::grpc::testing {

// What handlers do and tests wait for.
class Stage {
 public:
  // In a handler.  The text "hold" stays until Release(), or until its call is
  // cancelled.
  void Enter(const Words& words, const std::function<bool()>& cancelled) {
    std::unique_lock lock(mutex_);
    ++handled_;
    changed_.notify_all();
    if (words.text() != "hold") return;
    ++held_;
    while (!released_ && !cancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    --held_;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void WaitForHeld(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ >= n; });
  }
  int handled() {
    const std::lock_guard lock(mutex_);
    return handled_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  int held_ = 0;
  int handled_ = 0;
};

// What Say() answers: the text "fail" gives an error, others the same words.
::grpc::Status Answer(const Words& request, Words* response);

class SyncEcho final : public Echo::Service {
 public:
  using SayFunction = std::function<::grpc::Status(::grpc::ServerContext&,
                                                   const Words&, Words&)>;
  // `say`, when given, is what Say() does.
  explicit SyncEcho(Stage& stage, SayFunction say = nullptr)
      : stage_(stage), say_(std::move(say)) {}

  ::grpc::Status Say(::grpc::ServerContext*, const Words*, Words*) override;
  ::grpc::Status Gather(::grpc::ServerContext*, ::grpc::ServerReader<Words>*,
                        Words*) override;
  ::grpc::Status Repeat(::grpc::ServerContext*, const Words*,
                        ::grpc::ServerWriter<Words>*) override;
  ::grpc::Status Talk(::grpc::ServerContext*,
                      ::grpc::ServerReaderWriter<Words, Words>*) override;

 private:
  Stage& stage_;
  const SayFunction say_;
};

class CallbackEcho final : public Echo::CallbackService {
 public:
  explicit CallbackEcho(Stage& stage) : stage_(stage) {}

  ::grpc::ServerUnaryReactor* Say(::grpc::CallbackServerContext*, const Words*,
                                  Words*) override;
  ::grpc::ServerReadReactor<Words>* Gather(::grpc::CallbackServerContext*,
                                           Words*) override;
  ::grpc::ServerWriteReactor<Words>* Repeat(::grpc::CallbackServerContext*,
                                            const Words*) override;
  ::grpc::ServerBidiReactor<Words, Words>* Talk(
      ::grpc::CallbackServerContext*) override;

 private:
  Stage& stage_;
};

}  // namespace weir::grpc::testing

#endif  // WEIR_ADAPTERS_GRPC_TESTING_ECHO_SERVER_H_
