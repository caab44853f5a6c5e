// A guarded server and a guarded channel to it, in one process.  The marked
// lines are those of docs/grpc.md, to the letter: a test compares them.
//
//   grpc_example [shop.toml]

#include <grpcpp/grpcpp.h>

#include <iostream>
#include <memory>
#include <string>

#include "echo.grpc.pb.h"
#include "weir/grpc/client.h"
#include "weir/grpc/server.h"

namespace {

using weir::grpc::testing::Echo;
using weir::grpc::testing::Words;

// The last service of a chain.
class Shop final : public Echo::Service {
  grpc::Status Say(grpc::ServerContext*, const Words* request,
                   Words* response) override {
    *response = *request;
    return grpc::Status::OK;
  }
};

// One that calls it for its own callers.
class Front final : public Echo::Service {
 public:
  explicit Front(const std::string& target) {
    // docs: channel
    auto channel = weir::grpc::GuardedChannel::Make(
        target, grpc::InsecureChannelCredentials());
    shop_ = *channel;
    stub_ = Echo::NewStub(shop_->channel());
    // docs: end
  }

 private:
  grpc::Status Say(grpc::ServerContext* context, const Words* request,
                   Words* response) override {
    // docs: call
    auto result = shop_->Call(weir::grpc::ScopeOf(*context),
                              [&](grpc::ClientContext& call) {
                                return stub_->Say(&call, *request, response);
                              });
    return weir::grpc::Relay(result, *context);
    // docs: end
  }

  std::shared_ptr<weir::grpc::GuardedChannel> shop_;
  std::unique_ptr<Echo::Stub> stub_;
};

std::unique_ptr<grpc::Server> Serve(const std::string& policy,
                                    grpc::Service& service, int* port) {
  // docs: server
  auto guard = weir::grpc::ServiceGuard::Load(policy, {});
  if (!guard) {
    std::cerr << guard.error().message << "\n";
    return nullptr;
  }
  weir::grpc::GuardedServerBuilder builder(*guard);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           port);
  builder.RegisterService(&service);
  return builder.BuildAndStart();
  // docs: end
}

}  // namespace

int main(int argc, char** argv) {
  const std::string policy = argc > 1 ? argv[1] : "examples/grpc/shop.toml";
  Shop shop;
  int shop_port = 0;
  const auto shop_server = Serve(policy, shop, &shop_port);
  if (!shop_server) return 1;
  Front front("127.0.0.1:" + std::to_string(shop_port));
  int front_port = 0;
  const auto front_server = Serve(policy, front, &front_port);
  if (!front_server) return 1;

  const auto stub = Echo::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(front_port),
                          grpc::InsecureChannelCredentials()));
  Words words;
  words.set_text("two apples");
  {
    grpc::ClientContext context;
    const grpc::Status status = stub->Say(&context, words, &words);
    std::cout << (status.ok() ? "answered: " + words.text()
                              : "refused: " + status.error_message())
              << "\n";
  }
  {
    grpc::ClientContext context;
    const auto reader = stub->Repeat(&context, words);
    while (reader->Read(&words)) {
    }
    std::cout << "refused: " << reader->Finish().error_message() << "\n";
  }
  return 0;
}
