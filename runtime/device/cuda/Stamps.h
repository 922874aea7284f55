// SPDX-License-Identifier: Apache-2.0
//
// Measures the operations of a run on GPUs. The graph of a traced run has an event before and after each operation.
#pragma once

#include "runtime/device/Tracer.h"
#include "runtime/device/cuda/CudaDevices.h"

namespace mtrun::cuda {

class Stamps {
public:
  // `copies`: index of a pseudo step for copies of inputs and results.
  Stamps(CudaDevices &group, uint32_t copies) : group_(group), copies_(copies) {}
  ~Stamps();

  // Makes events for at most `operations` operations per device.
  Status make(size_t operations);
  // Used during recording: the next operations belong to this step, which may be an all-reduce.
  void enter(uint32_t step, bool allReduce) {
    step_ = step;
    allReduce_ = allReduce;
  }
  void enterCopies() { enter(copies_, false); }
  // Record events around an operation on the device's compute stream or `links`.
  Result before(int device, bool onCommunication, bool isCopy);
  Result after(int device);
  // Record events around the copies of a device's inputs, while the device is idle. All other times are relative to the
  // first event.
  Result beforeInputs(int device, int64_t now);
  Result afterInputs(int device);
  // Adds the times of a finished run to the tracer: `compute` and `links` of a device as two tracks, or one track if
  // there is a single device. `end` receives the end of the last operation.
  Result take(Tracer &tracer, int64_t &end);

private:
  struct Stamp {
    bool onCommunication;
    SpanKind kind;
    uint32_t step;
    size_t events; // index of the first of two events
  };
  struct Side {
    std::vector<Event> events; // the events of the inputs come first
    std::vector<Stamp> stamps; // stamps in the order of the device's streams
    int64_t origin = 0;        // time of the first event by the host's clock
  };
  Result record(int device, size_t event, Stream stream, bool inGraph);
  Result timeOf(const Side &side, size_t event, int64_t &time) const;

  CudaDevices &group_;
  const uint32_t copies_;
  uint32_t step_ = 0;
  bool allReduce_ = false;
  std::vector<Side> sides_;
};

} // namespace mtrun::cuda
