// SPDX-License-Identifier: Apache-2.0
//
// A program that is ready to run. It has two sets of slots for the runs of a launch, so that the host fills one set
// while the devices run the other. Each set has CUDA graphs over all devices of the group: for one run, and for the
// maximum number of runs per launch.
#pragma once

#include "runtime/device/cuda/Capture.h"
#include "runtime/device/cuda/Stamps.h"

#include <array>

namespace mtrun::cuda {

class Launches : public PreparedProgram {
public:
  Launches(GroupParts &parts, int perLaunch, int sets)
      : parts_(parts), group_(parts.devices), perLaunch_(perLaunch), sets_(sets) {}
  ~Launches() override;

  // Lays out all slots and records the graphs.
  Status prepare(BoundProgram &program);
  // Records the graphs again. No earlier graph may be in flight.
  Status capture(BoundProgram &program);
  // Records graphs of one run with time stamps, for the program's tracer.
  Status captureTraced(BoundProgram &program);
  // Returns true if the graphs match the group's current settings.
  bool isCurrent() const {
    return corruptCollective_ == parts_.corruptCollective && corruptDevice_ == parts_.corruptDevice;
  }
  int perLaunch() const { return perLaunch_; }
  // Returns the first slot of the last launch's set, and points the program's pointers to its tensors.
  CapturedProgram &pointedAt(BoundProgram &program) {
    CapturedProgram &place = *places(set_).front();
    place.point(program);
    return place;
  }
  // Returns the set for the next launch; the sets alternate.
  int nextSet() { return set_ = (set_ + 1) % sets_; }

  // Makes the next launches copy all inputs, because another program used the memory.
  void forget() {
    for (const std::unique_ptr<CapturedProgram> &place : places_)
      place->forget();
  }
  // Begins a launch in a free set; `traced`: one run with time stamps. Returns false if the group has failed.
  bool begin(const BoundProgram &program, int set, std::span<const StepArguments> runs, bool traced);
  // Records the times of a finished traced run. Returns false if the group has failed.
  bool takeTimes(Tracer &tracer, int set, int64_t &end);
  // Copies the results of run `index` of the finished launch in `set` to the caller and to the read-backs.
  const CapturedProgram &finish(const BoundProgram &program, int set, int index);

private:
  using Places = std::span<const std::unique_ptr<CapturedProgram>>;
  Status record(BoundProgram &program, Places places, Stamps *stamps, GraphExec *exec);
  bool recordAll(BoundProgram &program, Places places, Stamps *stamps, Status &error);
  bool copyInputs(const BoundProgram &program, Places places, Stamps *stamps);
  Places places(int set) const {
    return std::span(places_).subspan(static_cast<size_t>(set * perLaunch_), static_cast<size_t>(perLaunch_));
  }
  void freeGraphs();

  GroupParts &parts_;
  CudaDevices &group_;
  const int perLaunch_, sets_;
  int set_ = 0;
  std::vector<std::unique_ptr<CapturedProgram>> places_; // first all slots of set 0, then of set 1
  // By set. all_: null if a launch has one run.
  std::array<GraphExec, 2> one_ = {}, all_ = {}, traced_ = {};
  std::array<std::unique_ptr<Stamps>, 2> stamps_;
  std::vector<std::byte> readBacks_;
  int corruptCollective_ = -1, corruptDevice_ = -1;
};

} // namespace mtrun::cuda
