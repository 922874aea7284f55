// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"

namespace mtc {

static std::string counted(uint64_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string summarize(const mtrun::PlanFileView &view) {
  const mt::plan::Plan &plan = *view.tables;
  std::string text = (plan.model() ? plan.model()->str() : "") + ": batch " + std::to_string(plan.batch()) + ", " +
                     counted(plan.shards(), "shard") + ", " + bytesText(view.file.size()) + "; " +
                     counted(each(plan.kernels()).size(), "kernel");
  for (const mt::plan::Program *program : each(plan.programs())) {
    if (program->name()->string_view() != "train_step")
      continue;
    uint64_t reduces = 0, bytes = 0;
    for (const mt::plan::Step *step : each(program->steps()))
      if (step->kernel() < 0) {
        ++reduces;
        bytes += step->partial_bytes();
      }
    text += ", " + counted(reduces, "all-reduce") + " of " + bytesText(bytes) + " a step";
  }
  if (std::string lengths = lengthsText(plan); !lengths.empty())
    text += "; lengths " + lengths;
  if (plan.micro_batches() > 1)
    text += "; " + std::to_string(plan.micro_batches()) + " micro-batches";
  text += "; memory of a device with ";
  uint32_t variant = 0;
  for (uint32_t shards = 1; shards <= plan.shards(); shards *= 2, ++variant)
    text +=
        (variant ? ", " : "") + std::to_string(shards) + ": " + bytesText(mtrun::deviceMemory(plan, variant).bytes());
  return text;
}

} // namespace mtc
