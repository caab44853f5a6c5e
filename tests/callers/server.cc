// A guarded server for run.py: answers what it is asked, prints "ready PORT",
// and at the end of its input how many calls came to it.
//
//   callers_server POLICY

#include "weir/grpc/server.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "echo.grpc.pb.h"
#include "weir/snapshot.h"

namespace {

using weir::grpc::testing::Words;

class Echo final : public weir::grpc::testing::Echo::Service {
  grpc::Status Say(grpc::ServerContext*, const Words* request,
                   Words* response) override {
    *response = *request;
    return grpc::Status::OK;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto guard = weir::grpc::ServiceGuard::Load(argv[1], {.shared = false});
  if (!guard) {
    std::fprintf(stderr, "%s\n", guard.error().message.c_str());
    return 2;
  }
  Echo echo;
  int port = 0;
  weir::grpc::GuardedServerBuilder builder(*guard);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&echo);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("ready %d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  uint64_t offered = 0;
  const weir::Snapshot snapshot = weir::Read((*guard)->region());
  for (const uint64_t of_class : snapshot[weir::ClassCounter::offered_total]) {
    offered += of_class;
  }
  std::printf("offered %llu\n", static_cast<unsigned long long>(offered));
}
