// Holds all shards of a policy's region, until its input ends.
//
//   shard_holder POLICY    prints how many it holds

#include <iostream>
#include <vector>

#include "weir/config/policy.h"
#include "weir/host/clock.h"
#include "weir/shm/lease.h"
#include "weir/shm/segment.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: shard_holder POLICY\n";
    return 2;
  }
  const auto policy = weir::config::LoadPolicy(argv[1]);
  if (!policy) {
    std::cerr << policy.complaints().Print();
    return 1;
  }
  const auto region =
      weir::shm::SharedRegion::Open(*policy, weir::host::MonotonicClock::Now());
  if (!region) {
    std::cerr << region.error().message << '\n';
    return 1;
  }
  std::vector<weir::shm::ShardLease> leases;
  while (auto lease = weir::shm::ShardLease::Claim(**region)) {
    leases.push_back(std::move(*lease));
  }
  std::cout << leases.size() << std::endl;
  std::cin.get();
}
