// SPDX-License-Identifier: Apache-2.0
//
// A program as one CUDA graph over all devices of a group: copies of the caller's tensors in, kernels, all-reduces,
// copies of outputs and metrics out. Launched unchanged for any number of samples: what differs between steps is in
// device memory, and the graph begins with the copy that brings it there.
#pragma once

#include "runtime/abi/overlap.h"
#include "runtime/device/cuda/CudaGroup.h"

namespace mtrun::cuda {

// Bytes of all tensors of a program for a row of each.
uint64_t tensorRowBytes(const mt::plan::Program &program);
// At most what alignment adds to them.
inline constexpr uint64_t tensorSlack = 64 * 256;
// An upper bound of a device's tables for a program: parameters, segments, pointers.
uint64_t tableBytes(const mt::plan::Program &program, int devices);

class CapturedProgram : public PreparedProgram {
public:
  explicit CapturedProgram(CudaGroup &group) : group_(group), driver_(group.driver()) {}
  ~CapturedProgram() override;

  // Gives the program's tensors and tables places on each device, and the host's side of them.
  Status layOut(BoundProgram &program);
  // Records the graph, in place of the one before.
  Status capture(const BoundProgram &program);
  // Whether the graph is of what the group asks for now.
  bool isCurrent() const {
    return exec_ && corruptCollective_ == group_.corruptCollective() && corruptDevice_ == group_.corruptDevice();
  }
  GraphExec exec() const { return exec_; }

  // Before and after the graph is launched: the parameters, and rows of the caller's tensors.
  void setInputs(const BoundProgram &program, const StepArguments &arguments);
  void takeOutputs(const BoundProgram &program, const StepArguments &arguments) const;

  uint64_t launches(const BoundProgram &program) const; // of the step that was set
  uint64_t collectiveBytes() const { return collectiveBytes_; }

private:
  // A launch of the sum kernel: pairs of the tree that do not wait for each other.
  struct SumLaunch {
    uint32_t collective;
    size_t segment; // of the first, in Side::step
    std::vector<TreeSum> pairs;
    int64_t elements; // of the device's chunk
  };
  // What a device has for this program.
  struct Side {
    std::byte *tables = nullptr; // on the device: parameters, segments of sums (both copied at each step), the rest
    std::byte *step = nullptr;   // pinned: what is copied at each step
    uint64_t stepBytes = 0;
    std::vector<uint64_t> segments;           // place of each launch's first segment in `tables`
    std::vector<std::byte *> tensors, staged; // of each signature entry: on the device, pinned; null: not used by it
    std::vector<SumLaunch> sums;
  };

  Status layOutDevice(BoundProgram &program, int device);
  void planSums(const BoundProgram &program, int device, std::vector<void *> &pointers);
  Status layOutTensors(BoundProgram &program, int device);
  Status pinned(uint64_t bytes, std::byte **memory);

  // While the graph is recorded. False: the driver refused, error_ is set.
  bool record(const BoundProgram &program);
  bool recordInputs(const BoundProgram &program, int device);
  bool recordStep(const DeviceProgram &bound, int device, const BoundStep &step, size_t index);
  bool recordAllReduce(const BoundProgram &program, uint32_t index);
  bool recordOutputs(const BoundProgram &program, int device);
  bool launch(int device, Stream stream, KernelHandle kernel, int64_t tiles, size_t segments, uint32_t threads,
              std::byte *table);
  bool copy(int device, Stream stream, void *to, const void *from, uint64_t bytes);
  // `links` goes on where `stream` is, and then the other way round for the operation `index` of `links`.
  bool linksAfterCompute(int device);
  bool mark(int device, int index);
  bool computeAfterLinks(int device, int index);
  bool sum(const BoundProgram &program, uint32_t allReduce, int device);
  bool good(Result result, int device, const char *what);
  bool good(Status status);

  CudaGroup &group_;
  const Driver &driver_;
  std::vector<Side> sides_;
  std::vector<std::byte *> pinned_; // to be freed
  std::byte *readBacks_ = nullptr;  // pinned
  GraphExec exec_ = nullptr;
  uint64_t collectiveBytes_ = 0;
  int corruptCollective_ = -1, corruptDevice_ = -1;
  std::vector<Overlap> overlaps_; // of each device, while the graph is recorded
  std::vector<Range> touched_;    // by a step
  Status error_;
};

} // namespace mtrun::cuda
