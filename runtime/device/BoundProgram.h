// SPDX-License-Identifier: Apache-2.0
//
// A program with all indices resolved to pointers, for every device of a group. Only the caller's tensors and the
// number of samples are set in each step. It is built once per session (runtime/session/Bind.cpp), so the step loop
// only iterates over arrays.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/device/Tracer.h"
#include "runtime/support/optimizer_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mtrun {

// A kernel that a group can launch: a function of type mt_kernel_fn if threads of this process run it, else the handle
// of the device's driver.
using KernelHandle = void *;

struct BoundSegment {
  void *const *buffers; // into DeviceProgram::pointers
  uint32_t bufferCount;
  int64_t count; // elements
  int64_t tiles; // only for Elementwise kernels
};

struct BoundStep {
  KernelHandle kernel; // null: an all-reduce or a gather
  const BoundSegment *segments;
  uint32_t segmentCount;
  uint32_t allReduce; // index into BoundProgram::allReduces, or gathers
  bool gathers;
  int64_t rowsPerTile;
  int64_t innerTiles;
  int64_t elementTiles; // sum over all segments
  bool waits;           // a barrier of all threads of the device comes first; an all-reduce has its own barriers
  bool elementwise;
  bool usesRows;
  bool isUpdate;    // accesses only state that devices share, and no arena
  bool once;        // runs only after the last micro-batch
  bool writes;      // writes variables
  uint32_t index;   // index of the program's step
  uint32_t threads; // threads per block, on devices with blocks; else 0
  bool hasPartials; // on devices with blocks: uses memory for partial sums, which one launch at a time may use
  bool isTail;      // on devices with blocks: the launch of the step before computes it
};

// A pointer into the caller's tensors, which each step sets: tensors[entry] + firstRow * rowBytes.
struct SignaturePatch {
  void **slot;
  uint32_t entry;
  uint64_t rowBytes;
};

// The steps [begin, end) of a device. They run for each micro-batch if `repeats` is true, else once.
struct BoundPhase {
  uint32_t begin, end;
  bool repeats;
};

struct alignas(64) DeviceProgram {
  mt_kernel_params params = {}; // arguments of the current step
  int64_t firstRow = 0;
  int64_t maxRows = 0;            // shards * shard_rows
  int64_t passRows = 0;           // rows of a micro-batch, at most maxRows
  int64_t partRows = 0;           // rows of a micro-batch that a thread that takes it computes at once
  std::vector<BoundPhase> phases; // empty if no device has more than one micro-batch
  std::vector<BoundStep> steps;
  std::vector<BoundSegment> segments;
  std::vector<void *> pointers;
  std::vector<uint64_t> sizes; // maximum bytes of the memory at each pointer
  std::vector<bool> written;   // of each pointer: the launch writes a variable there
  std::vector<SignaturePatch> patches;

  // Returns the largest number of parts in which a thread computes a micro-batch.
  int64_t partsOfMicroBatch() const { return std::max<int64_t>((passRows + partRows - 1) / partRows, 1); }
  // Returns the number of micro-batches for `rows` valid rows; at least 1.
  int64_t microBatches(int64_t rows) const { return std::max<int64_t>((rows + passRows - 1) / passRows, 1); }
};

// One all-reduce: a partial sum and a buffer for the result per device.
struct BoundAllReduce {
  int64_t elements;              // F32
  std::vector<float *> partials; // by device; of a device whose threads take micro-batches, by thread
  std::vector<float *> results;
  // By device: sums of 1, 2, 4 ... micro-batches, while later micro-batches run. The last sum is stored in the result.
  // If threads take micro-batches, the sums of each.
  std::vector<std::vector<float *>> sums = {};
  // A device needs only its chunk of the result, and these elements. Otherwise it needs all.
  bool scattered = false;
  std::vector<ElementRange> whole = {};
};

// Memory that each device needs whole, after it has written its part.
struct BoundPart {
  std::vector<std::byte *> memory; // of each device of this process
  uint64_t elementBytes;
  Parts parts; // of the session's devices
};
using BoundGather = std::vector<BoundPart>;

// Adds node(right) to node(left). A node has the number of its leftmost device.
struct TreeSum {
  int left, right;
};

// The kernel that adds two partial sums, and the order of the sums if the first m devices have valid rows: the
// reduction tree over the shards, from the devices' subtrees upward, without its empty part.
struct ReduceTree {
  KernelHandle sum = nullptr; // the plan's sum_kernel
  int64_t elementsPerTile = 1;
  uint32_t threads = 0;                   // threads per block, as in BoundStep
  std::vector<std::vector<TreeSum>> sums; // sums[m]; the last sum of each list gives the result; empty for m <= 1
};

// A tensor of the caller.
struct BoundTensor {
  uint64_t rowBytes;
  bool output; // written by the program, else read
};

// Memory of the first device that the host reads after each run, and that stays valid until the next run.
struct ReadBack {
  const void *device; // address that the program writes
  uint64_t bytes;
  const void *host; // address that the host reads; equal if the host can read device memory, else set by prepare()
};

// The state that a group keeps for a prepared program.
class PreparedProgram {
public:
  virtual ~PreparedProgram() = default;
};

struct BoundProgram {
  std::vector<DeviceProgram> devices; // devices of this process
  // Whether threads of the only device take whole micro-batches, each in an arena of its own; and the device's program
  // for its threads 1, 2 ....
  bool takes = false;
  std::vector<DeviceProgram> takers;
  int firstDevice = 0; // the session's index of devices[0]
  // first row of each of the session's devices if some are in other processes; else empty
  std::vector<int64_t> firstRows;
  std::vector<BoundAllReduce> allReduces;
  std::vector<BoundGather> gathers;
  const ReduceTree *tree = nullptr;
  std::vector<float *> staging; // by device: copies of other devices' chunks
  std::vector<BoundTensor> signature;
  std::vector<ReadBack> readBacks;
  Tracer *tracer = nullptr; // decides before each run whether it is recorded; null: no run is recorded
  std::unique_ptr<PreparedProgram> prepared;

  int sessionDevices() const { return static_cast<int>(firstRows.empty() ? devices.size() : firstRows.size()); }
  // Returns the number of the session's devices that have valid rows: the first ones in order.
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
  const void *const *tensors; // tensors in signature order; outputs are written when the run is finished
  int64_t n;                  // valid samples
  uint64_t seed;
  bool unchanged = false; // the tensors have the same values as in all earlier runs with these pointers
};

} // namespace mtrun
