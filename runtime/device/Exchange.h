// SPDX-License-Identifier: Apache-2.0
//
// The order of one all-reduce between processes that have one device each: what a process sends, receives and adds,
// round by round, without any transport. Every kind of exchange adds the partial sums along the same tree (treeSums()),
// so the bits of the result depend neither on the kind nor on the number of processes.
//
// Only the first `active` processes have valid rows. The others send no partial sums, and receive the result.
#pragma once

#include "runtime/device/BoundProgram.h"

#include <cstdint>
#include <vector>

namespace mtrun {

// Gather: each process sends its partial sum to all others, and adds all of them; one round, for any number of
// processes. Doubling: log2 P rounds with the partner at distance 1, 2, 4 ..., each for the whole vector. Halving: the
// same partners, half of the vector in each round; then the results return in the opposite order. Direct: a process
// receives the partial sums of its chunk from all others, and sends the result to all others; two rounds. Doubling and
// halving need a power of two of processes. HostFirst: direct inside each host, then between hosts, where each process
// sends and receives 1/G of the bytes if its host has G processes, and the results inside the host; four rounds.
enum class ExchangeKind { Gather, Doubling, Halving, Direct, HostFirst };

// How the processes of a session are placed.
struct ExchangePlaces {
  int processes = 1;
  bool even = true; // all processes have equal subtrees, which doubling and halving need
  // The number of processes of each host, in order, if each host has a whole subtree; empty: unknown. HostFirst needs
  // it.
  std::vector<int> hosts = {};
};

// Selects the kind that is likely fastest. Bits do not depend on it.
ExchangeKind chooseKind(uint64_t bytes, const ExchangePlaces &places);

// The vectors of a process: its partial sum, the result, and memory for what it receives.
enum class ExchangeMemory { Partial, Result, Staging };

struct ExchangePlace {
  ExchangeMemory memory;
  int64_t offset; // in elements
};

struct ExchangeMessage {
  int peer;
  ExchangePlace place;
  int64_t elements;
};

// out = left + right, for `elements` floats from each place.
struct ExchangeSum {
  ExchangePlace left, right, out;
  int64_t elements;
};

struct ExchangeCopy {
  ExchangePlace from, to;
  int64_t elements;
};

// All messages of a round may be in flight at once. When they have ended, the sums follow in order, then the copies.
struct ExchangeRound {
  // None of 0 elements. Two messages to one peer arrive in their order.
  std::vector<ExchangeMessage> sends, receives;
  std::vector<ExchangeSum> sums;
  std::vector<ExchangeCopy> copies;
};

struct ExchangeShape {
  ExchangeKind kind;
  int processes, process, active;
  int64_t elements;
  // For HostFirst: the number of processes of each host, in order. The processes of a host have a whole subtree.
  std::vector<int> hosts = {};
};

// Returns the rounds of one process. `sums`: entry `active` of treeSums() for the shards of the processes; 1 <= active
// <= processes. Rounds without messages and sums are left out.
std::vector<ExchangeRound> exchangeRounds(const ExchangeShape &shape, const std::vector<TreeSum> &sums);

// Returns the first half of a direct exchange, for elements [begin, begin + size) of each process's chunk: each process
// receives the partial sums of its chunk, and adds them. At most one round. `shape` is of the whole vector; its kind
// does not matter.
std::vector<ExchangeRound> scatterRounds(const ExchangeShape &shape, const std::vector<TreeSum> &sums, int64_t begin,
                                         int64_t size);

// Returns the floats of memory for received data that exchangeRounds() uses at most, for any number of active
// processes.
int64_t exchangeStaging(ExchangeKind kind, const ExchangePlaces &places, int64_t elements);

} // namespace mtrun
