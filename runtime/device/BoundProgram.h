// SPDX-License-Identifier: Apache-2.0
//
// A program resolved to pointers, for every device of a group: all that a step needs but the caller's tensors and the
// number of samples. Made once a session (runtime/session/Bind.cpp), so that the step loop only walks arrays.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/device/Tracer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace mtrun {

// A kernel as its group knows it: a function of type mt_kernel_fn where threads of this process run it, else what the
// device's driver names it by.
using KernelHandle = void *;

struct BoundSegment {
  void *const *buffers; // into DeviceProgram::pointers
  uint32_t bufferCount;
  int64_t count; // elements
  int64_t tiles; // Elementwise kernels only
};

struct BoundStep {
  KernelHandle kernel; // null: an all-reduce
  const BoundSegment *segments;
  uint32_t segmentCount;
  uint32_t allReduce; // index into BoundProgram::allReduces
  int64_t rowsPerTile;
  int64_t innerTiles;
  int64_t mapTiles; // of all segments
  bool waits;       // for all threads of the device; an all-reduce brings its own barriers
  bool map;
  bool usesRows;
  bool isUpdate;    // touches state that devices share, and no arena
  bool once;        // runs behind the last micro-batch only
  uint32_t index;   // of the program's step
  uint32_t threads; // of a tile's block, on devices with blocks; 0 elsewhere
  bool hasPartials; // on devices with blocks: it uses memory that one launch at a time may use
};

// A pointer that changes with the caller's tensors: tensors[entry] + firstRow * rowBytes.
struct SignaturePatch {
  void **slot;
  uint32_t entry;
  uint64_t rowBytes;
};

// Steps [begin, end) of a device, in turn for each micro-batch or once in all.
struct BoundPhase {
  uint32_t begin, end;
  bool repeats;
};

struct alignas(64) DeviceProgram {
  mt_kernel_params params = {}; // of the step that runs
  int64_t firstRow = 0;
  int64_t maxRows = 0;            // shards * shard_rows
  int64_t passRows = 0;           // of a micro-batch: as many or fewer
  std::vector<BoundPhase> phases; // empty where no device has more than one micro-batch
  std::vector<BoundStep> steps;
  std::vector<BoundSegment> segments;
  std::vector<void *> pointers;
  std::vector<uint64_t> sizes; // bytes at most, of what each pointer is to
  std::vector<SignaturePatch> patches;

  // That run where so many of its rows are valid; the first one always does.
  int64_t microBatches(int64_t rows) const { return std::max<int64_t>((rows + passRows - 1) / passRows, 1); }
};

// One all-reduce: a partial sum and a buffer for the result per device.
struct BoundAllReduce {
  int64_t elements; // F32
  std::vector<float *> partials;
  std::vector<float *> results;
  // Of each device: sums of 1, 2, 4 ... of its micro-batches, while the others run. The last is the result's memory.
  std::vector<std::vector<float *>> sums = {};
};

// node(left) becomes node(left) + node(right); nodes are named by their leftmost device.
struct TreeSum {
  int left, right;
};

// How to add two partial sums, and in which order where the first m devices have valid rows: the reduction tree over
// the shards, cut at the devices' subtrees, without its empty part.
struct ReduceTree {
  KernelHandle sum = nullptr; // the plan's sum_kernel
  int64_t elementsPerTile = 1;
  uint32_t threads = 0;                   // as BoundStep's
  std::vector<std::vector<TreeSum>> sums; // sums[m]; the last one of each gives the result; empty for m <= 1
};

// A tensor of the caller's.
struct BoundTensor {
  uint64_t rowBytes;
  bool output; // written by the program, else read
};

// What the host reads of the first device when a run is finished, until the next one is.
struct ReadBack {
  const void *device; // where the program leaves it
  uint64_t bytes;
  const void *host; // where the host finds it; the same where it can read the device's memory, else set by prepare()
};

// What a group keeps for a program that it has prepared.
class PreparedProgram {
public:
  virtual ~PreparedProgram() = default;
};

struct BoundProgram {
  std::vector<DeviceProgram> devices; // those of this process
  int firstDevice = 0;                // the session's number of the first of them
  std::vector<int64_t> firstRows;     // of all of the session's devices, where these are not all; else empty
  std::vector<BoundAllReduce> allReduces;
  const ReduceTree *tree = nullptr;
  std::vector<float *> staging; // a device's copies of its peers' chunks
  std::vector<BoundTensor> signature;
  std::vector<ReadBack> readBacks;
  Tracer *tracer = nullptr; // asked before each run; null: none is recorded
  std::unique_ptr<PreparedProgram> prepared;

  int sessionDevices() const { return static_cast<int>(firstRows.empty() ? devices.size() : firstRows.size()); }
  // Devices of the session with valid rows: the first ones.
  int activeDevices(int64_t n) const {
    int active = 0;
    for (int64_t row : firstRows)
      active += row < n;
    for (size_t d = 0; firstRows.empty() && d < devices.size(); ++d)
      active += devices[d].firstRow < n;
    return active;
  }
};

struct StepArguments {
  const void *const *tensors; // signature order; outputs are written, when the run is finished
  int64_t n;                  // valid samples
  uint64_t seed;
  bool unchanged = false; // the tensors hold what they held in all runs before that named them
};

} // namespace mtrun
