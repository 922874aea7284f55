// SPDX-License-Identifier: Apache-2.0
//
// One of NVIDIA's libraries on one GPU, as kernels call it: cuBLASLt (Blas.h) or cuDNN (Dnn.h). A call computes shard
// after shard by an algorithm that is fixed, so no bit depends on how many shards a device has. docs/libraries.md.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/NvidiaLibraries.h"
#include "runtime/plan/Calls.h"

#include <memory>
#include <vector>

namespace mtrun::cuda {

// A way to compute a call, by the name that tuning files give it.
struct Algorithm {
  std::string name;
  uint64_t workspace = 0; // bytes
};

// Where a call's operands lie, in device memory. The kernel of a convolution is [filters, taps, taps, channels /
// groups] here; the result of a sum over the batch is one for each shard, one after the other.
struct CallPlaces {
  const std::byte *left = nullptr, *right = nullptr, *bias = nullptr;
  std::byte *result = nullptr;
  std::byte *workspace = nullptr; // of Algorithm::workspace bytes
};

// Which ways to compute a call are wanted.
struct Wanted {
  uint64_t workspace = 0; // bytes, at most
  size_t most = 1;        // algorithms
  int64_t shards = 1;     // a device has 1, 2, 4 ... so many
  // Those too that the library proposes for want of better ones: nothing says that they are fast.
  bool fallbacks = false;
};

class CallLibrary {
public:
  virtual ~CallLibrary() = default; // the GPU's context is current

  // "cuBLASLt 13.0.2".
  virtual std::string version() const = 0;
  // Ways to compute a shard of `shardRows` samples that give the same bits every time, in full precision of
  // call.math(), whatever number of shards is computed at once; the library's favourite first. None: `found` stays
  // empty.
  virtual Status algorithms(const mt::plan::LibraryCall &call, int64_t shardRows, const Wanted &wanted,
                            std::vector<Algorithm> &found) = 0;
  // Whether the algorithm of this name, out of a file, computes 1, 2, 4 ... `shards` shards of the call; sets its
  // workspace. MT_INVALID.
  virtual Status find(const mt::plan::LibraryCall &call, int64_t shardRows, int64_t shards, Algorithm &algorithm) = 0;
  // Enqueues the call for `shards` shards; the stream may be captured.
  virtual Status enqueue(const mt::plan::LibraryCall &call, int64_t shardRows, const Algorithm &algorithm,
                         const CallPlaces &places, int64_t shards, Stream stream) = 0;
};

// dlopen of the first of `names`, or of what the environment variable says. MT_DEVICE, with the package that has it.
Status openCallLibrary(const NvidiaLibrary &named, const char *packages, void *&library, std::string &place);

} // namespace mtrun::cuda
