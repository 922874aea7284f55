// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/exchange_time.h"

#include <algorithm>
#include <cmath>

namespace mtrun {

double exchangeTime(ClusterExchange kind, const Cluster &cluster, double bytes) {
  auto hosts = static_cast<double>(cluster.hosts), perHost = static_cast<double>(cluster.perHost);
  double devices = hosts * perHost, twice = 2 * bytes / devices;
  if (devices <= 1)
    return 0;
  auto over = [](double bytesMoved, double rate) { return bytesMoved > 0 ? bytesMoved / rate : 0; };
  if (kind == ClusterExchange::Flat)
    return 2 * (cluster.exchange + (hosts > 1 ? cluster.between : 0)) +
           std::max(over((perHost - 1) * twice, cluster.link), over((devices - perHost) * twice, cluster.network));
  if (kind == ClusterExchange::Ring)
    // A host's part of the ring has as many channels as it has devices.
    return 2 * (devices - 1) * cluster.hop +
           (devices - 1) * twice *
               std::max(perHost > 1 ? 1 / cluster.link : 0, hosts > 1 ? 1 / (perHost * cluster.network) : 0);
  double inside = over(2 * bytes * (perHost - 1) / perHost, cluster.link);
  double outside = over(2 * bytes / perHost * (hosts - 1) / hosts, cluster.network);
  constexpr double pieceBytes = 4 << 20;
  double pieces = std::max(1.0, std::ceil(bytes / pieceBytes));
  return (perHost > 1 ? 2 * cluster.exchange : 0) + (hosts > 1 ? 2 * (cluster.exchange + cluster.between) : 0) +
         std::max(inside, outside) + std::min(inside, outside) / pieces;
}

} // namespace mtrun
