// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Facts.h"
#include "runtime/support/subtrees.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace mtc {

namespace fb = ::mt::plan;

void Lifetime::add(int64_t step, int64_t phase) {
  if (!used()) {
    firstStep = lastStep = step;
    firstPhase = lastPhase = phase;
    return;
  }
  firstStep = std::min(firstStep, step);
  lastStep = std::max(lastStep, step);
  firstPhase = std::min(firstPhase, phase);
  lastPhase = std::max(lastPhase, phase);
}

uint64_t BytesMoved::total() const { return std::accumulate(received.begin(), received.end(), uint64_t{0}); }

static bool isReduce(const fb::Step &step) { return step.kernel() < 0; }

// Returns the number of barriers before each step. mtrun::phasesOf finds phases of another kind, for micro-batches.
static std::vector<int64_t> barrierPhasesOf(const fb::Program &program) {
  std::vector<int64_t> phases;
  int64_t phase = 0;
  bool afterReduce = false;
  for (const fb::Step *step : each(program.steps())) {
    bool waits = step->wait() != fb::Wait::None && !step->tail();
    phase += isReduce(*step) || afterReduce || waits;
    afterReduce = isReduce(*step);
    phases.push_back(phase);
  }
  return phases;
}

// Returns the collective whose range [begin, begin + partial_bytes) contains the buffer, or -1.
static int64_t collectiveOf(const fb::Program &program, const fb::Buffer &buffer) {
  bool partial = buffer.space() == fb::Space::Arena;
  if ((!partial && buffer.space() != fb::Space::Shared) || buffer.row_bytes() != 0)
    return -1;
  uint64_t offset = buffer.offset()->Get(0);
  for (const fb::Step *step : each(program.steps())) {
    if (!isReduce(*step))
      continue;
    uint64_t begin = partial ? step->partial_offset()->Get(0) : step->result_offset();
    if (offset >= begin && offset + buffer.fixed_bytes() <= begin + step->partial_bytes())
      return step->collective();
  }
  return -1;
}

// Other values may use a bucket's range of the arena before or after its partial sums do. So a buffer in that range is
// a partial sum only if nothing overwrites it before the all-reduce.
static void keepPartialsOnly(ProgramFacts &facts) {
  for (size_t i = 0; i < facts.collectives.size(); ++i) {
    int64_t &collective = facts.collectives[i];
    if (collective < 0 || facts.program->buffers()->Get(i)->space() != fb::Space::Arena)
      continue;
    int64_t reduce = facts.reduceSteps[collective];
    const Lifetime &life = facts.lifetimes[i];
    bool between = life.used() && life.firstStep < reduce;
    for (size_t other = 0; between && other < facts.collectives.size(); ++other) {
      const fb::Buffer &a = *facts.program->buffers()->Get(i), &b = *facts.program->buffers()->Get(other);
      const Lifetime &later = facts.lifetimes[other];
      // A later value overwrites the buffer before the all-reduce: the buffer is a temporary.
      if (other != i && b.space() == fb::Space::Arena && later.used() && later.firstStep > life.lastStep &&
          later.firstStep < reduce && a.offset()->Get(0) < b.offset()->Get(0) + b.fixed_bytes() + b.row_bytes() &&
          b.offset()->Get(0) < a.offset()->Get(0) + a.fixed_bytes())
        between = false;
    }
    if (!between)
      collective = -1;
  }
}

// With one device a bucket's results have the addresses of its partial sums, so the partial sums live as long as the
// results; all partial sums of a bucket have one lifetime.
static void joinBuckets(ProgramFacts &facts) {
  for (size_t collective = 0; collective < facts.reduceSteps.size(); ++collective) {
    Lifetime whole;
    whole.add(facts.reduceSteps[collective], facts.phases[facts.reduceSteps[collective]]);
    auto members = [&](auto visit) {
      for (size_t i = 0; i < facts.collectives.size(); ++i)
        if (facts.collectives[i] == static_cast<int64_t>(collective))
          visit(*facts.program->buffers()->Get(i), facts.lifetimes[i]);
    };
    members([&](const fb::Buffer &, Lifetime &life) {
      if (life.used()) {
        whole.add(life.firstStep, life.firstPhase);
        whole.add(life.lastStep, life.lastPhase);
      }
    });
    members([&](const fb::Buffer &buffer, Lifetime &life) {
      if (buffer.space() == fb::Space::Arena)
        life = whole;
    });
  }
}

std::string lengthsText(const fb::Plan &plan) {
  std::string text;
  for (const fb::Length *length : each(plan.lengths()))
    text += (text.empty() ? "" : ", ") + std::to_string(length->length());
  return text;
}

ProgramFacts factsOf(const fb::Program &program) {
  ProgramFacts facts;
  facts.program = &program;
  facts.phases = barrierPhasesOf(program);
  size_t buffers = program.buffers() ? program.buffers()->size() : 0;
  facts.lifetimes.resize(buffers);
  for (size_t i = 0; i < buffers; ++i)
    facts.collectives.push_back(collectiveOf(program, *program.buffers()->Get(i)));
  for (uint32_t i = 0; i < facts.phases.size(); ++i) {
    const fb::Step &step = *program.steps()->Get(i);
    if (isReduce(step)) {
      facts.reduceSteps.push_back(i);
      for (size_t b = 0; b < buffers; ++b)
        if (facts.collectives[b] == step.collective() && program.buffers()->Get(b)->space() == fb::Space::Shared)
          facts.lifetimes[b].add(i, facts.phases[i]);
      continue;
    }
    for (const fb::Segment *segment : each(step.segments()))
      for (uint32_t buffer : each(segment->buffers()))
        facts.lifetimes[buffer].add(i, facts.phases[i]);
  }
  // The runtime reads the metrics after the last step.
  for (const fb::Metric *metric : each(program.metrics()))
    for (uint32_t buffer : {metric->value(), metric->weight()})
      if (!facts.phases.empty())
        facts.lifetimes[buffer].add(static_cast<int64_t>(facts.phases.size()) - 1, facts.phases.back());
  keepPartialsOnly(facts);
  joinBuckets(facts);
  return facts;
}

LaunchCost costOf(const fb::Plan &plan, const fb::Step &step, uint64_t rows) {
  LaunchCost cost;
  if (isReduce(step))
    return cost;
  const fb::Kernel &kernel = *plan.kernels()->Get(step.kernel());
  for (const fb::Segment *segment : each(step.segments())) {
    uint64_t units = kernel.kind() == fb::KernelKind::Elementwise ? segment->count() : rows;
    cost.flops += kernel.flops_per_row() * units + kernel.flops_fixed();
    cost.bytes += kernel.bytes_per_row() * units + kernel.bytes_fixed();
  }
  return cost;
}

BytesMoved bytesMoved(const fb::Plan &plan, uint32_t devices, uint64_t partialBytes, uint64_t rows) {
  // Chunks begin at multiples of a cache line: 16 floats.
  constexpr uint64_t line = 16;
  uint64_t elements = partialBytes / sizeof(float);
  auto chunkBegin = [&](uint64_t device) {
    return device == devices ? elements : elements * device / devices / line * line;
  };
  uint64_t first = 0, active = 0;
  for (uint64_t shards : mtrun::splitShards(plan.shards(), devices)) {
    active += first * plan.shard_rows() < rows;
    first += shards;
  }
  BytesMoved moved{devices, {}};
  for (uint32_t device = 0; device < devices; ++device) {
    uint64_t chunk = chunkBegin(device + 1) - chunkBegin(device);
    uint64_t partials = active - (device < active);
    moved.received.push_back((chunk * partials + elements - chunk) * sizeof(float));
  }
  return moved;
}

std::vector<uint32_t> reportedDevices(uint32_t shards) {
  std::vector<uint32_t> devices;
  for (uint32_t n = 2; n <= std::min(shards, 64u); ++n)
    devices.push_back(n);
  for (uint64_t n = 128; n <= shards; n *= 2)
    devices.push_back(static_cast<uint32_t>(n));
  return devices;
}

uint64_t boundBytes(const fb::Plan &plan, uint32_t variant) {
  mtrun::DeviceMemory memory = mtrun::deviceMemory(plan, variant);
  memory.arena = 0;
  uint32_t atOnce = std::min<uint32_t>(variant, llvm::countr_zero(plan.shards() / plan.micro_batches()));
  for (const fb::Program *program : each(plan.programs()))
    memory.arena = std::max<uint64_t>(memory.arena, program->variants()->Get(atOnce)->bound_bytes());
  return memory.bytes();
}

} // namespace mtc
