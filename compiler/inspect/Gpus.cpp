// SPDX-License-Identifier: Apache-2.0
//
// A model of a training step on GPUs: what the all-reduces cost that no kernel hides.
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"
#include "runtime/abi/overlap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>

namespace mtc {

namespace fb = ::mt::plan;

namespace {

// Rates of a GPU, from its maker's data sheet: so kernels take the least time they can, and hide the least.
struct Gpu {
  const char *name;
  double flops, bytes, link; // float32 FLOP, bytes of memory, bytes of a link in one direction; a second
};
constexpr Gpu gpus[] = {
    {"h200", 67e12, 4.8e12, 450e9},    // SXM, NVLink 4
    {"h100", 67e12, 3.35e12, 450e9},   // SXM, NVLink 4
    {"a100", 19.5e12, 2.04e12, 300e9}, // SXM 80 GB, NVLink 3
    {"l40s", 91.6e12, 0.864e12, 25e9}, // PCIe 4 x16
};
// Seconds: a node of a CUDA graph; an all-reduce beyond its bytes, of which each device waits for all others three
// times.
constexpr double launchTime = 1.5e-6, rendezvousTime = 15e-6;

struct Model {
  const fb::Plan &plan;
  const fb::Program &program;
  const Gpu &gpu;
  uint32_t devices;

  uint64_t shards() const { return plan.shards() / devices; }
  uint64_t rows() const { return std::min<uint64_t>(plan.batch(), shards() * plan.shard_rows()); }

  double launch(const fb::Step &step) const {
    LaunchCost cost = costOf(plan, step, rows());
    return launchTime +
           std::max(static_cast<double>(cost.flops) / gpu.flops, static_cast<double>(cost.bytes) / gpu.bytes);
  }
  double allReduce(const fb::Step &step) const {
    double share = static_cast<double>(devices - 1) / devices, bytes = static_cast<double>(step.partial_bytes());
    return rendezvousTime + 2 * share * bytes / gpu.link;
  }

  // An address for every byte that a program names: blocks far apart.
  mtrun::Range place(fb::Space space, uint64_t offset, uint64_t bytes) const {
    uint64_t begin = (uint64_t{static_cast<uint8_t>(space)} + 1) << 48 | offset;
    return {begin, begin + bytes};
  }
  mtrun::Range rangeOf(const fb::Buffer &buffer) const {
    uint64_t offset = uint64_t{buffer.index()} << 40; // of what is not counted from the start of a block
    if (buffer.space() == fb::Space::Variable)
      offset = plan.variables()->Get(buffer.index())->offset();
    else if (buffer.space() != fb::Space::Signature)
      offset = buffer.offset()->Get(buffer.space() == fb::Space::Arena ? variant() : 0);
    return place(buffer.space(), offset, buffer.fixed_bytes() + buffer.row_bytes() * shards() * plan.shard_rows());
  }
  uint32_t variant() const { return static_cast<uint32_t>(llvm::Log2_64(shards())); }

  // Seconds of a step, by what the device's two streams do; with `free` all-reduces take none.
  double time(bool free) const {
    mtrun::Overlap overlap;
    std::vector<double> ends; // of operations on `links`
    double compute = 0, links = 0;
    for (const fb::Step *step : each(program.steps())) {
      if (step->kernel() < 0) {
        uint64_t bytes = step->partial_bytes();
        overlap.allReduce(std::array{place(fb::Space::Arena, step->partial_offset()->Get(variant()), bytes),
                                     place(fb::Space::Shared, step->result_offset(), bytes)});
        links = std::max(links, compute) + (free ? 0 : allReduce(*step));
        ends.push_back(links);
        continue;
      }
      std::vector<mtrun::Range> touched;
      for (const fb::Segment *segment : each(step->segments()))
        for (uint32_t buffer : each(segment->buffers()))
          touched.push_back(rangeOf(*program.buffers()->Get(buffer)));
      auto [onCommunication, after] = overlap.launch(touched, step->share());
      if (onCommunication) {
        links = std::max(links, compute) + launch(*step);
        ends.push_back(links);
      } else {
        compute = std::max(compute, after < 0 ? 0 : ends[static_cast<size_t>(after)]) + launch(*step);
      }
    }
    return std::max(compute, links);
  }
};

} // namespace

std::string knownGpus() {
  std::string names;
  for (const Gpu &gpu : gpus)
    names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

std::string inspectGpus(const mtrun::PlanFileView &view, const std::string &name) {
  const fb::Plan &plan = *view.tables;
  const Gpu *gpu = llvm::find_if(gpus, [&](const Gpu &c) { return c.name == name; });
  auto programs = each(plan.programs());
  auto training =
      llvm::find_if(programs, [](const fb::Program *p) { return p->name()->string_view() == "train_step"; });
  if (gpu == std::end(gpus) || training == programs.end())
    return "";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << llvm::formatv(
      "a training step of {0} samples on {1}, modelled: {2:f1} TFLOP/s, {3:f2} TB/s, links of {4:f0} GB/s, "
      "{5:f1} us a launch, {6:f0} us an all-reduce beside its bytes\n",
      plan.batch(), gpu->name, gpu->flops / 1e12, gpu->bytes / 1e12, gpu->link / 1e9, launchTime * 1e6,
      rendezvousTime * 1e6);
  out << "  devices  step ms  all-reduces  their ms  exposed ms  exposed\n";
  for (uint32_t devices = 1; devices <= plan.shards(); devices *= 2) {
    Model model{plan, **training, *gpu, devices};
    double whole = model.time(devices == 1), alone = model.time(true), reduces = 0;
    uint32_t count = 0;
    for (const fb::Step *step : each((*training)->steps()))
      if (step->kernel() < 0 && devices > 1) {
        reduces += model.allReduce(*step);
        ++count;
      }
    out << llvm::formatv("  {0,7}  {1,7:f3}  {2,11}  {3,8:f3}  {4,10:f3}  {5,5:f1} %\n", devices, whole * 1e3, count,
                         reduces * 1e3, (whole - alone) * 1e3, (whole - alone) / whole * 100);
  }
  return text;
}

} // namespace mtc
