// SPDX-License-Identifier: Apache-2.0
//
// The options that depend on device_memory: the largest batch, the number of micro-batches, the blocks of logits, and
// what to advise if nothing fits.
#ifndef COMPILER_API_MEMORY_H
#define COMPILER_API_MEMORY_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

namespace mtc {

// Sets the batch to the largest multiple of the number of shards that one device can compute in device_memory bytes,
// with all shards at once. MT_NO_MEMORY: not even one sample per shard fits.
mtrun::Status findLargestBatch(const ModelSource &source, Options &options);

// Returns the smallest number of micro-batches with which one device can compute all shards in device_memory bytes.
// Returns 1 if the options give the number or no limit, if the plan has code for GPUs, or if no number is enough.
int32_t findMicroBatches(const ModelSource &source, const Options &options);

// Returns the smallest number of blocks of the largest logits (docs/ir.md, "Losses over many classes") with which one
// device can compute all shards in device_memory bytes; if the plan without blocks fits on no number of devices, the
// smallest number with which it fits on some number. Returns 0, no blocks, if there is no limit, if blocks do not help,
// or if the plan has no code for GPUs.
int32_t findLogitBlocks(const ModelSource &source, const Options &options);

// For a model that fits on no number of devices: returns the options that would make it fit, each of them compiled to
// be sure.
std::string memoryAdvice(const ModelSource &source, const Options &options);

} // namespace mtc

#endif
