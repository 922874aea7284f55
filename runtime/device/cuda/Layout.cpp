// SPDX-License-Identifier: Apache-2.0
//
// Where a program's tensors and tables lie, on each device and on the host's side.
#include "runtime/abi/gpu_kernel.h"
#include "runtime/device/cuda/Capture.h"
#include "runtime/device/cuda/Links.h"
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

uint64_t tableBytes(const mt::plan::Program &program, int devices) {
  uint64_t pairs = static_cast<uint64_t>(devices - 1), bytes = paramsBytes;
  for (uint32_t i = 0; i < count(program.steps()); ++i) {
    const auto *segments = program.steps()->Get(i)->segments();
    if (program.steps()->Get(i)->kernel() < 0)
      bytes += pairs * (sizeof(mt_gpu_segment) + 3 * sizeof(void *));
    for (uint32_t s = 0; s < count(segments); ++s)
      bytes += sizeof(mt_gpu_segment) + count(segments->Get(s)->buffers()) * sizeof(void *);
  }
  return bytes;
}

CapturedProgram::~CapturedProgram() {
  (void)group_.makeCurrent(0);
  if (exec_)
    (void)driver_.graphExecDestroy(exec_);
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

Status CapturedProgram::layOut(BoundProgram &program) {
  sides_.resize(program.devices.size());
  for (size_t d = 0; d < program.devices.size(); ++d) {
    if (!group_.makeCurrent(static_cast<int>(d)))
      return group_.health();
    if (Status status = layOutTensors(program, static_cast<int>(d)); !status.ok())
      return status;
    if (Status status = layOutDevice(program, static_cast<int>(d)); !status.ok())
      return status;
  }
  uint64_t bytes = 0;
  for (const ReadBack &back : program.readBacks)
    bytes += back.bytes;
  if (Status status = pinned(bytes, &readBacks_); !status.ok())
    return status;
  bytes = 0;
  for (ReadBack &back : program.readBacks) {
    back.host = readBacks_ + bytes;
    bytes += back.bytes;
  }
  return group_.health();
}

// Only those that a step names: an input that no kernel reads is never copied.
Status CapturedProgram::layOutTensors(BoundProgram &program, int device) {
  DeviceProgram &bound = program.devices[static_cast<size_t>(device)];
  Side &side = sides_[static_cast<size_t>(device)];
  side.tensors.assign(program.signature.size(), nullptr);
  side.staged.assign(program.signature.size(), nullptr);
  std::vector<uint64_t> places(program.signature.size());
  uint64_t bytes = 0;
  for (const SignaturePatch &patch : bound.patches)
    places[patch.entry] = 1;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i]) {
      places[i] = bytes;
      side.tensors[i] = reinterpret_cast<std::byte *>(uintptr_t{1}); // used; its address follows
      bytes += aligned(program.signature[i].rowBytes * static_cast<uint64_t>(bound.maxRows));
    }
  if (bytes == 0)
    return {};
  std::byte *onDevice = nullptr, *onHost = nullptr;
  if (Status status = group_.scratch(device, bytes, &onDevice); !status.ok())
    return status;
  if (Status status = pinned(bytes, &onHost); !status.ok())
    return status;
  for (size_t i = 0; i < places.size(); ++i)
    if (side.tensors[i]) {
      side.tensors[i] = onDevice + places[i];
      side.staged[i] = onHost + places[i];
    }
  for (const SignaturePatch &patch : bound.patches)
    *patch.slot = side.tensors[patch.entry];
  return {};
}

// The tree's sums of the device's chunk of every all-reduce: those at one level are one launch, a segment each. Sums
// are stored over their left operand; three pointers each.
void CapturedProgram::planSums(const BoundProgram &program, int device, std::vector<void *> &pointers) {
  Side &side = sides_[static_cast<size_t>(device)];
  int devices = program.sessionDevices(), number = program.firstDevice + device;
  size_t segments = 0;
  for (uint32_t r = 0; r < program.allReduces.size(); ++r) {
    Chunks chunks(program, r);
    int64_t size = chunks.size(number);
    if (size == 0)
      continue;
    std::vector<size_t> level(static_cast<size_t>(devices)); // sums below a node
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
        for (int node : {sum.left, sum.right, sum.left})
          pointers.push_back(chunks.node(number, node));
      side.sums.push_back(std::move(launch));
    }
  }
}

Status CapturedProgram::layOutDevice(BoundProgram &program, int device) {
  const DeviceProgram &bound = program.devices[static_cast<size_t>(device)];
  Side &side = sides_[static_cast<size_t>(device)];
  std::vector<void *> pointers;
  planSums(program, device, pointers);
  size_t sums = pointers.size() / 3;
  pointers.insert(pointers.begin(), bound.pointers.begin(), bound.pointers.end());

  side.stepBytes = paramsBytes + sums * sizeof(mt_gpu_segment);
  uint64_t pointersAt = side.stepBytes + bound.segments.size() * sizeof(mt_gpu_segment);
  uint64_t bytes = pointersAt + pointers.size() * sizeof(void *);
  void *place = nullptr;
  if (Status status = group_.allocate(device, bytes, &place); !status.ok())
    return status;
  if (Status status = pinned(side.stepBytes, &side.step); !status.ok())
    return status;
  side.tables = static_cast<std::byte *>(place);
  auto *onDevice = reinterpret_cast<void *const *>(side.tables + pointersAt);

  std::vector<mt_gpu_segment> segments;
  for (size_t s = 0; s < sums; ++s)
    segments.push_back({onDevice + bound.pointers.size() + 3 * s, 0});
  if (sums)
    std::memcpy(side.step + paramsBytes, segments.data(), sums * sizeof(mt_gpu_segment));
  for (const BoundSegment &segment : bound.segments)
    segments.push_back({onDevice + (segment.buffers - bound.pointers.data()), segment.count});
  for (const BoundStep &step : bound.steps)
    side.segments.push_back(step.kernel
                                ? side.stepBytes + static_cast<uint64_t>(step.segments - bound.segments.data()) *
                                                       sizeof(mt_gpu_segment)
                                : 0);
  std::vector<std::byte> table(bytes);
  if (!segments.empty())
    std::memcpy(table.data() + paramsBytes, segments.data(), segments.size() * sizeof(mt_gpu_segment));
  if (!pointers.empty())
    std::memcpy(table.data() + pointersAt, pointers.data(), pointers.size() * sizeof(void *));
  group_.copyIn(device, side.tables, table.data(), bytes);
  return group_.health();
}

void CapturedProgram::setInputs(const BoundProgram &program, const StepArguments &arguments) {
  int active = program.activeDevices(arguments.n);
  for (size_t d = 0; d < sides_.size(); ++d) {
    const DeviceProgram &bound = program.devices[d];
    Side &side = sides_[d];
    auto *params = reinterpret_cast<mt_kernel_params *>(side.step);
    *params = {std::clamp<int64_t>(arguments.n - bound.firstRow, 0, bound.maxRows), bound.firstRow, arguments.n, 0,
               arguments.seed};
    auto *segments = reinterpret_cast<mt_gpu_segment *>(side.step + paramsBytes);
    for (const SumLaunch &sum : side.sums)
      for (size_t i = 0; i < sum.pairs.size(); ++i) // a node without rows is not added
        segments[sum.segment + i].count = sum.pairs[i].right < active ? sum.elements : 0;
    for (size_t i = 0; i < side.staged.size() && params->rows > 0; ++i)
      if (side.staged[i] && !program.signature[i].output)
        std::memcpy(side.staged[i],
                    static_cast<const std::byte *>(arguments.tensors[i]) +
                        static_cast<uint64_t>(bound.firstRow) * program.signature[i].rowBytes,
                    static_cast<uint64_t>(params->rows) * program.signature[i].rowBytes);
  }
}

void CapturedProgram::takeOutputs(const BoundProgram &program, const StepArguments &arguments) const {
  for (size_t d = 0; d < sides_.size(); ++d) {
    const Side &side = sides_[d];
    int64_t rows = reinterpret_cast<const mt_kernel_params *>(side.step)->rows;
    for (size_t i = 0; i < side.staged.size() && rows > 0; ++i)
      if (side.staged[i] && program.signature[i].output)
        std::memcpy(static_cast<std::byte *>(const_cast<void *>(arguments.tensors[i])) +
                        static_cast<uint64_t>(program.devices[d].firstRow) * program.signature[i].rowBytes,
                    side.staged[i], static_cast<uint64_t>(rows) * program.signature[i].rowBytes);
  }
}

uint64_t CapturedProgram::launches(const BoundProgram &program) const {
  uint64_t sum = 0;
  for (size_t d = 0; d < sides_.size(); ++d) {
    int64_t rows = reinterpret_cast<const mt_kernel_params *>(sides_[d].step)->rows;
    for (const BoundStep &step : program.devices[d].steps)
      sum += step.kernel && (!step.usesRows || rows > 0);
  }
  return sum;
}

} // namespace mtrun::cuda
