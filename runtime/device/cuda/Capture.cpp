// SPDX-License-Identifier: Apache-2.0
//
// Records the CUDA graph. Nothing here runs on a GPU: streams are in capture mode.
#include "runtime/device/cuda/Capture.h"

#include "runtime/device/cuda/Stamps.h"

#include <algorithm>
#include <array>
#include <span>

namespace mtrun::cuda {

namespace {

constexpr uint64_t firstSum = 64; // offset of the first sum's segment in the tables: after the parameters
constexpr int64_t maxBlocksX = INT32_MAX;
constexpr size_t maxBlocksY = 65535;

Range rangeOf(const void *memory, uint64_t bytes) {
  auto begin = reinterpret_cast<uint64_t>(memory);
  return {begin, begin + bytes};
}

} // namespace

bool CapturedProgram::good(Result result, int device, const char *what) {
  if (result != success && error_.ok())
    error_ = failure(driver_, result, group_.device(device).gpu->title() + ": " + what);
  return result == success;
}

bool CapturedProgram::good(Status status) {
  bool fine = status.ok();
  if (!fine && error_.ok())
    error_ = std::move(status);
  return fine;
}

size_t CapturedProgram::maxOperations(const BoundProgram &program) {
  // An all-reduce has operations of the communicator before and after the sums, at most one sum per peer, and a copy.
  size_t most = program.readBacks.size() + program.signature.size();
  for (const BoundStep &step : program.devices[0].steps)
    most += step.kernel ? 1 : 3 + static_cast<size_t>(program.sessionDevices());
  return most;
}

bool CapturedProgram::record(BoundProgram &program, Stamps *stamps) {
  stamps_ = stamps;
  int devices = static_cast<int>(program.devices.size());
  error_ = {};
  collectiveBytes_ = 0;
  overlaps_.assign(program.devices.size(), {});
  point(program);

  // Record the steps of all devices up to the next all-reduce, and then the all-reduce.
  std::vector<size_t> at(program.devices.size());
  for (bool more = true; more;) {
    more = false;
    for (int d = 0; d < devices; ++d) {
      const DeviceProgram &bound = program.devices[static_cast<size_t>(d)];
      size_t &step = at[static_cast<size_t>(d)];
      if (!group_.makeCurrent(d))
        return false;
      while (step < bound.steps.size() && bound.steps[step].kernel) {
        size_t first = step++;
        while (step < bound.steps.size() && bound.steps[step].kernel && !bound.steps[step].waits)
          ++step;
        if (!recordSteps(bound, d, first, step))
          return false;
      }
      more |= step < bound.steps.size();
    }
    if (more && stamps_)
      stamps_->enter(program.devices[0].steps[at[0]].index, true);
    if (more && !recordAllReduce(program, program.devices[0].steps[at[0]].allReduce))
      return false;
    for (size_t &step : at)
      step += more;
  }

  if (stamps_)
    stamps_->enterCopies();
  for (int d = 0; d < devices; ++d)
    if (!group_.makeCurrent(d) || !computeAfterCommunication(d, overlaps_[static_cast<size_t>(d)].links() - 1) ||
        !recordOutputs(program, d))
      return false;
  return true;
}

bool CapturedProgram::copy(int device, Stream stream, void *to, const void *from, uint64_t bytes) {
  const char *what = "cannot record a copy";
  if (bytes == 0)
    return true;
  return (!stamps_ || good(stamps_->before(device, stream == group_.device(device).links, true), device, what)) &&
         good(driver_.memcpyAsync(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream),
              device, what) &&
         (!stamps_ || good(stamps_->after(device), device, what));
}

// Makes `to` wait for the operations on `from`.
bool CapturedProgram::follow(int device, Stream from, Stream to) {
  const CudaDevice &on = group_.device(device);
  return good(driver_.eventRecord(on.event, from), device, "cannot record a wait") &&
         good(driver_.streamWaitEvent(to, on.event, 0), device, "cannot record a wait");
}

bool CapturedProgram::mark(int device, int index) {
  const CudaDevice &on = group_.device(device);
  return good(driver_.eventRecord(on.reached[static_cast<size_t>(index)], on.links), device, "cannot record a wait");
}

bool CapturedProgram::computeAfterCommunication(int device, int index) {
  const CudaDevice &on = group_.device(device);
  return index < 0 || good(driver_.streamWaitEvent(on.stream, on.reached[static_cast<size_t>(index)], 0), device,
                           "cannot record a wait");
}

bool CapturedProgram::recordOutputs(const BoundProgram &program, int device) {
  const Side &side = sides_[static_cast<size_t>(device)];
  auto rows = static_cast<uint64_t>(program.devices[static_cast<size_t>(device)].maxRows);
  Stream stream = group_.device(device).stream;
  for (size_t i = 0; i < side.tensors.size(); ++i)
    if (side.tensors[i] && program.signature[i].output &&
        !copy(device, stream, side.staged[i], side.tensors[i], rows * program.signature[i].rowBytes))
      return false;
  for (const ResultCopy &result : results_)
    if (device == 0 && !copy(0, stream, result.host, result.device, result.bytes))
      return false;
  return true;
}

bool CapturedProgram::launch(int device, Stream stream, KernelHandle kernel, int64_t tiles, size_t segments,
                             uint32_t threads, std::byte *table) {
  if (tiles == 0 || segments == 0)
    return true;
  if (tiles > maxBlocksX || segments > maxBlocksY) {
    error_ = {MT_DEVICE, "expected a grid of at most " + std::to_string(maxBlocksX) + " x " +
                             std::to_string(maxBlocksY) + " blocks, found " + std::to_string(tiles) + " x " +
                             std::to_string(segments)};
    return false;
  }
  const std::byte *params = sides_[static_cast<size_t>(device)].tables;
  void *arguments[] = {&params, &table};
  const LoadedKernel &loaded = group_.loaded(device, kernel);
  const char *what = "cannot record a kernel";
  return (!stamps_ || good(stamps_->before(device, stream == group_.device(device).links, false), device, what)) &&
         good(driver_.launchKernel(loaded.function, static_cast<unsigned>(tiles), static_cast<unsigned>(segments), 1,
                                   threads, 1, 1, loaded.sharedBytes, stream, arguments, nullptr),
              device, what) &&
         (!stamps_ || good(stamps_->after(device), device, what));
}

bool CapturedProgram::perform(const DeviceProgram &bound, int device, const BoundStep &step, size_t index,
                              Stream stream, bool ownCode) {
  const Side &side = sides_[static_cast<size_t>(device)];
  if (!ownCode) {
    const char *what = "cannot record a library call";
    return (!stamps_ || good(stamps_->before(device, false, false), device, what)) &&
           good(parts_.libraries->enqueue(device, *group_.device(device).gpu, bound, step, side.tables,
                                          side.calls[index], stream)) &&
           (!stamps_ || good(stamps_->after(device), device, what));
  }
  int64_t tiles = 0;
  for (uint32_t s = 0; step.elementwise && s < step.segmentCount; ++s)
    tiles = std::max(tiles, step.segments[s].tiles);
  if (!step.elementwise)
    tiles = (step.rowsPerTile ? (bound.maxRows + step.rowsPerTile - 1) / step.rowsPerTile : 1) * step.innerTiles;
  if (index + 1 < bound.steps.size() && bound.steps[index + 1].isTail) // the first block may have numbers to compute
    tiles = std::max<int64_t>(tiles, 1);
  return launch(device, stream, step.kernel, tiles, step.segmentCount, step.threads,
                side.tables + side.segments[index]);
}

// Chooses the stream of each step. The compute stream then waits for the operations on `links` that these steps need.
std::vector<Overlap::Place> CapturedProgram::place(const DeviceProgram &bound, int device, size_t first, size_t end) {
  Overlap &overlap = overlaps_[static_cast<size_t>(device)];
  std::vector<Overlap::Place> places;
  auto touch = [&](const BoundStep &step) {
    for (const BoundSegment &segment : std::span(step.segments, step.segmentCount))
      for (void *const *buffer = segment.buffers; buffer != segment.buffers + segment.bufferCount; ++buffer)
        touched_.push_back(rangeOf(*buffer, bound.sizes[static_cast<size_t>(buffer - bound.pointers.data())]));
  };
  for (size_t index = first; index < end; ++index) {
    const BoundStep &step = bound.steps[index];
    if (step.isTail) { // its head was placed with it
      places.push_back({false, -1});
      continue;
    }
    touched_.clear();
    touch(step);
    bool isUpdate = step.isUpdate;
    for (size_t tail = index + 1; tail < end && bound.steps[tail].isTail; ++tail) {
      touch(bound.steps[tail]);
      isUpdate &= bound.steps[tail].isUpdate;
    }
    Overlap::Place place = overlap.launch(touched_, isUpdate);
    if (place.onCommunication)
      place.after = overlap.links() - 1; // the index of this operation on `links`
    else if (!computeAfterCommunication(device, place.after))
      return {};
    places.push_back(place);
  }
  return places;
}

// The code of a head computes its tails, but a library call in its place does not. Then the first tail is a launch
// after the call, on its stream, and computes the next one.
bool CapturedProgram::isLaunched(const DeviceProgram &bound, size_t index) const {
  return !bound.steps[index].isTail ||
         (!bound.steps[index - 1].isTail && parts_.libraries->has(bound.steps[index - 1]));
}

bool CapturedProgram::recordStep(const DeviceProgram &bound, int device, size_t index, Stream stream) {
  const BoundStep &step = bound.steps[index];
  if (stamps_)
    stamps_->enter(step.index, false);
  // Updates are never library calls.
  bool isCall = stream != group_.device(device).links && parts_.libraries->has(step);
  return perform(bound, device, step, index, stream, !isCall);
}

// Records steps that do not wait for each other. Steps that share memory for partial sums or the workspace of library
// calls stay on one stream. The other steps run concurrently on a second stream, except if their times are measured.
bool CapturedProgram::recordSteps(const DeviceProgram &bound, int device, size_t first, size_t end) {
  const CudaDevice &on = group_.device(device);
  std::vector<Overlap::Place> places = place(bound, device, first, end);
  if (places.empty())
    return false;
  auto isIndependent = [&](size_t index) {
    const BoundStep &step = bound.steps[index];
    return index > first && !step.isTail && !stamps_ && !step.hasPartials && !places[index - first].onCommunication &&
           !parts_.libraries->has(step);
  };
  bool forks = false;
  for (size_t index = first; index < end; ++index)
    forks |= isIndependent(index);
  if (forks && !follow(device, on.stream, on.independent))
    return false;
  for (size_t index = first; index < end; ++index)
    if (isLaunched(bound, index) && !places[index - first].onCommunication &&
        !recordStep(bound, device, index, isIndependent(index) ? on.independent : on.stream))
      return false;
  if (forks && !follow(device, on.independent, on.stream))
    return false;
  for (size_t index = first; index < end; ++index)
    if (places[index - first].onCommunication &&
        !(communicationAfterCompute(device) && recordStep(bound, device, index, on.links) &&
          mark(device, places[index - first].after)))
      return false;
  return true;
}

// Records one launch per level of the tree. A sum overwrites its left operand; the last sum is stored where peers read
// it.
bool CapturedProgram::sum(const BoundProgram &program, uint32_t index, int device) {
  Chunks chunks(program, index);
  int number = program.firstDevice + device;
  bool inTree = !parts_.addsByCommunicator;
  if (inTree && chunks.size(number) == 0)
    return true;
  if (!group_.makeCurrent(device))
    return false;
  Stream links = group_.device(device).links;
  // Changes the byte with the exponent, which rounding cannot hide.
  if (inTree && static_cast<int>(index) == parts_.corruptCollective && number != parts_.corruptDevice &&
      !good(driver_.memsetD8Async(reinterpret_cast<Address>(chunks.node(number, parts_.corruptDevice)) + 3, 0x55, 1,
                                  links),
            device, "cannot record a copy"))
    return false;
  Side &side = sides_[static_cast<size_t>(device)];
  const ReduceTree &tree = *program.tree;
  for (const SumLaunch &sum : side.sums)
    if (sum.collective == index &&
        !launch(device, links, tree.sum, (sum.elements + tree.elementsPerTile - 1) / tree.elementsPerTile,
                sum.pairs.size(), tree.threads, side.tables + firstSum + sum.segment * sumWords * sizeof(mt_gpu_word)))
      return false;
  return !inTree || copy(device, links, chunks.result(number) + chunks.begin(number), chunks.node(number, 0),
                         chunks.bytes(number));
}

// Records the times of the operations on the `links` of all devices as one operation each, including its waits.
bool CapturedProgram::stampCommunication(bool begins) {
  for (int d = 0; stamps_ && d < static_cast<int>(sides_.size()); ++d)
    if (!group_.makeCurrent(d) ||
        !good(begins ? stamps_->before(d, true, true) : stamps_->after(d), d, "cannot record an all-reduce"))
      return false;
  return true;
}

bool CapturedProgram::recordAllReduce(const BoundProgram &program, uint32_t index) {
  Chunks chunks(program, index);
  int devices = static_cast<int>(program.devices.size());
  for (int d = 0; d < devices; ++d)
    if (!group_.makeCurrent(d) || !communicationAfterCompute(d))
      return false;
  bool inTree = !parts_.addsByCommunicator;
  if (inTree &&
      (!stampCommunication(true) || !good(parts_.communicator->gatherPartials(chunks)) || !stampCommunication(false)))
    return false;
  for (int d = 0; d < devices; ++d)
    if (!sum(program, index, d))
      return false;
  if (!stampCommunication(true) ||
      !good(inTree ? parts_.communicator->spreadResults(chunks) : parts_.communicator->allReduce(chunks)) ||
      !stampCommunication(false))
    return false;
  const BoundAllReduce &reduce = program.allReduces[index];
  uint64_t bytes = static_cast<uint64_t>(reduce.elements) * sizeof(float);
  for (int d = 0; d < devices; ++d) {
    auto device = static_cast<size_t>(d);
    uint64_t own = chunks.bytes(program.firstDevice + d);
    collectiveBytes_ += own * static_cast<uint64_t>(chunks.devices() - 1) + (bytes - own);
    overlaps_[device].allReduce(
        std::array{rangeOf(reduce.partials[device], bytes), rangeOf(reduce.results[device], bytes)});
    if (!group_.makeCurrent(d) || !mark(d, overlaps_[device].links() - 1))
      return false;
  }
  return true;
}

} // namespace mtrun::cuda
