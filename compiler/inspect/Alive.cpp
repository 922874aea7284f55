// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Alive.h"
#include "compiler/inspect/Layers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>

namespace mtc {

namespace fb = ::mt::plan;

namespace {

class Alive {
public:
  Alive(const fb::Plan &plan, const ProgramFacts &facts) : facts(facts) {
    alive.variant = std::min<uint32_t>(facts.program->variants()->size() - 1,
                                       llvm::countr_zero(plan.shards() / plan.micro_batches()));
    rows = plan.shard_rows() << alive.variant;
  }

  AliveFacts find() {
    if (facts.phases.empty())
      return alive;
    for (int64_t phase = 0; phase <= facts.phases.back(); ++phase) {
      uint64_t bytes = 0;
      for (const AliveValue &value : valuesOf(phase))
        bytes += value.bytes;
      alive.bytes.push_back(bytes);
    }
    alive.peak = std::max_element(alive.bytes.begin(), alive.bytes.end()) - alive.bytes.begin();
    auto first = llvm::find(facts.phases, alive.peak);
    alive.firstStep = first - facts.phases.begin();
    alive.lastStep = alive.firstStep + llvm::count(facts.phases, alive.peak) - 1;
    alive.values = valuesOf(alive.peak);
    llvm::stable_sort(alive.values, [](const AliveValue &a, const AliveValue &b) { return a.bytes > b.bytes; });
    return alive;
  }

private:
  std::vector<AliveValue> valuesOf(int64_t phase) const {
    std::map<std::pair<uint64_t, uint64_t>, AliveValue> values; // by offset and size
    std::map<int64_t, AliveValue> buckets;
    for (size_t i = 0; i < facts.lifetimes.size(); ++i) {
      const fb::Buffer &buffer = *facts.program->buffers()->Get(static_cast<uint32_t>(i));
      const Lifetime &life = facts.lifetimes[i];
      if (buffer.space() != fb::Space::Arena || !life.used() || life.firstPhase > phase || life.lastPhase < phase)
        continue;
      if (int64_t bucket = facts.collectives[i]; bucket >= 0) {
        uint64_t bytes = facts.program->steps()->Get(facts.reduceSteps[static_cast<size_t>(bucket)])->partial_bytes();
        buckets.try_emplace(bucket, AliveValue{"partial sums of all-reduce " + std::to_string(bucket), "",
                                               life.firstStep, life.lastStep, llvm::alignTo(bytes, 64)});
        continue;
      }
      uint64_t bytes = llvm::alignTo(buffer.fixed_bytes() + buffer.row_bytes() * rows, 64);
      auto [found, fresh] =
          values.try_emplace({buffer.offset()->Get(alive.variant), bytes},
                             AliveValue{buffer.name()->str(), shapeOf(buffer), life.firstStep, life.lastStep, bytes});
      if (!fresh) { // the buffer is computed in the memory of another one
        found->second.firstStep = std::min(found->second.firstStep, life.firstStep);
        found->second.lastStep = std::max(found->second.lastStep, life.lastStep);
      }
    }
    std::vector<AliveValue> all;
    for (auto &entry : values)
      all.push_back(std::move(entry.second));
    for (auto &entry : buckets)
      all.push_back(std::move(entry.second));
    return all;
  }

  const ProgramFacts &facts;
  AliveFacts alive;
  uint64_t rows;
};

} // namespace

AliveFacts aliveOf(const fb::Plan &plan, const ProgramFacts &facts) { return Alive(plan, facts).find(); }

} // namespace mtc
