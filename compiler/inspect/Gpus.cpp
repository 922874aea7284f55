// SPDX-License-Identifier: Apache-2.0
//
// Models a training step on GPUs, or on hosts of GPUs or CPUs: the time of the all-reduces that kernels do not hide.
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"
#include "dialects/mt/KernelKinds.h"
#include "runtime/support/exchange_time.h"
#include "runtime/support/gpu_architecture.h"
#include "runtime/support/overlap.h"
#include "runtime/support/subtrees.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mtc {

namespace fb = ::mt::plan;

namespace {

// Rates of a GPU per second, from the manufacturer's data sheet. At these rates kernels take the least time possible
// and hide the least communication. Rates of tensor cores are for dense matrices; where NVIDIA's sheet gives the rate
// with sparsity, half of it.
struct Gpu {
  const char *name;
  int capability;         // compute capability, as in runtime/support/gpu_architecture.h
  double f32, tf32, half; // FLOP/s of float32 FMAs; of tensor cores in TF32; in BF16 and F16
  double bytes;           // byte/s of memory
  double link, network;   // byte/s of a GPU in one direction: to GPUs of the same host; to other hosts
  double exchange;        // seconds to exchange a few bytes between GPUs of a host: an estimate

  int multiprocessors() const { return mtrun::gpuArchitecture(capability).multiprocessors; }
};
// `network` is that of NVIDIA's DGX machines: a port per GPU of 400 Gbit/s (Hopper) or 200 Gbit/s (Ampere).
constexpr Gpu gpus[] = {
    // NVIDIA H200 and H100 Tensor Core GPU data sheets, SXM; NVLink 4
    {"h200", 90, 67e12, 494.5e12, 989.5e12, 4.8e12, 450e9, 50e9, 12e-6},
    {"h100", 90, 67e12, 494.5e12, 989.5e12, 3.35e12, 450e9, 50e9, 12e-6},
    // NVIDIA A100 data sheet, SXM 80 GB; NVLink 3
    {"a100", 80, 19.5e12, 156e12, 312e12, 2.039e12, 300e9, 25e9, 12e-6},
    // NVIDIA L40S data sheet; PCIe 4 x16: about 25 of its 32 GB/s are usable, and the network shares them
    {"l40s", 89, 91.6e12, 183e12, 362e12, 0.864e12, 25e9, 25e9, 20e-6},
};
// Seconds per node of a CUDA graph; additional seconds of an exchange between hosts. Below: GPUs per host.
constexpr double launchTime = 1.5e-6, hostsTime = 10e-6;
constexpr uint32_t hostDevices = 8;
// Estimates: seconds of a step of a ring between GPUs; of a message between CPU hosts over TCP; bytes of memory that a
// core reads per FLOP that it computes.
constexpr double ringStep = 2e-6, hostMessage = 30e-6, bytesPerFlop = 0.1;

bool isProduct(fb::KernelKind kind) {
  switch (kind) {
#define KIND(kind, name, Name)                                                                                         \
  case fb::KernelKind::Name:                                                                                           \
    return mlir::mt::infoOf(mlir::mt::KernelKind::kind).isProduct;
#include "dialects/mt/KernelKinds.def"
  }
  return false;
}

struct Model {
  const fb::Plan &plan;
  const fb::Program &program;
  const Gpu &gpu;
  uint32_t devices;
  const mtrun::Cluster *cluster = nullptr; // the hosts of the devices; null: hosts of 8, and no host-first exchange
  mtrun::ClusterExchange exchange = mtrun::ClusterExchange::HostFirst;
  uint64_t held = 0; // the shards of the device that has most; 0: all devices have the same number

  uint64_t shards() const { return held ? held : plan.shards() / devices; }
  uint64_t rows() const { return std::min<uint64_t>(plan.batch(), shards() * plan.shard_rows()); }

  // Returns the FLOP/s of matrix products in the plan's precision.
  double peak() const {
    std::string_view precision = plan.precision() ? plan.precision()->string_view() : "f32";
    return precision == "f32" ? gpu.f32 : std::max(gpu.f32, precision == "tf32" ? gpu.tf32 : gpu.half);
  }
  // Returns the share of the GPU's multiprocessors that a launch uses, one per block. Plans without code for GPUs have
  // no grids: their launches use the whole GPU.
  double share(const fb::Step &step) const {
    const fb::Kernel &kernel = *plan.kernels()->Get(static_cast<uint32_t>(step.kernel()));
    const fb::GpuGrid *grid = kernel.gpu();
    if (!grid || gpu.capability == 0)
      return 1;
    uint64_t blocks = 0;
    for (const fb::Segment *segment : each(step.segments())) {
      if (grid->elements_per_tile())
        blocks += llvm::divideCeil(segment->count(), grid->elements_per_tile());
      else
        blocks += (grid->rows_per_tile() ? llvm::divideCeil(rows(), grid->rows_per_tile()) : 1) * grid->inner_tiles();
    }
    return std::min(1.0, static_cast<double>(std::max<uint64_t>(blocks, 1)) / gpu.multiprocessors());
  }
  double launch(const fb::Step &step) const {
    LaunchCost cost = costOf(plan, step, rows());
    double rate = isProduct(plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->kind()) ? peak() : gpu.f32;
    return launchTime + std::max(static_cast<double>(cost.flops) / (rate * share(step)),
                                 static_cast<double>(cost.bytes) / gpu.bytes);
  }
  // Returns the time of an all-reduce without its bytes: two exchanges, an addition per level of the tree, a copy
  // (docs/gpu-code.md).
  double latency() const {
    return 2 * (gpu.exchange + (devices > hostDevices ? hostsTime : 0)) + (1 + llvm::Log2_32(devices)) * launchTime;
  }
  // Each chunk goes directly to the device that adds it: to a device of another host through the network.
  double allReduce(const fb::Step &step) const {
    if (cluster)
      return mtrun::exchangeTime(exchange, *cluster, static_cast<double>(step.partial_bytes())) +
             (1 + llvm::Log2_32_Ceil(devices)) * launchTime;
    double bytes = 2 * static_cast<double>(step.partial_bytes()) / devices;
    uint32_t near = std::min(devices, hostDevices);
    return latency() + std::max((near - 1) * bytes / gpu.link, (devices - near) * bytes / gpu.network);
  }

  // Gives every byte that a program can name an address of its own, with each space in a distant range.
  mtrun::Range addressRange(fb::Space space, uint64_t offset, uint64_t bytes) const {
    uint64_t begin = (uint64_t{static_cast<uint8_t>(space)} + 1) << 48 | offset;
    return {begin, begin + bytes};
  }
  mtrun::Range rangeOf(const fb::Buffer &buffer) const {
    uint64_t offset = uint64_t{buffer.index()} << 40; // for spaces that a buffer has to itself: no offset
    if (buffer.space() == fb::Space::Variable)
      offset = plan.variables()->Get(buffer.index())->offset();
    else if (buffer.space() != fb::Space::Signature)
      offset = buffer.offset()->Get(buffer.space() == fb::Space::Arena ? variant() : 0);
    return addressRange(buffer.space(), offset,
                        buffer.fixed_bytes() + buffer.row_bytes() * shards() * plan.shard_rows());
  }
  uint32_t variant() const { return static_cast<uint32_t>(llvm::Log2_64(shards())); }

  // Returns the seconds of a step on the device's two streams, compute and communication. `free`: all-reduces take no
  // time.
  double time(bool free) const {
    mtrun::Overlap overlap;
    std::vector<double> ends; // ends of the operations on the communication stream
    double compute = 0, links = 0;
    for (const fb::Step *step : each(program.steps())) {
      if (step->tail())
        continue;
      if (step->kernel() < 0) {
        uint64_t bytes = step->partial_bytes();
        overlap.allReduce(std::array{addressRange(fb::Space::Arena, step->partial_offset()->Get(variant()), bytes),
                                     addressRange(fb::Space::Shared, step->result_offset(), bytes)});
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

Rates nominalRates() { return {100e9, 10e9, "round numbers of a core of a server"}; }

Rates ratesOfGpu(const mtrun::PlanFileView &view, const std::string &name) {
  const Gpu *gpu = llvm::find_if(gpus, [&](const Gpu &c) { return c.name == name; });
  if (gpu == std::end(gpus) || each(view.tables->programs()).empty())
    return {0, 0, ""};
  Model model{*view.tables, *view.tables->programs()->Get(0), *gpu, 1};
  return {model.peak(), gpu->bytes, name + " by its data sheet"};
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
  Model first{plan, **training, *gpu, 1};
  out << llvm::formatv("a training step of {0} samples on {1}, modelled: products {2:f1} TFLOP/s ({3}), else {4:f1}, "
                       "{5} multiprocessors, {6:f2} TB/s, links of {7:f0} GB/s, between hosts of {8} GPUs {9:f0} GB/s, "
                       "{10:f1} us a launch, {11:f0} us an exchange\n",
                       plan.batch(), gpu->name, first.peak() / 1e12,
                       plan.precision() ? plan.precision()->string_view() : "f32", gpu->f32 / 1e12,
                       gpu->multiprocessors(), gpu->bytes / 1e12, gpu->link / 1e9, hostDevices, gpu->network / 1e9,
                       launchTime * 1e6, gpu->exchange * 1e6);
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

namespace {

// Reads a whole number of 1 to `most`, and removes it.
bool takeCount(llvm::StringRef &text, uint64_t most, uint64_t &count) {
  return !text.consumeInteger(10, count) && count >= 1 && count <= most;
}

mtrun::Status expected(const char *what, const char *example, llvm::StringRef found) {
  return {MT_INVALID, std::string("expected ") + what + ", such as " + example + ", found " +
                          (found.empty() ? "none" : found.str())};
}

// Reads "8x8" or "8".
mtrun::Status parseHosts(llvm::StringRef text, uint64_t perHost, mtrun::Cluster &cluster) {
  constexpr uint64_t most = 1024;
  llvm::StringRef rest = text;
  cluster.perHost = perHost;
  bool good = takeCount(rest, most, cluster.hosts);
  if (good && rest.consume_front("x"))
    good = takeCount(rest, most, cluster.perHost);
  if (!good || !rest.empty() || cluster.devices() > most)
    return expected("hosts and devices of each, 1,024 devices at most", "8x8", text);
  return {};
}

// Reads "400Gb", in bits per second.
mtrun::Status parseNetwork(llvm::StringRef text, double &bytes) {
  llvm::StringRef number = text;
  double unit = number.consume_back("Gb") ? 1e9 : number.consume_back("Mb") ? 1e6 : 0;
  double value = 0;
  if (unit == 0 || number.getAsDouble(value) || !(value > 0) || value > 1e6)
    return expected("bits per second of a device's network", "25Gb", text);
  bytes = value * unit / 8;
  return {};
}

// Reads "32x40GF": cores, and 10^9 FLOPs per second of each.
mtrun::Status parseCpu(llvm::StringRef text, Gpu &device) {
  llvm::StringRef rest = text;
  uint64_t cores = 0;
  double each = 0;
  if (!takeCount(rest, 1024, cores) || !rest.consume_front("x") || !rest.consume_back("GF") || rest.getAsDouble(each) ||
      !(each > 0) || each > 1e6)
    return expected("cores and GFLOP/s of each", "32x40GF", text);
  double flops = static_cast<double>(cores) * each * 1e9;
  device = {"cpu", 0, flops, flops, flops, flops * bytesPerFlop, 1, 0, hostMessage};
  return {};
}

// Returns the rates that the texts describe.
mtrun::Status readMachine(const HostsModel &of, Gpu &device, mtrun::Cluster &cluster) {
  const Gpu *gpu = llvm::find_if(gpus, [&](const Gpu &c) { return of.gpu && std::string_view(c.name) == of.gpu; });
  if (of.gpu && gpu == std::end(gpus))
    return {MT_INVALID, "expected one of the GPUs " + knownGpus() + ", found " + of.gpu};
  if (gpu != std::end(gpus))
    device = *gpu;
  else if (mtrun::Status status = parseCpu(of.cpu ? of.cpu : "", device); !status.ok())
    return status;
  if (mtrun::Status status = parseHosts(of.hosts ? of.hosts : "", of.gpu ? hostDevices : 1, cluster); !status.ok())
    return status;
  if (!of.gpu && cluster.perHost > 1)
    return expected("a number of hosts, each of which is one device with its CPUs", "8", of.hosts);
  if (of.network || !of.gpu)
    if (mtrun::Status status = parseNetwork(of.network ? of.network : "", device.network); !status.ok())
      return status;
  cluster.link = device.link;
  cluster.network = device.network;
  cluster.exchange = device.exchange;
  cluster.between = of.gpu ? hostsTime : 0;
  cluster.hop = of.gpu ? ringStep : hostMessage;
  return {};
}

void writeRow(const Model &model, llvm::raw_ostream &out) {
  Model ring = model;
  ring.exchange = mtrun::ClusterExchange::Ring;
  bool single = model.devices == 1;
  double alone = model.time(true), whole = model.time(single), withRing = ring.time(single), reduces = 0;
  for (const fb::Step *step : each(model.program.steps()))
    reduces += step->kernel() < 0 && !single ? model.allReduce(*step) : 0;
  out << llvm::formatv("  {0,5}  {1,7}  {2,7:f3}  {3,8:f3}  {4,10:f3}  {5,5:f1} %  {6,7:f3}  {7,5:f1} %\n",
                       model.cluster->hosts, model.devices, whole * 1e3, reduces * 1e3, (whole - alone) * 1e3,
                       (whole - alone) / whole * 100, (withRing - alone) * 1e3, (withRing - alone) / withRing * 100);
}

} // namespace

mtrun::Status inspectHosts(const mtrun::PlanFileView &view, const HostsModel &of, std::string &text) {
  const fb::Plan &plan = *view.tables;
  Gpu device = {};
  mtrun::Cluster cluster;
  if (mtrun::Status status = readMachine(of, device, cluster); !status.ok())
    return status;
  auto programs = each(plan.programs());
  auto training =
      llvm::find_if(programs, [](const fb::Program *p) { return p->name()->string_view() == "train_step"; });
  if (training == programs.end())
    return {MT_INVALID, "expected a plan that trains, found none"};
  auto splitOn = [&](uint64_t hosts) {
    return mtrun::splitShardsOnHosts(static_cast<int>(plan.shards()),
                                     std::vector<int>(hosts, static_cast<int>(cluster.perHost)));
  };
  if (splitOn(cluster.hosts).empty())
    return {MT_INVALID, "expected enough shards for " + std::to_string(cluster.devices()) + " devices on " +
                            std::to_string(cluster.hosts) + " hosts, found a plan of " + std::to_string(plan.shards()) +
                            "; compile it with more --shards"};
  llvm::raw_string_ostream out(text);
  Model first{plan, **training, device, 1};
  std::string links = cluster.perHost > 1 ? llvm::formatv("links of {0:f0} GB/s, ", device.link / 1e9).str() : "";
  out << llvm::formatv("a training step of {0} samples on hosts of {1} {2}, modelled: products {3:f1} TFLOP/s ({4}), "
                       "else {5:f1}, {6:f2} TB/s, {7}between hosts {8:f2} GB/s a device, {9:f0} us an exchange\n",
                       plan.batch(), cluster.perHost, device.name, first.peak() / 1e12,
                       plan.precision() ? plan.precision()->string_view() : "f32", device.f32 / 1e12,
                       device.bytes / 1e12, links, device.network / 1e9, device.exchange * 1e6)
      << "                  inside hosts first                      a ring\n"
      << "  hosts  devices  step ms  their ms  exposed ms  exposed    exposed ms\n";
  uint64_t most = cluster.hosts;
  for (uint64_t hosts = 1; hosts <= most; hosts = hosts < most ? std::min(2 * hosts, most) : hosts + 1) {
    mtrun::Cluster part = cluster;
    part.hosts = hosts;
    std::vector<int> shards = splitOn(hosts);
    Model model{plan, **training, device, static_cast<uint32_t>(part.devices()), &part};
    model.held = static_cast<uint64_t>(*llvm::max_element(shards));
    writeRow(model, out);
  }
  return {};
}

} // namespace mtc
