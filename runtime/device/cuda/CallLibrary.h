// SPDX-License-Identifier: Apache-2.0
//
// The interface to one of NVIDIA's libraries on one GPU: cuBLASLt (Blas.h) or cuDNN (Dnn.h). A call computes each shard
// with a fixed algorithm, so no bit depends on the number of shards of a device. docs/libraries.md.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/NvidiaLibraries.h"
#include "runtime/plan/Calls.h"

#include <memory>
#include <vector>

namespace mtrun::cuda {

// An algorithm for a call, by its name in tuning files.
struct Algorithm {
  std::string name;
  uint64_t workspace = 0; // bytes
};

// The operands of a call in device memory. The kernel of a convolution is [filters, taps, taps, channels / groups]. A
// sum over the batch has one result per shard, one after another.
struct CallPlaces {
  const std::byte *left = nullptr, *right = nullptr, *bias = nullptr;
  std::byte *result = nullptr;
  std::byte *workspace = nullptr; // Algorithm::workspace bytes
};

// The requirements for algorithms.
struct Wanted {
  uint64_t workspace = 0; // maximum bytes
  size_t most = 1;        // maximum number of algorithms
  int64_t shards = 1;     // a device has 1, 2, 4 ... up to this number of shards
  // Include the library's fallback proposals, whose speed is unknown.
  bool fallbacks = false;
};

class CallLibrary {
public:
  virtual ~CallLibrary() = default; // the GPU's context must be current

  // Returns a text such as "cuBLASLt 13.0.2".
  virtual std::string version() const = 0;
  // Finds algorithms for a shard of `shardRows` samples, with the library's favourite first. They compute the same bits
  // every time, in the full precision of call.math(), for any number of shards at once. `found` stays empty if there is
  // none.
  virtual Status algorithms(const mt::plan::LibraryCall &call, int64_t shardRows, const Wanted &wanted,
                            std::vector<Algorithm> &found) = 0;
  // Checks that the algorithm of this name, from a file, computes 1, 2, 4 ... `shards` shards of the call, and sets its
  // workspace. MT_INVALID.
  virtual Status find(const mt::plan::LibraryCall &call, int64_t shardRows, int64_t shards, Algorithm &algorithm) = 0;
  // Enqueues the call for `shards` shards. The stream may be in capture mode.
  virtual Status enqueue(const mt::plan::LibraryCall &call, int64_t shardRows, const Algorithm &algorithm,
                         const CallPlaces &places, int64_t shards, Stream stream) = 0;
};

// Opens the first of `names`, or the file in the environment variable. MT_DEVICE; the message names the package.
Status openCallLibrary(const NvidiaLibrary &named, const char *packages, void *&library, std::string &place);

} // namespace mtrun::cuda
