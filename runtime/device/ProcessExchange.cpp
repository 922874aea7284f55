// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ProcessExchange.h"

#include "runtime/device/Collectives.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <span>

namespace mtrun {
namespace {

constexpr size_t mostPosted = 4096; // all-reduces of a program for which no memory is allocated in a run

class PreparedOrder : public PreparedProgram {
public:
  std::vector<OrderedStep> steps;
  size_t posted = 0;
};

HostCommunicator::Watch watchOf(ProcessGroup &group) {
  HostCommunicator::Watch watch;
  // The group names the process that the others wait for, so its message comes first.
  watch.timeout = group.timeout() + 3;
  watch.check = [&group] { return group.check(); };
  watch.lose = [&group](std::string message) { return group.lose(std::move(message)); };
  watch.title = [&group](int process) { return group.title(process); };
  return watch;
}

Range rangeOf(const void *memory, uint64_t bytes) {
  auto begin = reinterpret_cast<uint64_t>(memory);
  return {begin, begin + bytes};
}

// Returns the memory that a step accesses, except for the caller's tensors, which no all-reduce accesses.
std::vector<Range> rangesOf(const BoundProgram &program, const BoundStep &step) {
  const DeviceProgram &device = program.devices[0];
  std::vector<Range> ranges;
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

ProcessExchange::ProcessExchange(Transport &transport, ProcessGroup &group)
    : group_(group), communicator_(transport, watchOf(group)) {}

void ProcessExchange::measure(const Plan &plan) {
  for (const mt::plan::Program *program : Each(plan.tables().programs()))
    for (const mt::plan::Step *step : Each(program->steps()))
      if (step->kernel() < 0)
        stagingElements_ = std::max(
            stagingElements_, HostCommunicator::stagingElements(
                                  static_cast<int64_t>(step->partial_bytes() / sizeof(float)), group_.processes()));
}

Status ProcessExchange::prepare(BoundProgram &program) {
  auto prepared = std::make_unique<PreparedOrder>();
  if (program.devices[0].phases.empty())
    prepared->steps =
        overlapExchanges(program.devices[0], [&](const BoundStep &step) { return rangesOf(program, step); });
  for (const OrderedStep &step : prepared->steps)
    prepared->posted += !program.devices[0].steps[step.step].kernel && !step.inPlace;
  bool posts = prepared->posted > 0;
  program.prepared = std::move(prepared);
  if (!posts || threadStarted_)
    return {};
  threadStarted_ = true;
  return thread_.start([this](uint32_t allReduce) { run(allReduce); }, mostPosted);
}

const std::vector<OrderedStep> &ProcessExchange::order(const BoundProgram &program) {
  return static_cast<const PreparedOrder &>(*program.prepared).steps;
}

void ProcessExchange::begin(const BoundProgram &program, int64_t samples) {
  group_.begin();
  if (status_.ok())
    status_ = group_.check();
  program_ = &program;
  active_ = program.activeDevices(samples);
  receivedBefore_ = communicator_.received();
  thread_.reset();
}

void ProcessExchange::run(uint32_t index) {
  if (!status_.ok())
    return;
  group_.beginPart();
  const ReduceTree &tree = *program_->tree;
  const BoundAllReduce &reduce = program_->allReduces[index];
  auto add = [&](const float *a, const float *b, float *out, int64_t elements) {
    addPartials(tree, a, b, out, elements, 0, (elements + tree.elementsPerTile - 1) / tree.elementsPerTile);
  };
  status_ = communicator_.allReduce({reduce.elements, active_, reduce.partials[0], reduce.results[0], staging_},
                                    tree.sums[static_cast<size_t>(active_)], add);
}

const Status &ProcessExchange::finish() {
  thread_.wait(static_cast<const PreparedOrder &>(*program_->prepared).posted);
  if (status_.ok())
    group_.end();
  return status_;
}

} // namespace mtrun
