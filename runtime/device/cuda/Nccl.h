// SPDX-License-Identifier: Apache-2.0
//
// The functions of NCCL that the runtime calls, found in its library when a session has several processes. Declared
// here, as NCCL's documentation does, so that building needs no header of it; test/unit/runtime_cuda compares them with
// nccl.h where that is there.
#pragma once

#include "runtime/device/cuda/Driver.h"

// NCCL's own name for a communicator.
struct ncclComm;

namespace mtrun::cuda {

using NcclResult = int; // ncclResult_t
using NcclComm = ncclComm *;
struct NcclId { // ncclUniqueId
  char bytes[128];
};

// Of ncclResult_t, ncclDataType_t, ncclRedOp_t.
inline constexpr NcclResult ncclOk = 0, ncclCudaError = 1, ncclWorking = 7;
inline constexpr int ncclF32 = 7, ncclAdd = 0;

// 2.18: sends and receives in CUDA graphs, and a communicator that can be aborted from another thread.
inline constexpr int oldestNccl = 21800;

// X(member, symbol in the library, parameters)
#define MTRUN_NCCL_FUNCTIONS(X)                                                                                        \
  X(getVersion, ncclGetVersion, (int *version))                                                                        \
  X(getUniqueId, ncclGetUniqueId, (NcclId * id))                                                                       \
  X(commInitRank, ncclCommInitRank, (NcclComm * comm, int ranks, NcclId id, int rank))                                 \
  X(commDestroy, ncclCommDestroy, (NcclComm comm))                                                                     \
  X(commAbort, ncclCommAbort, (NcclComm comm))                                                                         \
  X(commGetAsyncError, ncclCommGetAsyncError, (NcclComm comm, NcclResult * error))                                     \
  X(groupStart, ncclGroupStart, ())                                                                                    \
  X(groupEnd, ncclGroupEnd, ())                                                                                        \
  X(send, ncclSend, (const void *from, size_t count, int type, int peer, NcclComm comm, Stream stream))                \
  X(recv, ncclRecv, (void *to, size_t count, int type, int peer, NcclComm comm, Stream stream))                        \
  X(allReduce, ncclAllReduce,                                                                                          \
    (const void *from, void *to, size_t count, int type, int op, NcclComm comm, Stream stream))

struct Nccl {
#define MTRUN_NCCL_MEMBER(member, symbol, parameters) NcclResult(*member) parameters = nullptr;
  MTRUN_NCCL_FUNCTIONS(MTRUN_NCCL_MEMBER)
#undef MTRUN_NCCL_MEMBER
  const char *(*getErrorString)(NcclResult error) = nullptr;
  const char *(*getLastError)(NcclComm comm) = nullptr;
  int version = 0;

  // Whether this release is reported to hang where processes are on several hosts; the error that says so.
  bool hangsBetweenHosts() const;
  Status refused() const;
  // "unhandled system error (socketProgress: Connection closed by remote peer)"; `comm` may be null.
  std::string describe(NcclResult error, NcclComm comm) const;
};

// Opens libnccl.so.2, or what $MTRUN_NCCL names, once a process, with settings of ours in the environment where the
// user has none. MT_NO_DEVICE: there is none, or it is older than 2.18.
Status openNccl(const Nccl *&nccl);

} // namespace mtrun::cuda
