// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ProcessExchange.h"

#include "runtime/device/Collectives.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mtrun {
namespace {

constexpr size_t mostPosted = 4096; // all-reduces of a program for which no memory is allocated in a run

// A part of a variable that a program writes before its last all-reduce has ended.
struct Early {
  std::byte *memory;
  uint64_t bytes;
};

class PreparedOrder : public PreparedProgram {
public:
  std::vector<ExchangeOrder> orders;
  size_t posted() const { return orders.back().posted; }
  std::vector<Early> early;
  std::vector<std::byte> before; // the values of `early` before the run

  void save() {
    std::byte *to = before.data();
    for (const Early &each : early)
      to = std::copy_n(each.memory, each.bytes, to);
  }
  void undo() const {
    const std::byte *from = before.data();
    for (const Early &each : early) {
      std::copy_n(from, each.bytes, each.memory);
      from += each.bytes;
    }
  }
};

PreparedOrder &preparedOf(const BoundProgram &program) { return static_cast<PreparedOrder &>(*program.prepared); }

// Adds the parts of variables that a step writes.
void addWritten(const DeviceProgram &device, const BoundStep &step, std::vector<Early> &early) {
  for (const BoundSegment &segment : std::span(step.segments, step.segmentCount))
    for (void *const *buffer = segment.buffers; buffer != segment.buffers + segment.bufferCount; ++buffer)
      if (auto place = static_cast<size_t>(buffer - device.pointers.data()); device.written[place])
        early.push_back({static_cast<std::byte *>(*buffer), device.sizes[place]});
}

// In micro-batches a phase writes variables before the all-reduces of a later phase.
std::vector<uint32_t> earlyInOrder(const DeviceProgram &device) {
  std::vector<uint32_t> early, writers;
  for (uint32_t i = 0; i < device.steps.size(); ++i) {
    if (!device.steps[i].kernel)
      early = writers;
    if (device.steps[i].writes)
      writers.push_back(i);
  }
  return early;
}

Range rangeOf(const void *memory, uint64_t bytes) {
  auto begin = reinterpret_cast<uint64_t>(memory);
  return {begin, begin + bytes};
}

// Returns the memory that a step accesses, except for the caller's tensors, which no all-reduce accesses.
std::vector<Range> rangesOf(const BoundProgram &program, const BoundStep &step) {
  const DeviceProgram &device = program.devices[0];
  std::vector<Range> ranges;
  if (step.gathers) {
    for (const BoundPart &part : program.gathers[step.allReduce])
      ranges.push_back(rangeOf(part.memory[0], static_cast<uint64_t>(part.parts.back()) * part.elementBytes));
    return ranges;
  }
  if (!step.kernel) {
    const BoundAllReduce &reduce = program.allReduces[step.allReduce];
    uint64_t bytes = static_cast<uint64_t>(reduce.elements) * sizeof(float);
    return {rangeOf(reduce.partials[0], bytes), rangeOf(reduce.results[0], bytes)};
  }
  for (const BoundSegment &segment : std::span(step.segments, step.segmentCount))
    for (void *const *buffer = segment.buffers; buffer != segment.buffers + segment.bufferCount; ++buffer)
      if (*buffer)
        ranges.push_back(rangeOf(*buffer, device.sizes[static_cast<size_t>(buffer - device.pointers.data())]));
  return ranges;
}

} // namespace

HostCommunicator::Watch watchOf(ProcessGroup &group) {
  HostCommunicator::Watch watch;
  // The group names the process that the others wait for, so its message comes first.
  watch.timeout = group.timeout() + 3;
  watch.check = [&group] { return group.check(); };
  watch.lose = [&group](std::string message) { return group.lose(std::move(message)); };
  watch.title = [&group](int process) { return group.title(process); };
  return watch;
}

ProcessExchange::ProcessExchange(Transport &transport, ProcessGroup &group, const ExchangePlaces &places, bool scatters)
    : group_(group), places_(places), scatters_(scatters), communicator_(transport, watchOf(group), places) {}

void ProcessExchange::measure(const Plan &plan) {
  for (const mt::plan::Program *program : Each(plan.tables().programs()))
    for (const mt::plan::Step *step : Each(program->steps()))
      if (step->kernel() < 0) {
        auto elements = static_cast<int64_t>(step->partial_bytes() / sizeof(float));
        int64_t staging = HostCommunicator::stagingElements(elements, places_);
        if (scatters_)
          staging = std::max(staging, HostCommunicator::scatterStagingElements(elements, group_.processes()));
        stagingElements_ = std::max(stagingElements_, staging);
      }
}

Status ProcessExchange::prepare(BoundProgram &program) {
  auto prepared = std::make_unique<PreparedOrder>();
  const DeviceProgram &device = program.devices[0];
  // After the loss of a process its part of the optimizer is lost too, so that the others need not keep a whole step.
  bool commits = program.gathers.empty();
  auto ranges = [&](const BoundStep &step) { return rangesOf(program, step); };
  std::vector<uint32_t> early;
  if (device.phases.empty()) {
    prepared->orders.push_back(overlapExchanges(device, ranges, commits));
    early = prepared->orders[0].early;
  } else if (commits) {
    early = earlyInOrder(device);
  }
  for (const BoundPhase &phase : device.phases)
    prepared->orders.push_back(
        overlapExchanges(device, phase, ranges, commits, prepared->orders.empty() ? 0 : prepared->posted()));
  size_t bytes = 0;
  for (uint32_t step : early)
    addWritten(device, device.steps[step], prepared->early);
  for (const Early &each : prepared->early)
    bytes += each.bytes;
  prepared->before.resize(bytes);
  bool posts = prepared->posted() > 0;
  program.prepared = std::move(prepared);
  if (!posts || threadStarted_)
    return {};
  threadStarted_ = true;
  return thread_.start([this](uint32_t allReduce) { run(allReduce); }, mostPosted);
}

const std::vector<ExchangeOrder> &ProcessExchange::orders(const BoundProgram &program) {
  return preparedOf(program).orders;
}

void ProcessExchange::begin(const BoundProgram &program, int64_t samples) {
  group_.begin();
  if (status_.ok())
    status_ = group_.check();
  if (!status_.ok())
    failed_ = true;
  preparedOf(program).save();
  program_ = &program;
  active_ = program.activeDevices(samples);
  receivedBefore_ = communicator_.received();
  thread_.reset();
}

void ProcessExchange::run(uint32_t number) {
  if (!status_.ok())
    return;
  group_.beginPart();
  messages_.clear();
  if (number < program_->allReduces.size()) {
    status_ = reduce(program_->allReduces[number]);
  } else {
    for (const BoundPart &part : program_->gathers[number - program_->allReduces.size()])
      addParts(part.memory[0], part.elementBytes, part.parts);
    status_ = communicator_.exchange(messages_);
  }
  if (!status_.ok())
    failed_.store(true, std::memory_order_release);
}

void ProcessExchange::addParts(std::byte *memory, uint64_t elementBytes, const Parts &parts) {
  auto own = static_cast<size_t>(group_.process());
  auto add = [&](size_t peer, size_t owner) {
    if (parts[owner] < parts[owner + 1])
      messages_.push_back({static_cast<int>(peer), owner == own,
                           memory + static_cast<uint64_t>(parts[owner]) * elementBytes,
                           static_cast<uint64_t>(parts[owner + 1] - parts[owner]) * elementBytes});
  };
  for (size_t peer = 0; peer + 1 < parts.size(); ++peer)
    if (peer != own) {
      add(peer, peer);
      add(peer, own);
    }
}

Status ProcessExchange::reduce(const BoundAllReduce &reduce) {
  const ReduceTree &tree = *program_->tree;
  auto add = [&](const float *a, const float *b, float *out, int64_t elements) {
    addPartials(tree, a, b, out, elements, 0, (elements + tree.elementsPerTile - 1) / tree.elementsPerTile);
  };
  HostCommunicator::Reduction reduction = {reduce.elements, active_, reduce.partials[0], reduce.results[0], staging_};
  const std::vector<TreeSum> &sums = tree.sums[static_cast<size_t>(active_)];
  if (!reduce.scattered)
    return communicator_.allReduce(reduction, sums, add);
  if (Status status = communicator_.reduceScatter(reduction, sums, add); !status.ok())
    return status;
  for (ElementRange range : reduce.whole) {
    Parts parts;
    for (int process = 0; process <= group_.processes(); ++process)
      parts.push_back(std::clamp(chunkBegin(reduce.elements, process, group_.processes()), range.begin, range.end));
    addParts(reinterpret_cast<std::byte *>(reduce.results[0]), sizeof(float), parts);
  }
  return messages_.empty() ? Status() : communicator_.exchange(messages_);
}

// Every process sends its rows of each output to all others.
Status ProcessExchange::gatherOutputs(const StepArguments &arguments) {
  messages_.clear();
  Parts rows;
  for (int64_t first : program_->firstRows)
    rows.push_back(std::min(first, arguments.n));
  rows.push_back(arguments.n);
  for (size_t entry = 0; entry < program_->signature.size(); ++entry)
    if (const BoundTensor &output = program_->signature[entry]; output.output)
      addParts(static_cast<std::byte *>(const_cast<void *>(arguments.tensors[entry])), output.rowBytes, rows);
  return messages_.empty() ? Status() : communicator_.exchange(messages_);
}

const Status &ProcessExchange::finish(const StepArguments &arguments) {
  thread_.wait(preparedOf(*program_).posted());
  if (!status_.ok())
    preparedOf(*program_).undo();
  else
    status_ = gatherOutputs(arguments);
  if (status_.ok())
    group_.end();
  return status_;
}

} // namespace mtrun
