// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Compile.h"

#include "compiler/SizeText.h"
#include "compiler/api/Driver.h"
#include "compiler/api/Memory.h"

namespace mtc {

using mtrun::Status;

Status compile(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes) {
  Options chosen = options;
  chosen.values.max_batch = 0;
  if (options.values.max_batch)
    if (Status status = findLargestBatch(source, chosen); !status.ok())
      return status;
  if (int32_t microBatches = options.values.max_batch ? 1 : findMicroBatches(source, chosen); microBatches > 1) {
    chosen.values.micro_batches = microBatches;
    // Models whose ops need the whole batch at once (batch normalization) have no plan for micro-batches: their plan
    // says so, and this compilation fails.
    if (runPipeline(source, chosen, bytes).ok()) {
      std::string limit = bytesText(static_cast<uint64_t>(options.values.device_memory));
      options.say(0, "the whole batch does not fit in " + limit + " on one device; " + std::to_string(microBatches) +
                         " micro-batches do");
      return {};
    }
    chosen.values.micro_batches = 1;
  }
  if (!options.values.max_batch) // findLargestBatch has already found a batch that fits without blocks
    chosen.logitBlocks = findLogitBlocks(source, chosen);
  Status status = runPipeline(source, chosen, bytes);
  if (status.ok() && chosen.logitBlocks)
    options.say(0, "with all logits at once the step does not fit in " +
                       bytesText(static_cast<uint64_t>(options.values.device_memory)) +
                       " on one device; they are computed by " + std::to_string(chosen.logitBlocks) +
                       " blocks of classes");
  if (status.code() == MT_NO_MEMORY)
    return {MT_NO_MEMORY, status.message() + "\n" + memoryAdvice(source, chosen)};
  return status;
}

} // namespace mtc
