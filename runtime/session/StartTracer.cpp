// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/StartTracer.h"

#include "runtime/plan/Check.h"

namespace mtrun {

Status startTracer(const TracerOptions &options, DeviceGroup &group, Executable &executable,
                   std::unique_ptr<Tracer> &tracer) {
  // Count the marks of a step. A launch has a wait and a launch, and on CPUs two more: of what a thread computes for
  // others, more is not kept. An all-reduce has three waits, two transfers and a
  // sum, and in micro-batches a wait and a sum before it. If the host copies data to the device, the copies count as an
  // additional step after the steps of the program.
  size_t marks = 0, steps = count(executable.program->steps()) + !group.hostMemory();
  for (const BoundStep &step : executable.bound.devices[0].steps)
    marks += step.kernel          ? 2 + 2 * group.hostMemory()
             : group.hostMemory() ? 9
                                  : 2 * (3 + static_cast<size_t>(executable.bound.sessionDevices()));
  // There are two waits between micro-batches.
  int64_t microBatches = 1;
  for (const DeviceProgram &device : executable.bound.devices)
    microBatches = std::max(microBatches, device.microBatches(device.maxRows) * device.partsOfMicroBatch());
  marks = (marks + 2 * executable.bound.devices[0].phases.size()) * static_cast<size_t>(microBatches);
  // A CPU device has a track per thread. A GPU has a track for launches and, with several GPUs, a track for
  // all-reduces.
  size_t tracks = static_cast<size_t>(group.threads());
  if (!group.hostMemory())
    tracks = executable.bound.sessionDevices() > 1 ? 2 : 1;
  if (!group.hostMemory())
    marks += 2 * (1 + executable.bound.signature.size() + executable.bound.readBacks.size());
  std::unique_ptr<Tracer> created;
  if (Status status = Tracer::make(options, static_cast<size_t>(group.devices()) * tracks, steps, marks, created);
      !status.ok())
    return status;
  if (!group.hostMemory())
    created->setTracksPerThread(tracks);
  executable.bound.tracer = created.get();
  tracer = std::move(created);
  return group.prepareTrace(executable.bound);
}

} // namespace mtrun
