// The sample service on a socket: HTTP/1.1, kept alive, one thread.

#ifndef WEIR_CLI_BACKEND_SERVER_H_
#define WEIR_CLI_BACKEND_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend_service.h"
#include "event_loop.h"
#include "weir/result.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

// What it understands of a request: the path (a route of the scenario, else the
// first one; /healthz is answered at once), `weir-request` (the number that
// decides the service time; counted when absent) and `weir-at` (milliseconds
// since the start of the scenario: how the service knows when a run began).
// Answers carry `weir-service-us`, the time that the work took by itself.
//
// A caller that hangs up is not noticed by the work: it stays in the queue and
// is done.  Real services are like that, and it is why they collapse.
//
// The admin port answers /stats (JSON), /set?workers=N&speed=F, /clear (forget
// what waits) and /reset (as the scenario has it at its start, nothing waits).
class BackendServer {
 public:
  struct Options {
    uint16_t port = 0;  // 0: a free one.
    uint16_t admin_port = 0;
    uint64_t seed = 1;
  };
  // `scenario` must outlive the server.  An error names the port in use.
  static Result<std::unique_ptr<BackendServer>> Make(
      const scenario::Scenario& scenario, const Options& options);
  ~BackendServer();

  uint16_t port() const { return port_; }
  uint16_t admin_port() const { return admin_port_; }

  // Serves until `stop` becomes readable (a signalfd, an eventfd).
  void Run(int stop);

 private:
  struct Connection;

  BackendServer(const scenario::Scenario& scenario, const Options& options,
                Listener listener, Listener admin);

  void Accept(const Listener& listener, bool admin);
  void Handle(Connection& connection, uint32_t events);
  void Read(Connection& connection);
  bool Parse(Connection& connection, std::string_view bytes);
  void TakeRequest(Connection& connection);
  void FollowRun(Instant now, int64_t at_ms);
  void Answer(Connection& connection, std::string_view status,
              std::string_view extra, std::string_view body);
  void Flush(Connection& connection);
  void Close(Connection& connection);
  void Deliver(Instant now);
  std::string Admin(std::string_view url);
  Connection* Find(uint64_t token);

  const scenario::Scenario& scenario_;
  Listener listener_;
  Listener admin_;
  uint16_t port_;
  uint16_t admin_port_;
  Poller poller_;
  BackendService service_;
  Instant run_start_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> free_;
  std::vector<BackendService::Done> done_;
  Descriptor spare_;  // Given up to refuse a connection when there are no more.
  uint64_t arrived_ = 0;
  uint64_t answered_ = 0;
  uint64_t gone_ = 0;  // Work that was done for callers that had gone.
};

}  // namespace weir::cli

#endif  // WEIR_CLI_BACKEND_SERVER_H_
