// SPDX-License-Identifier: Apache-2.0
//
// How long an all-reduce of devices on several hosts takes, from rates and latencies alone.
#ifndef MT_EXCHANGE_TIME_H
#define MT_EXCHANGE_TIME_H

#include <cstdint>

namespace mtrun {

// Equal hosts with equal devices.
struct Cluster {
  uint64_t hosts = 1, perHost = 1;
  double link = 0, network = 0;     // byte/s of a device in one direction: to devices of its host; to other hosts
  double exchange = 0, between = 0; // seconds until a message of few bytes arrives; additional seconds between hosts
  double hop = 0;                   // seconds of a step of a ring

  uint64_t devices() const { return hosts * perHost; }
};

// Flat: each device sends chunks directly to all others, twice. HostFirst: the same inside each host, then between the
// hosts with the chunk of a device, in pieces, so that links and network are busy at the same time. Ring: the ring
// all-reduce of collective libraries, whose order of addition depends on the number of devices.
enum class ClusterExchange { Flat, HostFirst, Ring };

// Returns the seconds of an all-reduce of `bytes` bytes, without the additions.
double exchangeTime(ClusterExchange kind, const Cluster &cluster, double bytes);

} // namespace mtrun

#endif
