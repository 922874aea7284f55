// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/StartTracer.h"

#include "runtime/plan/Check.h"

namespace mtrun {

Status startTracer(const TracerOptions &options, const DeviceGroup &group, Executable &executable,
                   std::unique_ptr<Tracer> &tracer) {
  // A wait and a launch; of an all-reduce three waits, two transfers and a sum.
  size_t marks = 0, steps = count(executable.program->steps());
  for (const BoundStep &step : executable.bound.devices[0].steps)
    marks += step.kernel ? 2 : 7;
  std::unique_ptr<Tracer> made;
  auto workers = static_cast<size_t>(group.devices()) * static_cast<size_t>(group.threads());
  if (Status status = Tracer::make(options, workers, steps, marks, made); !status.ok())
    return status;
  executable.bound.tracer = made.get();
  tracer = std::move(made);
  return {};
}

} // namespace mtrun
