// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/LateSums.h"

#include "runtime/plan/Check.h"

#include <algorithm>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

struct Use {
  uint32_t step, segment, buffer;
};

// Every place where a program names a buffer of the shared block. Metrics are read after the last step.
std::vector<Use> sharedUses(const fb::Program &program) {
  std::vector<Use> uses;
  auto add = [&](uint32_t step, uint32_t segment, uint32_t buffer) {
    if (program.buffers()->Get(buffer)->space() == fb::Space::Shared)
      uses.push_back({step, segment, buffer});
  };
  uint32_t steps = count(program.steps());
  for (uint32_t k = 0; k < steps; ++k) {
    const auto *segments = program.steps()->Get(k)->segments();
    for (uint32_t s = 0; s < count(segments); ++s)
      for (uint32_t b = 0; b < count(segments->Get(s)->buffers()); ++b)
        add(k, s, segments->Get(s)->buffers()->Get(b));
  }
  for (uint32_t i = 0; i < count(program.metrics()); ++i) {
    add(steps, 0, program.metrics()->Get(i)->value());
    add(steps, 0, program.metrics()->Get(i)->weight());
  }
  return uses;
}

bool overlaps(const fb::Buffer &a, const fb::Buffer &b) {
  uint64_t first = a.offset()->Get(0), second = b.offset()->Get(0);
  return first < second + b.fixed_bytes() && second < first + a.fixed_bytes();
}

} // namespace

std::vector<LateSum> lateSums(const fb::Plan &plan, const fb::Program &program, int64_t elementsPerTile) {
  std::vector<LateSum> sums;
  std::vector<Use> uses = sharedUses(program);
  uint32_t allReduce = 0;
  for (uint32_t i = 0; i < count(program.steps()); ++i) {
    const fb::Step &step = *program.steps()->Get(i);
    if (step.kernel() >= 0)
      continue;
    uint64_t begin = step.result_offset(), end = begin + step.root_bytes();
    for (const Use &use : uses) {
      if (use.step <= i || use.step == count(program.steps()))
        continue;
      const fb::Step &reader = *program.steps()->Get(use.step);
      if (reader.kernel() < 0)
        continue;
      const fb::Kernel &kernel = *plan.kernels()->Get(static_cast<uint32_t>(reader.kernel()));
      const fb::Buffer &buffer = *program.buffers()->Get(use.buffer);
      uint64_t offset = buffer.offset()->Get(0);
      auto elements = static_cast<int64_t>(reader.segments()->Get(use.segment)->count());
      bool map = kernel.kind() == fb::KernelKind::Map && reader.share() &&
                 static_cast<int64_t>(kernel.elements_per_tile()) == elementsPerTile;
      bool fits = offset >= begin && offset + buffer.fixed_bytes() <= end && (offset - begin) % sizeof(float) == 0;
      bool whole = buffer.dtype() == fb::DType::F32 && buffer.row_bytes() == 0 &&
                   buffer.fixed_bytes() == elements * sizeof(float);
      bool alone = std::none_of(uses.begin(), uses.end(), [&](const Use &other) {
        bool same = other.step == use.step && other.segment == use.segment && other.buffer == use.buffer;
        return !same && overlaps(buffer, *program.buffers()->Get(other.buffer));
      });
      bool first = std::none_of(sums.begin(), sums.end(), [&](const LateSum &sum) {
        return sum.step == use.step && (sum.segment == use.segment || sum.allReduce != allReduce);
      });
      if (map && fits && whole && alone && first)
        sums.push_back({allReduce, use.step, use.segment, use.buffer,
                        static_cast<int64_t>((offset - begin) / sizeof(float)), elements});
    }
    ++allReduce;
  }
  return sums;
}

std::vector<std::pair<int64_t, int64_t>> earlyRanges(const std::vector<LateSum> &late, uint32_t allReduce,
                                                     int64_t elements) {
  std::vector<std::pair<int64_t, int64_t>> taken, ranges;
  for (const LateSum &sum : late)
    if (sum.allReduce == allReduce)
      taken.emplace_back(sum.first, sum.first + sum.count);
  std::sort(taken.begin(), taken.end());
  taken.emplace_back(elements, elements);
  int64_t at = 0;
  for (auto [first, end] : taken) {
    if (at < first)
      ranges.emplace_back(at, first);
    at = end;
  }
  return ranges;
}

} // namespace mtrun
