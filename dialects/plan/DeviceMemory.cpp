// SPDX-License-Identifier: Apache-2.0
#include "dialects/plan/DeviceMemory.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using mtrun::alignBuffer;

int64_t plan::bytesOfType(Type type) {
  unsigned bits = cast<RankedTensorType>(type).getElementTypeBitWidth();
  return mt::elementsPerRow(type) * (bits == 1 ? 1 : bits / 8);
}

// In order of variants; no program: none.
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
    size_t variants = program.getVariantArena().size();
    needs.resize(variants, every);
    int64_t partials = 0, pass = (int64_t{1} << (variants - 1)) / microBatches; // shards at once
    for (auto reduce : program.getOps<plan::AllReduceOp>())
      partials = std::max<int64_t>(partials, reduce.getBytes());
    for (size_t variant = 0; variant < variants; ++variant) {
      int64_t shards = int64_t{1} << variant, atOnce = std::min(shards, pass);
      uint64_t sums = 0, shared = static_cast<uint64_t>(program.getSharedBytes());
      bool alone = atOnce == int64_t{1} << (variants - 1);
      for (auto reduce : program.getOps<plan::AllReduceOp>()) {
        auto bytes = static_cast<uint64_t>(reduce.getBytes());
        sums += mtrun::microBatchSums(bytes, static_cast<uint64_t>(shards / atOnce));
        shared -= alone ? mtrun::bytesOfLoneResult(bytes) : 0;
      }
      needs[variant].addProgram(shared,
                                program.getVariantArena()[llvm::Log2_64(static_cast<uint64_t>(atOnce))],
                                partials ? mtrun::maxStagingBytes(partials, uint64_t{1} << (variants - 1), variant)
                                         : 0,
                                sums);
    }
  }
  return needs;
}
