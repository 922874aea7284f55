// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a program's tensors and tables, on each device and on the host.
#include "runtime/device/cuda/Capture.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cstring>

namespace mtrun::cuda {

namespace {

constexpr uint64_t tensorAlignment = 256, paramsBytes = 64;
static_assert(sizeof(mt_kernel_params) <= paramsBytes);

uint64_t aligned(uint64_t bytes) { return (bytes + tensorAlignment - 1) / tensorAlignment * tensorAlignment; }

} // namespace

uint64_t tensorRowBytes(const mt::plan::Program &program) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count(program.signature()); ++i)
    bytes += program.signature()->Get(i)->row_bytes();
  return bytes;
}

PartialRoom partialRoom(const mt::plan::Plan &plan) {
  PartialRoom room;
  for (uint32_t p = 0; p < count(plan.programs()); ++p)
    for (uint32_t i = 0; i < count(plan.programs()->Get(p)->steps()); ++i) {
      const mt::plan::Step &step = *plan.programs()->Get(p)->steps()->Get(i);
      const mt::plan::GpuGrid *grid =
          step.kernel() < 0 ? nullptr : plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->gpu();
      if (!grid || grid->partial_bytes() == 0)
        continue;
      uint64_t segments = count(step.segments());
      room.counterBytes = std::max(room.counterBytes, segments * MT_GPU_COUNTERS * sizeof(uint32_t));
      room.sumBytes = std::max(room.sumBytes, segments * grid->partial_bytes()); // verified to be at most 2^46
    }
  return room;
}

uint64_t tableBytes(const mt::plan::Program &program, int devices) {
  uint64_t pairs = static_cast<uint64_t>(devices - 1), bytes = paramsBytes, heads = 0, before = 0;
  for (uint32_t i = 0; i < count(program.steps()); ++i) {
    const auto *segments = program.steps()->Get(i)->segments();
    if (program.steps()->Get(i)->kernel() < 0)
      bytes += pairs * CapturedProgram::sumWords * sizeof(mt_gpu_word);
    // The segments of the launches before a tail have its buffers too.
    heads = program.steps()->Get(i)->tail() ? heads + before : 0;
    before = count(segments);
    for (uint32_t s = 0; s < count(segments); ++s)
      bytes += (1 + (1 + heads) * count(segments->Get(s)->buffers())) * sizeof(mt_gpu_word);
  }
  return bytes;
}

CapturedProgram::~CapturedProgram() {
  (void)group_.makeCurrent(0);
  for (std::byte *memory : pinned_)
    (void)driver_.memFreeHost(memory);
}

Status CapturedProgram::pinned(uint64_t bytes, std::byte **memory) {
  void *place = nullptr;
  Result result = driver_.memHostAlloc(&place, std::max<uint64_t>(bytes, 1), hostPortable);
  if (result != success)
    return failure(driver_, result, "cannot pin " + std::to_string(bytes) + " bytes of the host's memory");
  std::memset(place, 0, bytes);
  *memory = static_cast<std::byte *>(place);
  pinned_.push_back(*memory);
  return {};
}

// Returns which signature entries a device's steps access.
static std::vector<bool> usedTensors(const BoundProgram &program, int device) {
  std::vector<bool> used(program.signature.size());
  for (const SignaturePatch &patch : program.devices[static_cast<size_t>(device)].patches)
    used[patch.entry] = true;
  return used;
}

uint64_t CapturedProgram::tensorBytes(const BoundProgram &program, int device) {
  auto rows = static_cast<uint64_t>(program.devices[static_cast<size_t>(device)].maxRows);
  std::vector<bool> used = usedTensors(program, device);
  uint64_t bytes = 0;
  for (size_t i = 0; i < used.size(); ++i)
    bytes += used[i] ? aligned(program.signature[i].rowBytes * rows) : 0;
  return bytes;
}

Status CapturedProgram::layOut(BoundProgram &program, const std::vector<std::byte *> &onDevices,
                               const std::vector<std::byte *> &onHost) {
  sides_.resize(program.devices.size());
  tensors_.resize(program.signature.size());
  for (size_t d = 0; d < program.devices.size(); ++d)
    layOutTensors(program, static_cast<int>(d), onDevices[d], onHost[d]);
  point(program);
  for (int d = 0; d < static_cast<int>(program.devices.size()); ++d) {
    if (!group_.makeCurrent(d))
      return group_.health();
    if (Status status = layOutDevice(program, d); !status.ok())
      return status;
    if (Status status = group_.makePartials(d); !status.ok())
      return status;
    if (Status status = layOutCalls(program, d); !status.ok())
      return status;
  }
  if (!group_.makeCurrent(0))
    return group_.health();
  if (Status status = layOutResults(program); !status.ok())
    return status;
  return group_.health();
}

// Inputs come first, so that they are contiguous for one copy.
void CapturedProgram::layOutTensors(const BoundProgram &program, int device, std::byte *onDevice, std::byte *onHost) {
  auto rows = static_cast<uint64_t>(program.devices[static_cast<size_t>(device)].maxRows);
  Side &side = sides_[static_cast<size_t>(device)];
  side.tensors.assign(program.signature.size(), nullptr);
  side.staged.assign(program.signature.size(), nullptr);
  std::vector<bool> used = usedTensors(program, device);
  for (bool output : {false, true})
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i] || program.signature[i].output != output)
        continue;
      side.tensors[i] = onDevice;
      side.staged[i] = onHost;
      onDevice += aligned(program.signature[i].rowBytes * rows);
      onHost += aligned(program.signature[i].rowBytes * rows);
    }
}

void CapturedProgram::point(BoundProgram &program) const {
  for (size_t d = 0; d < sides_.size(); ++d)
    for (const SignaturePatch &patch : program.devices[d].patches)
      *patch.slot = sides_[d].tensors[patch.entry];
}

// Read-backs that are close in memory are copied together, because each copy takes microseconds, whatever its size.
Status CapturedProgram::layOutResults(const BoundProgram &program) {
  constexpr uint64_t close = 4096;
  const CudaDevice &first = group_.device(0);
  std::vector<size_t> order(program.readBacks.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto begin = [&](size_t i) { return static_cast<const std::byte *>(program.readBacks[i].device); };
  auto inBlock = [&](const std::byte *place) { return place >= first.block && place < first.block + first.blockBytes; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return begin(a) < begin(b); });
  std::vector<uint64_t> places(order.size()); // offset of each read-back in pinned memory
  uint64_t bytes = 0;
  for (size_t i : order) {
    uint64_t size = program.readBacks[i].bytes;
    ResultCopy *last = results_.empty() ? nullptr : &results_.back();
    bool joins = last && inBlock(last->device) && inBlock(begin(i)) && begin(i) < last->device + last->bytes + close;
    if (!joins)
      results_.push_back({begin(i), nullptr, 0});
    last = &results_.back();
    auto offset = static_cast<uint64_t>(begin(i) - last->device);
    bytes -= last->bytes;
    places[i] = bytes + offset;
    last->bytes = std::max(last->bytes, offset + size);
    bytes += last->bytes;
  }
  std::byte *memory = nullptr;
  if (Status status = pinned(bytes, &memory); !status.ok())
    return status;
  for (uint64_t place : places)
    resultOf_.push_back(memory + place);
  for (ResultCopy &result : results_) {
    result.host = memory;
    memory += result.bytes;
  }
  return {};
}

// Plans the tree's sums for the device's chunk of every all-reduce. All sums of a level are one launch with a segment
// each. A segment has three pointers; the result overwrites the left operand.
void CapturedProgram::planSums(const BoundProgram &program, int device, std::vector<mt_gpu_word> &words) {
  Side &side = sides_[static_cast<size_t>(device)];
  int devices = program.sessionDevices(), number = program.firstDevice + device;
  size_t segments = 0;
  auto append = [&](std::initializer_list<float *> buffers) {
    words.push_back({.count = 0});
    for (float *buffer : buffers)
      words.push_back({.buffer = buffer});
  };
  for (uint32_t r = 0; r < program.allReduces.size(); ++r) {
    Chunks chunks(program, r);
    if (parts_.addsByCommunicator) { // a partial sum without rows is set to 0 + 0, from the zeros in staging
      float *zeros = program.staging[static_cast<size_t>(device)];
      append({zeros, zeros, chunks.partial(number)});
      side.sums.push_back({r, segments++, {{number, number}}, chunks.elements()});
      continue;
    }
    int64_t size = chunks.size(number);
    if (size == 0)
      continue;
    std::vector<size_t> level(static_cast<size_t>(devices)); // number of levels of sums below a node
    std::vector<SumLaunch> launches;
    for (const TreeSum &sum : program.tree->sums[static_cast<size_t>(devices)]) {
      auto left = static_cast<size_t>(sum.left), right = static_cast<size_t>(sum.right);
      size_t at = std::max(level[left], level[right]);
      level[left] = at + 1;
      if (launches.size() <= at)
        launches.resize(at + 1);
      launches[at].pairs.push_back(sum);
    }
    for (SumLaunch &launch : launches) {
      launch.collective = r;
      launch.elements = size;
      launch.segment = segments;
      segments += launch.pairs.size();
      for (const TreeSum &sum : launch.pairs)
        append({chunks.node(number, sum.left), chunks.node(number, sum.right), chunks.node(number, sum.left)});
      side.sums.push_back(std::move(launch));
    }
  }
}

// Appends the words of a launch's segments. The segments of a head have the buffers of its tails too.
static void appendSegments(const DeviceProgram &bound, size_t index, std::vector<mt_gpu_word> &words) {
  auto append = [&](const BoundSegment &segment) {
    for (uint32_t i = 0; i < segment.bufferCount; ++i)
      words.push_back({.buffer = segment.buffers[i]});
  };
  const BoundStep &step = bound.steps[index];
  for (uint32_t s = 0; s < step.segmentCount; ++s) {
    words.push_back({.count = step.segments[s].count});
    append(step.segments[s]);
    for (size_t tail = index + 1; tail < bound.steps.size() && bound.steps[tail].isTail; ++tail)
      append(*bound.steps[tail].segments);
  }
}

Status CapturedProgram::layOutDevice(const BoundProgram &program, int device) {
  const DeviceProgram &bound = program.devices[static_cast<size_t>(device)];
  Side &side = sides_[static_cast<size_t>(device)];
  std::vector<mt_gpu_word> words;
  planSums(program, device, words);
  uint64_t sumBytes = words.size() * sizeof(mt_gpu_word);
  side.stepBytes = paramsBytes + sumBytes;
  for (size_t i = 0; i < bound.steps.size(); ++i) {
    side.segments.push_back(paramsBytes + words.size() * sizeof(mt_gpu_word));
    if (bound.steps[i].kernel)
      appendSegments(bound, i, words);
  }
  uint64_t bytes = paramsBytes + words.size() * sizeof(mt_gpu_word);
  void *place = nullptr;
  if (Status status = group_.allocate(device, bytes, &place); !status.ok())
    return status;
  if (Status status = pinned(side.stepBytes, &side.step); !status.ok())
    return status;
  side.tables = static_cast<std::byte *>(place);
  std::vector<std::byte> table(bytes);
  if (!words.empty())
    std::memcpy(table.data() + paramsBytes, words.data(), words.size() * sizeof(mt_gpu_word));
  std::memcpy(side.step + paramsBytes, table.data() + paramsBytes, sumBytes);
  group_.copyIn(device, side.tables, table.data(), bytes);
  return group_.health();
}

// Allocates the memory of library calls in the device's block.
Status CapturedProgram::layOutCalls(const BoundProgram &program, int device) {
  auto allocate = [&](uint64_t bytes, std::byte **place) {
    void *memory = nullptr;
    Status status = group_.allocate(device, bytes, &memory);
    *place = static_cast<std::byte *>(memory);
    return status;
  };
  auto copy = [&](std::byte *to, const void *from, uint64_t bytes) { group_.copyIn(device, to, from, bytes); };
  const DeviceProgram &bound = program.devices[static_cast<size_t>(device)];
  if (Status status =
          parts_.libraries->layOut(device, bound, {allocate, copy}, sides_[static_cast<size_t>(device)].calls);
      !status.ok())
    return status;
  // Run each call once without rows, so that the library loads code and allocates memory before the graph is recorded.
  Stream stream = group_.device(device).stream;
  bool any = false;
  for (size_t i = 0; i < bound.steps.size(); ++i)
    if (bound.steps[i].kernel && parts_.libraries->has(bound.steps[i])) {
      any = true;
      if (!perform(bound, device, bound.steps[i], i, stream, false))
        return error_;
    }
  if (any && !good(driver_.streamSynchronize(stream), device, "cannot try its library calls"))
    return error_;
  return group_.health();
}

void CapturedProgram::setInputs(const BoundProgram &program, const StepArguments &arguments) {
  bool changed = arguments.n != n_ || arguments.seed != seed_;
  bool same = arguments.unchanged && arguments.n == n_ &&
              std::equal(tensors_.begin(), tensors_.end(),
                         arguments.tensors); // the same tensors as in the last call for this slot
  n_ = arguments.n;
  seed_ = arguments.seed;
  std::copy_n(arguments.tensors, tensors_.size(), tensors_.begin());
  int active = program.activeDevices(n_);
  for (size_t d = 0; d < sides_.size(); ++d) {
    const DeviceProgram &bound = program.devices[d];
    Side &side = sides_[d];
    side.stepChanged |= changed;
    auto *params = reinterpret_cast<mt_kernel_params *>(side.step);
    *params = {std::clamp<int64_t>(n_ - bound.firstRow, 0, bound.maxRows),
               bound.firstRow,
               n_,
               0,
               seed_,
               group_.device(static_cast<int>(d)).partials,
               nullptr,
               0};
    auto *words = reinterpret_cast<mt_gpu_word *>(side.step + paramsBytes);
    for (const SumLaunch &sum : side.sums)
      for (size_t i = 0; i < sum.pairs.size(); ++i) // a node without rows is not added, or is set to 0
        words[(sum.segment + i) * sumWords].count =
            (sum.pairs[i].right < active) != parts_.addsByCommunicator ? sum.elements : 0;
    side.tensorsChanged = !same && params->rows > 0;
  }
}

// Copies rows to the device in parts: each part is sent when the host has copied it, while the host copies the next.
bool CapturedProgram::copyInputs(const BoundProgram &program, int device) {
  constexpr uint64_t minPart = 256 << 10; // each copy takes microseconds, whatever its size
  Side &side = sides_[static_cast<size_t>(device)];
  Stream stream = group_.device(device).inputs;
  auto send = [&](std::byte *to, const std::byte *from, uint64_t bytes) {
    return group_.check(
        driver_.memcpyAsync(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream), device,
        "cannot copy a step's inputs");
  };
  if (side.stepChanged && !send(side.tables, side.step, side.stepBytes))
    return false;
  side.stepChanged = false;
  if (!side.tensorsChanged)
    return true;
  auto rows = static_cast<uint64_t>(reinterpret_cast<const mt_kernel_params *>(side.step)->rows);
  auto firstRow = static_cast<uint64_t>(program.devices[static_cast<size_t>(device)].firstRow);
  // address of the first input on the device; the others follow in the same order as on the host
  std::byte *to = nullptr;
  pieces_.clear();
  for (size_t i = 0; i < side.staged.size(); ++i) {
    if (!side.staged[i] || program.signature[i].output)
      continue;
    to = to ? to : side.tensors[i];
    uint64_t rowBytes = program.signature[i].rowBytes;
    HostCopies::cut(
        {side.staged[i], static_cast<const std::byte *>(tensors_[i]) + firstRow * rowBytes, rows * rowBytes}, pieces_);
  }
  uint64_t sent = 0;
  return parts_.copies.run(pieces_, [&](size_t count) {
    const HostCopy &last = pieces_[count - 1];
    const std::byte *begin = pieces_.front().to;
    uint64_t end = static_cast<uint64_t>(last.to - begin) + last.bytes, from = sent;
    if (end - sent < minPart && count < pieces_.size())
      return true;
    sent = end;
    return send(to + from, begin + from, end - from);
  });
}

void CapturedProgram::takeOutputs(const BoundProgram &program, std::byte *readBacks) const {
  for (size_t d = 0; d < sides_.size(); ++d) {
    const Side &side = sides_[d];
    int64_t rows = reinterpret_cast<const mt_kernel_params *>(side.step)->rows;
    for (size_t i = 0; i < side.staged.size() && rows > 0; ++i)
      if (side.staged[i] && program.signature[i].output)
        std::memcpy(static_cast<std::byte *>(const_cast<void *>(tensors_[i])) +
                        static_cast<uint64_t>(program.devices[d].firstRow) * program.signature[i].rowBytes,
                    side.staged[i], static_cast<uint64_t>(rows) * program.signature[i].rowBytes);
  }
  for (size_t i = 0; i < resultOf_.size(); ++i) {
    std::memcpy(readBacks, resultOf_[i], program.readBacks[i].bytes);
    readBacks += program.readBacks[i].bytes;
  }
}

uint64_t CapturedProgram::launches(const BoundProgram &program) const {
  uint64_t sum = 0;
  for (size_t d = 0; d < sides_.size(); ++d) {
    int64_t rows = reinterpret_cast<const mt_kernel_params *>(sides_[d].step)->rows;
    for (const BoundStep &step : program.devices[d].steps)
      sum += step.kernel && !step.isTail && (!step.usesRows || rows > 0);
  }
  return sum;
}

} // namespace mtrun::cuda
