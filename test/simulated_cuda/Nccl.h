// SPDX-License-Identifier: Apache-2.0
//
// NCCL without GPUs: the functions that runtime/device/cuda calls, between processes of this host, enqueued on the
// simulated driver's streams. What no caller may do, and processes whose calls differ in kind, order or size, end the
// process with a message. A process that is gone is not noticed: its peers wait. Read from the environment:
//
//   MTC_SIM_NCCL_VERSION=N     (22105)
//   MTC_SIM_NCCL_RANK=R        what follows is for process R alone
//   MTC_SIM_NCCL_FAIL=N        the N-th call fails; the process says at its end if there were fewer
//   MTC_SIM_NCCL_DIE=N         the process kills itself in the N-th exchange that runs
//   MTC_SIM_NCCL_STALL=N       the N-th exchange that runs does nothing and has no end
//   MTC_SIM_NCCL_ASYNC=N       the same, and the communicator tells of an error
#pragma once

#include "Simulator.h"
#include "runtime/device/cuda/Nccl.h"

#include <atomic>

// The connections of one process with all others.
struct ncclComm {
  int rank = 0, ranks = 0, device = 0;
  std::vector<int> sockets;         // of each peer
  std::vector<std::string> out, in; // bytes on their way
  uint64_t exchanges = 0;           // begun
  CUstream_st *stream = nullptr;    // the one of all calls
  std::atomic<int> recorded = 0;    // calls that live in graphs
  std::atomic<bool> aborted = false, failed = false, ended = false;
};

namespace simulated {

struct Piece {
  enum class Kind { Send, Receive, Reduce } kind;
  std::byte *memory = nullptr, *result = nullptr; // result: Reduce
  size_t floats = 0;
  int peer = 0; // not of Reduce
};

struct NcclSettings {
  NcclSettings();
  ~NcclSettings();
  long version = 22105, rank = -1, failAt = 0, dieAt = 0, stallAt = 0, asyncAt = 0, calls = 0;
  int known = -1; // this process' rank, once it has one
  bool isMine() const { return rank < 0 || rank == known; }
};
NcclSettings &ncclSettings();

// Blocks until all processes are there.
void connectAll(ncclComm &comm, const std::string &name);
// One group of calls as it runs once.
std::unique_ptr<External> beginExchange(ncclComm &comm, std::vector<Piece> pieces);

} // namespace simulated
