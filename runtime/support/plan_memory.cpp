// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/plan_memory.h"

#include <algorithm>

namespace mtrun {

static ProgramMemory memoryOf(const mt::plan::Program &program) {
  ProgramMemory memory;
  memory.shared = program.shared_bytes();
  for (const mt::plan::Variant *variant : *program.variants())
    memory.arenas.push_back(variant->arena_bytes());
  if (program.steps())
    for (const mt::plan::Step *step : *program.steps())
      if (step->kernel() < 0)
        memory.partials.push_back(step->partial_bytes());
  return memory;
}

DeviceMemory deviceMemory(const mt::plan::Plan &plan, uint32_t variant, uint64_t devices, uint64_t microBatches) {
  DeviceMemory memory;
  memory.variables = plan.variables_bytes();
  if (plan.constants() >= 0)
    memory.constants = plan.sections()->Get(static_cast<uint32_t>(plan.constants()))->size();
  if (plan.programs()) // a plan may have no programs
    for (const mt::plan::Program *program : *plan.programs())
      memory.addProgram(memoryOf(*program), variant, devices, microBatches ? microBatches : plan.micro_batches());
  if (plan.programs() && plan.kernels())
    for (const mt::plan::Kernel *kernel : *plan.kernels())
      memory.scratch = std::max(memory.scratch, kernel->scratch_bytes());
  return memory;
}

} // namespace mtrun
