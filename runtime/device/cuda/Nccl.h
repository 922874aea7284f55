// SPDX-License-Identifier: Apache-2.0
//
// The functions of NCCL that the runtime calls. They are looked up in NCCL's library when a session has several
// processes, and declared here, so that the build needs no header; test/unit/runtime_cuda compares the declarations
// with nccl.h if it is installed.
#pragma once

#include "runtime/device/cuda/Driver.h"

// NCCL's opaque type of a communicator.
struct ncclComm;

namespace mtrun::cuda {

using NcclResult = int; // ncclResult_t
using NcclComm = ncclComm *;
struct NcclId { // ncclUniqueId
  char bytes[128];
};

// Values of ncclResult_t, ncclDataType_t and ncclRedOp_t.
inline constexpr NcclResult ncclOk = 0, ncclCudaError = 1, ncclWorking = 7;
inline constexpr int ncclF32 = 7, ncclAdd = 0;

// NCCL 2.18 is the first version with sends and receives in CUDA graphs and with communicators that another thread can
// abort.
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

  // Returns true if this release is reported to hang with processes on several hosts; refused() is the error for it.
  bool hangsBetweenHosts() const;
  Status refused() const;
  // Returns a text such as "unhandled system error (socketProgress: Connection closed by remote peer)"; `comm` may be
  // null.
  std::string describe(NcclResult error, NcclComm comm) const;
};

// Opens libnccl.so.2, or the file in $MTRUN_NCCL, once per process. Sets environment variables that the user has not
// set. MT_NO_DEVICE: the library is missing or older than 2.18.
Status openNccl(const Nccl *&nccl);

} // namespace mtrun::cuda
