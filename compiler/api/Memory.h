// SPDX-License-Identifier: Apache-2.0
//
// A limit of memory seen from the command line: the largest batch under it, and what would help where nothing fits.
#ifndef COMPILER_API_MEMORY_H
#define COMPILER_API_MEMORY_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

namespace mtc {

// Sets the batch to the largest multiple of the shards with which one device can host all of them in
// device_memory bytes. MT_NO_MEMORY: not even one sample a shard.
mtrun::Status findLargestBatch(const ModelSource &source, Options &options);

// The fewest micro-batches with which one device has room for all shards in device_memory bytes. 1: the options
// say how many, or nothing of a limit; the device is a GPU; or no number is enough.
int32_t findMicroBatches(const ModelSource &source, const Options &options);

// The fewest blocks of the largest logits (docs/ir.md, "Losses over many classes") with which one device has room for
// all shards in device_memory bytes; if the plan without blocks fits on no number of devices, the fewest with which it
// fits on some. 0: no blocks, because there is no limit, they do not help, or the plan has no code for GPUs.
int32_t findLogitBlocks(const ModelSource &source, const Options &options);

// Of a model that does not fit on any number of devices: the options that would make it fit, each of them tried out.
std::string memoryAdvice(const ModelSource &source, const Options &options);

} // namespace mtc

#endif
