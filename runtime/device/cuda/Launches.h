// SPDX-License-Identifier: Apache-2.0
//
// A program that is ready to run: two sets of slots for the runs of a launch, so that the host fills one while the
// devices work on the other, and CUDA graphs over all devices of a group for each set: of one run, and of as many as a
// launch holds.
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
  // Records the graphs in place of those before, none of which may be in flight.
  Status capture(BoundProgram &program);
  // Records graphs of one run that takes its own times, for the program's tracer.
  Status captureTraced(BoundProgram &program);
  // Whether the graphs are of what the group asks for now.
  bool isCurrent() const {
    return corruptCollective_ == parts_.corruptCollective && corruptDevice_ == parts_.corruptDevice;
  }
  int perLaunch() const { return perLaunch_; }
  // The first slot of the set of the last launch; the program's pointers are then those of its tensors.
  CapturedProgram &pointedAt(BoundProgram &program) {
    CapturedProgram &place = *places(set_).front();
    place.point(program);
    return place;
  }
  // The set that the next launch takes; they take turns.
  int nextSet() { return set_ = (set_ + 1) % sets_; }

  // All inputs are copied in the launches to come: another program had the memory.
  void forget() {
    for (const std::unique_ptr<CapturedProgram> &place : places_)
      place->forget();
  }
  // Begins a launch in a set that is free; `traced`: of one run that takes its own times. False: the group has failed.
  bool begin(const BoundProgram &program, int set, std::span<const StepArguments> runs, bool traced);
  // After a traced run is over. False: the group has failed.
  bool takeTimes(Tracer &tracer, int set, int64_t &end);
  // Run `index` of the launch in `set`, which is over: what it gave goes to the caller and to the read-backs.
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
  std::vector<std::unique_ptr<CapturedProgram>> places_; // set after set
  // Of each set. all_: null where a launch holds one.
  std::array<GraphExec, 2> one_ = {}, all_ = {}, traced_ = {};
  std::array<std::unique_ptr<Stamps>, 2> stamps_;
  std::vector<std::byte> readBacks_;
  int corruptCollective_ = -1, corruptDevice_ = -1;
};

} // namespace mtrun::cuda
