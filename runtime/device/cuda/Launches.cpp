// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Launches.h"

#include <utility>

namespace mtrun::cuda {

Launches::~Launches() {
  group_.drain();
  freeGraphs();
}

void Launches::freeGraphs() {
  (void)group_.makeCurrent(0);
  for (auto *list : {&one_, &all_, &traced_})
    for (GraphExec &exec : *list)
      if (exec)
        (void)group_.driver().graphExecDestroy(std::exchange(exec, nullptr));
}

Status Launches::prepare(BoundProgram &program) {
  size_t devices = program.devices.size(), places = static_cast<size_t>(sets_ * perLaunch_);
  std::vector<std::byte *> onDevices(devices), onHost(devices);
  std::vector<uint64_t> bytes(devices);
  for (size_t d = 0; d < devices; ++d) {
    int device = static_cast<int>(d);
    bytes[d] = CapturedProgram::tensorBytes(program, device);
    if (!group_.makeCurrent(device))
      return group_.health();
    if (Status status =
            group_.scratch(device, bytes[d] * places, program.devices[d].maxRows, &onDevices[d], &onHost[d]);
        !status.ok())
      return status;
  }
  for (size_t i = 0; i < places; ++i) {
    places_.push_back(std::make_unique<CapturedProgram>(parts_));
    if (Status status = places_.back()->layOut(program, onDevices, onHost); !status.ok())
      return status;
    for (size_t d = 0; d < devices; ++d) {
      onDevices[d] += bytes[d];
      onHost[d] += bytes[d];
    }
  }
  uint64_t size = 0;
  for (const ReadBack &back : program.readBacks)
    size += back.bytes;
  readBacks_.resize(size);
  size = 0;
  for (ReadBack &back : program.readBacks) {
    back.host = readBacks_.data() + size;
    size += back.bytes;
  }
  return capture(program);
}

Status Launches::capture(BoundProgram &program) {
  freeGraphs();
  corruptCollective_ = parts_.corruptCollective;
  corruptDevice_ = parts_.corruptDevice;
  for (int set = 0; set < sets_; ++set) {
    auto s = static_cast<size_t>(set);
    if (Status status = record(program, places(set).first(1), nullptr, &one_[s]); !status.ok())
      return status;
    if (perLaunch_ > 1)
      if (Status status = record(program, places(set), nullptr, &all_[s]); !status.ok())
        return status;
  }
  return program.tracer ? captureTraced(program) : group_.health();
}

Status Launches::captureTraced(BoundProgram &program) {
  for (int set = 0; set < sets_; ++set) {
    auto s = static_cast<size_t>(set);
    if (traced_[s])
      (void)group_.driver().graphExecDestroy(std::exchange(traced_[s], nullptr));
    stamps_[s] = std::make_unique<Stamps>(group_, static_cast<uint32_t>(program.tracer->steps() - 1));
    if (Status status = stamps_[s]->make(CapturedProgram::maxOperations(program)); !status.ok())
      return status;
    if (Status status = record(program, places(set).first(1), stamps_[s].get(), &traced_[s]); !status.ok())
      return status;
  }
  return group_.health();
}

Status Launches::record(BoundProgram &program, Places places, Stamps *stamps, GraphExec *exec) {
  const Driver &driver = group_.driver();
  // There are at most as many operations on `links` as steps.
  if (program.sessionDevices() > 1)
    if (Status status = group_.makeEvents(program.devices[0].steps.size()); !status.ok())
      return status;
  if (!group_.makeCurrent(0))
    return group_.health();
  Stream origin = group_.device(0).stream;
  auto refused = [&](Result result, const char *what) {
    return failure(driver, result, group_.device(0).gpu->title() + ": " + what);
  };
  if (Result result = driver.streamBeginCapture(origin, captureThreadLocal); result != success)
    return refused(result, "cannot record a program");
  Status error;
  bool recorded = recordAll(program, places, stamps, error);
  // A capture must be ended even if it failed.
  Graph graph = nullptr;
  (void)group_.makeCurrent(0);
  Result ended = driver.streamEndCapture(origin, &graph);
  if (recorded && ended != success)
    error = refused(ended, "cannot record a program");
  if (recorded && ended == success)
    if (Result made = driver.graphInstantiate(exec, graph, 0); made != success)
      error = refused(made, "cannot make a program's graph ready");
  if (graph)
    (void)driver.graphDestroy(graph);
  return error.ok() ? group_.health() : error;
}

// Records runs one after another, each device on its own streams. All devices wait for the first one before and after.
bool Launches::recordAll(BoundProgram &program, Places places, Stamps *stamps, Status &error) {
  const Driver &driver = group_.driver();
  int devices = static_cast<int>(program.devices.size());
  auto good = [&](Result result, int device) {
    if (result != success && error.ok())
      error = failure(driver, result, group_.device(device).gpu->title() + ": cannot record a program");
    return result == success;
  };
  CudaDevice &first = group_.device(0);
  if (devices > 1 && !good(driver.eventRecord(first.event, first.stream), 0))
    return false;
  for (int d = 1; d < devices; ++d)
    if (!group_.makeCurrent(d) || !good(driver.streamWaitEvent(group_.device(d).stream, first.event, 0), d))
      return false;
  for (const std::unique_ptr<CapturedProgram> &place : places)
    if (!place->record(program, stamps)) {
      error = place->error();
      return false;
    }
  for (int d = 1; d < devices; ++d) {
    CudaDevice &device = group_.device(d);
    if (!group_.makeCurrent(d) || !good(driver.eventRecord(device.event, device.stream), d) || !group_.makeCurrent(0) ||
        !good(driver.streamWaitEvent(first.stream, device.event, 0), d))
      return false;
  }
  return true;
}

// Makes the following launches on the first device wait for the copies to all devices.
bool Launches::copyInputs(const BoundProgram &program, Places places, Stamps *stamps) {
  const Driver &driver = group_.driver();
  const char *what = "cannot copy a step's inputs";
  for (int d = 0; d < group_.devices(); ++d) {
    CudaDevice &device = group_.device(d);
    if (!group_.makeCurrent(d) || (stamps && !group_.check(stamps->beforeInputs(d, program.tracer->now()), d, what)))
      return false;
    for (const std::unique_ptr<CapturedProgram> &place : places)
      if (!place->copyInputs(program, d))
        return false;
    if (stamps && !group_.check(stamps->afterInputs(d), d, what))
      return false;
    if (!group_.check(driver.eventRecord(device.arrived, device.inputs), d, what) || !group_.makeCurrent(0) ||
        !group_.check(driver.streamWaitEvent(group_.device(0).stream, device.arrived, 0), d, what))
      return false;
  }
  return true;
}

bool Launches::begin(const BoundProgram &program, int set, std::span<const StepArguments> runs, bool traced) {
  auto s = static_cast<size_t>(set);
  Places used = places(set).first(runs.size());
  for (size_t i = 0; i < runs.size(); ++i)
    used[i]->setInputs(program, runs[i]);
  GraphExec exec = traced ? traced_[s] : runs.size() == 1 ? one_[s] : all_[s];
  return copyInputs(program, used, traced ? stamps_[s].get() : nullptr) &&
         group_.check(group_.driver().graphLaunch(exec, group_.device(0).stream), 0, "the GPU failed in a step");
}

bool Launches::takeTimes(Tracer &tracer, int set, int64_t &end) {
  return group_.check(stamps_[static_cast<size_t>(set)]->take(tracer, end), 0, "cannot tell how long a step took");
}

const CapturedProgram &Launches::finish(const BoundProgram &program, int set, int index) {
  const CapturedProgram &place = *places(set)[static_cast<size_t>(index)];
  place.takeOutputs(program, readBacks_.data());
  return place;
}

} // namespace mtrun::cuda
