// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/StartTracer.h"

#include "runtime/plan/Check.h"

namespace mtrun {

Status startTracer(const TracerOptions &options, DeviceGroup &group, Executable &executable,
                   std::unique_ptr<Tracer> &tracer) {
  // A wait and a launch; of an all-reduce three waits, two transfers and a sum, and before it of micro-batches a wait
  // and a sum.
  // Of devices that the host copies for: these copies, as a step that the program does not have.
  size_t marks = 0, steps = count(executable.program->steps()) + !group.hostMemory();
  for (const BoundStep &step : executable.bound.devices[0].steps)
    marks += step.kernel          ? 2
             : group.hostMemory() ? 9
                                  : 2 * (3 + static_cast<size_t>(executable.bound.sessionDevices()));
  // Between micro-batches two waits.
  int64_t microBatches = 1;
  for (const DeviceProgram &device : executable.bound.devices)
    microBatches = std::max(microBatches, device.microBatches(device.maxRows));
  marks = (marks + 2 * executable.bound.devices[0].phases.size()) * static_cast<size_t>(microBatches);
  // Threads; of GPUs the streams of launches and, where there are others to reach, of all-reduces.
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
    created->setBeside(tracks);
  executable.bound.tracer = created.get();
  tracer = std::move(created);
  return group.prepareTrace(executable.bound);
}

} // namespace mtrun
