// SPDX-License-Identifier: Apache-2.0
//
// What each operation of a run takes on GPUs: an event before it and one after it, which the graph of a traced run
// records between the operations of the others.
#pragma once

#include "runtime/device/Tracer.h"
#include "runtime/device/cuda/CudaDevices.h"

namespace mtrun::cuda {

class Stamps {
public:
  // `copies`: the index of a step that stands for copies of inputs and results.
  Stamps(CudaDevices &group, uint32_t copies) : group_(group), copies_(copies) {}
  ~Stamps();

  // Makes the events of at most `operations` on a device.
  Status make(size_t operations);
  // While a graph is recorded: what follows belongs to this step, which is an all-reduce or none.
  void enter(uint32_t step, bool allReduce) {
    step_ = step;
    allReduce_ = allReduce;
  }
  void enterCopies() { enter(copies_, false); }
  // Around an operation on the device's `compute` or `links`.
  Result before(int device, bool onCommunication, bool isCopy);
  Result after(int device);
  // Around the copies of a device's inputs, on idle devices; all other times are told from the first.
  Result beforeInputs(int device, int64_t now);
  Result afterInputs(int device);
  // Once the run is over: its times, a device's `compute` and `links` as two tracks, or one where it is alone. `end`:
  // when the last operation ended.
  Result take(Tracer &tracer, int64_t &end);

private:
  struct Stamp {
    bool onCommunication;
    SpanKind kind;
    uint32_t step;
    size_t events; // of the first of two
  };
  struct Side {
    std::vector<Event> events; // the inputs' first
    std::vector<Stamp> stamps; // in the order of the device's streams
    int64_t origin = 0;        // of the first event, by the host's clock
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
