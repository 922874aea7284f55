// SPDX-License-Identifier: Apache-2.0
#include "dialects/plan/DeviceMemory.h"

using namespace mlir;
using mtrun::alignBuffer;

int64_t plan::bytesOfType(Type type) {
  unsigned bits = cast<RankedTensorType>(type).getElementTypeBitWidth();
  return mt::elementsPerRow(type) * (bits == 1 ? 1 : bits / 8);
}

// In order of variants. Empty if the module has no program.
std::vector<mtrun::DeviceMemory> plan::deviceMemory(ModuleOp module, int64_t scratch, int64_t microBatches) {
  mtrun::DeviceMemory every;
  every.scratch = static_cast<uint64_t>(scratch);
  for (auto variable : module.getOps<plan::VariableOp>())
    every.variables = static_cast<uint64_t>(variable.getOffset() + alignBuffer(variable.getBytes()));
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto buffer : program.getOps<plan::BufferOp>())
      if (buffer.getSpace() == plan::Space::constant)
        every.constants = std::max<uint64_t>(
            every.constants, buffer.getOffsets()[0] + alignBuffer(bytesOfType(buffer.getValue()->getType())));
  std::vector<mtrun::DeviceMemory> needs;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    mtrun::ProgramMemory memory;
    memory.shared = static_cast<uint64_t>(program.getSharedBytes());
    memory.arenas.assign(program.getVariantArena().begin(), program.getVariantArena().end());
    for (auto reduce : program.getOps<plan::AllReduceOp>())
      memory.partials.push_back(static_cast<uint64_t>(reduce.getBytes()));
    needs.resize(memory.arenas.size(), every);
    for (size_t variant = 0; variant < needs.size(); ++variant)
      needs[variant].addProgram(memory, static_cast<uint32_t>(variant), 0, static_cast<uint64_t>(microBatches));
  }
  return needs;
}
