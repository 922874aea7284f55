// SPDX-License-Identifier: Apache-2.0
//
// One slot for a run of a program: where its tensors, tables and results lie on the devices and on the host, and how
// its kernels, all-reduces and copies of results are recorded into a CUDA graph. Launched unchanged for any number of
// samples: what differs between runs is in device memory. Launches.h makes graphs of slots, and copies inputs to them.
#pragma once

#include "runtime/device/cuda/GroupParts.h"
#include "runtime/support/overlap.h"

namespace mtrun::cuda {

// Bytes of all tensors of a program for a row of each.
uint64_t tensorRowBytes(const mt::plan::Program &program);
PartialRoom partialRoom(const mt::plan::Plan &plan);
// An upper bound of a device's tables for a run of a program: parameters, segments, pointers.
uint64_t tableBytes(const mt::plan::Program &program, int devices);

class Stamps;

class CapturedProgram {
public:
  explicit CapturedProgram(GroupParts &parts) : parts_(parts), group_(parts.devices), driver_(parts.devices.driver()) {}
  ~CapturedProgram();

  // Bytes of the tensors that `device` reads or writes: only those that a step names, an input that no kernel reads is
  // never copied.
  static uint64_t tensorBytes(const BoundProgram &program, int device);
  // Gives the run's tensors their addresses: `tensorBytes` on each device, and as many of the host's, pinned; and makes
  // its tables.
  Status layOut(BoundProgram &program, const std::vector<std::byte *> &onDevices,
                const std::vector<std::byte *> &onHost);
  // Records the run behind what all `compute` streams have, which are where `compute` is afterwards; with `stamps`
  // around each operation. False: the driver refused, error() says why.
  bool record(BoundProgram &program, Stamps *stamps);
  // Operations on a device, at most.
  static size_t maxOperations(const BoundProgram &program);
  const Status &error() const { return error_; }

  // Before the graph is launched: the parameters, into the host's side, and which tensors there are.
  void setInputs(const BoundProgram &program, const StepArguments &arguments);
  // Copies the caller's rows into the host's side, and enqueues the copies of all that setInputs() changed on the
  // device's `inputs`. False: the group has failed.
  bool copyInputs(const BoundProgram &program, int device);
  // The next run copies all of its inputs.
  void forget() { n_ = -1; }
  // After it has run: the caller's outputs, and the read-backs, one after the other.
  void takeOutputs(const BoundProgram &program, std::byte *readBacks) const;

  uint64_t launches(const BoundProgram &program) const; // of the run that was set
  // Enqueues a launch's kernel alone, by generated code or as a library's call, outside of the graph too.
  bool perform(const DeviceProgram &bound, int device, const BoundStep &step, size_t index, Stream stream,
               bool ownCode);
  uint64_t collectiveBytes() const { return collectiveBytes_; }
  // The program's pointers to the caller's tensors become those to this run's.
  void point(BoundProgram &program) const;

private:
  // A launch of the sum kernel: pairs of the tree that do not wait for each other.
  struct SumLaunch {
    uint32_t collective;
    size_t segment; // of the first, in Side::step
    std::vector<TreeSum> pairs;
    int64_t elements; // of the device's chunk
  };
  // What a device has for this run.
  struct Side {
    std::byte *tables = nullptr; // on the device: parameters, segments of sums (what `step` holds), the rest
    std::byte *step = nullptr;   // pinned: copied where it changes
    uint64_t stepBytes = 0;
    bool stepChanged = false, tensorsChanged = false;
    std::vector<uint64_t> segments;           // offset of each launch's first segment in `tables`
    std::vector<std::byte *> tensors, staged; // of each signature entry: on the device, pinned; null: not used by it
    std::vector<SumLaunch> sums;
    std::vector<std::byte *> calls; // of each launch that is a library's call, its tables
  };
  // Read-backs that lie close together: one copy.
  struct ResultCopy {
    const std::byte *device = nullptr;
    std::byte *host = nullptr; // pinned
    uint64_t bytes = 0;
  };

  Status layOutDevice(const BoundProgram &program, int device);
  void planSums(const BoundProgram &program, int device, std::vector<void *> &pointers);
  Status layOutCalls(const BoundProgram &program, int device);
  void layOutTensors(const BoundProgram &program, int device, std::byte *onDevice, std::byte *onHost);
  Status layOutResults(const BoundProgram &program);
  Status pinned(uint64_t bytes, std::byte **memory);

  // While the graph is recorded. False: the driver refused, error_ is set.
  bool recordSteps(const DeviceProgram &bound, int device, size_t first, size_t end);
  std::vector<Overlap::Place> place(const DeviceProgram &bound, int device, size_t first, size_t end);
  bool recordStep(const DeviceProgram &bound, int device, size_t index, Stream stream);
  bool follow(int device, Stream from, Stream to);
  bool stampCommunication(bool begins);
  bool recordAllReduce(const BoundProgram &program, uint32_t index);
  bool recordOutputs(const BoundProgram &program, int device);
  bool launch(int device, Stream stream, KernelHandle kernel, int64_t tiles, size_t segments, uint32_t threads,
              std::byte *table);
  bool copy(int device, Stream stream, void *to, const void *from, uint64_t bytes);
  // `links` goes on where `stream` is, and then the other way round for the operation `index` of `links`.
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
  std::vector<const std::byte *> resultOf_; // of each read-back, in results_' pinned memory
  std::vector<std::byte *> pinned_;         // to be freed
  std::vector<const void *> tensors_;       // the caller's, of the run that was set
  std::vector<HostCopy> pieces_;            // of the caller's rows, while they are copied
  int64_t n_ = -1;
  uint64_t seed_ = 0;
  uint64_t collectiveBytes_ = 0;
  std::vector<Overlap> overlaps_; // of each device, while the graph is recorded
  std::vector<Range> touched_;    // by a step
  Stamps *stamps_ = nullptr;
  Status error_;
};

} // namespace mtrun::cuda
