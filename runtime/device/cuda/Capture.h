// SPDX-License-Identifier: Apache-2.0
//
// A slot for a run of a program: the addresses of its tensors, tables and results on the devices and on the host, and
// the recording of its kernels, all-reduces and copies of results as a CUDA graph. The graph does not depend on the
// number of samples: all data that differs between runs is in device memory. Launches.h makes graphs from slots and
// copies inputs to them.
// samples: what differs between runs is in device memory. Launches.h makes graphs of slots, and copies inputs to them.
#pragma once

#include "runtime/abi/gpu_kernel.h"
#include "runtime/device/cuda/GroupParts.h"
#include "runtime/support/overlap.h"

namespace mtrun::cuda {

// Returns the bytes of a row of all tensors of a program.
uint64_t tensorRowBytes(const mt::plan::Program &program);
PartialRoom partialRoom(const mt::plan::Plan &plan);
// Returns an upper bound of a device's tables for a run of a program: parameters, segments, pointers.
uint64_t tableBytes(const mt::plan::Program &program, int devices);

class Stamps;

class CapturedProgram {
public:
  static constexpr size_t sumWords = 4; // of a segment of the tree's sums: its count and three pointers

  explicit CapturedProgram(GroupParts &parts) : parts_(parts), group_(parts.devices), driver_(parts.devices.driver()) {}
  ~CapturedProgram();

  // Returns the bytes of the tensors that `device` accesses. Tensors that no step accesses are not counted and never
  // copied.
  static uint64_t tensorBytes(const BoundProgram &program, int device);
  // Assigns addresses to the run's tensors, `tensorBytes` on each device and in pinned host memory, and makes the run's
  // tables.
  Status layOut(BoundProgram &program, const std::vector<std::byte *> &onDevices,
                const std::vector<std::byte *> &onHost);
  // Records the run after the operations on all `compute` streams, which wait for the run afterwards. With `stamps`,
  // records events around each operation. Returns false if the driver fails; error() has the reason.
  bool record(BoundProgram &program, Stamps *stamps);
  // Returns the maximum number of operations on a device.
  static size_t maxOperations(const BoundProgram &program);
  const Status &error() const { return error_; }

  // Must be called before the graph is launched: sets the parameters and the tensors of a run on the host.
  void setInputs(const BoundProgram &program, const StepArguments &arguments);
  // Copies the caller's rows to pinned memory, and enqueues the copies of all data that setInputs() changed on the
  // device's stream `inputs`. Returns false if the group has failed.
  bool copyInputs(const BoundProgram &program, int device);
  // Makes the next run copy all of its inputs.
  void forget() { n_ = -1; }
  // Must be called after the run: copies outputs to the caller, and the read-backs one after another.
  void takeOutputs(const BoundProgram &program, std::byte *readBacks) const;

  uint64_t launches(const BoundProgram &program) const; // number of launches in the last run
  // Enqueues the kernel of a launch, as generated code or as a library call. May be used outside of a graph.
  bool perform(const DeviceProgram &bound, int device, const BoundStep &step, size_t index, Stream stream,
               bool ownCode);
  uint64_t collectiveBytes() const { return collectiveBytes_; }
  // Sets the program's pointers to the caller's tensors to the addresses of this run's tensors.
  void point(BoundProgram &program) const;

private:
  // A launch of the sum kernel for pairs of the tree that are independent of each other.
  struct SumLaunch {
    uint32_t collective;
    size_t segment; // index of the first segment in Side::step
    std::vector<TreeSum> pairs;
    int64_t elements; // elements of the device's chunk
  };
  // The data of one device for this run.
  struct Side {
    // on the device: the contents of `step` (parameters, segments of sums), then the other tables
    std::byte *tables = nullptr;
    std::byte *step = nullptr; // pinned host memory, copied to the device when it changes
    uint64_t stepBytes = 0;
    bool stepChanged = false, tensorsChanged = false;
    std::vector<uint64_t> segments; // offset of each launch's first segment in `tables`
    // by signature entry: address on the device and in pinned memory; null: unused
    std::vector<std::byte *> tensors, staged;
    std::vector<SumLaunch> sums;
    std::vector<std::byte *> calls; // by launch: the tables of a library call
  };
  // Read-backs that are close to each other in memory are copied together.
  struct ResultCopy {
    const std::byte *device = nullptr;
    std::byte *host = nullptr; // pinned memory
    uint64_t bytes = 0;
  };

  Status layOutDevice(const BoundProgram &program, int device);
  void planSums(const BoundProgram &program, int device, std::vector<mt_gpu_word> &words);
  Status layOutCalls(const BoundProgram &program, int device);
  void layOutTensors(const BoundProgram &program, int device, std::byte *onDevice, std::byte *onHost);
  Status layOutResults(const BoundProgram &program);
  Status pinned(uint64_t bytes, std::byte **memory);

  // Used while the graph is recorded. Return false if the driver fails; error_ has the reason.
  bool recordSteps(const DeviceProgram &bound, int device, size_t first, size_t end);
  std::vector<Overlap::Place> place(const DeviceProgram &bound, int device, size_t first, size_t end);
  bool isLaunched(const DeviceProgram &bound, size_t index) const;
  bool recordStep(const DeviceProgram &bound, int device, size_t index, Stream stream);
  bool follow(int device, Stream from, Stream to);
  bool stampCommunication(bool begins);
  bool recordAllReduce(const BoundProgram &program, uint32_t index);
  bool recordOutputs(const BoundProgram &program, int device);
  bool launch(int device, Stream stream, KernelHandle kernel, int64_t tiles, size_t segments, uint32_t threads,
              std::byte *table);
  bool copy(int device, Stream stream, void *to, const void *from, uint64_t bytes);
  // Make `links` wait for the compute stream, and the compute stream wait for operation `index` of `links`.
  bool communicationAfterCompute(int device) {
    return follow(device, group_.device(device).stream, group_.device(device).links);
  }
  bool mark(int device, int index);
  bool computeAfterCommunication(int device, int index);
  bool sum(const BoundProgram &program, uint32_t allReduce, int device);
  bool good(Result result, int device, const char *what);
  bool good(Status status);

  GroupParts &parts_;
  CudaDevices &group_;
  const Driver &driver_;
  std::vector<Side> sides_;
  std::vector<ResultCopy> results_;
  std::vector<const std::byte *> resultOf_; // by read-back: its address in the pinned memory of results_
  std::vector<std::byte *> pinned_;         // freed by the destructor
  std::vector<const void *> tensors_;       // the caller's tensors of the last setInputs()
  std::vector<HostCopy> pieces_;            // parts of the caller's rows, during copies
  int64_t n_ = -1;
  uint64_t seed_ = 0;
  uint64_t collectiveBytes_ = 0;
  std::vector<Overlap> overlaps_; // by device, while the graph is recorded
  std::vector<Range> touched_;    // memory that a step accesses
  Stamps *stamps_ = nullptr;
  Status error_;
};

} // namespace mtrun::cuda
