// SPDX-License-Identifier: Apache-2.0
//
// Splits a program into phases. A step (entry of the program) that accesses the arena or the caller's tensors runs once
// per micro-batch: a repeated step. Any other step and each all-reduce runs once, in order: an event. A phase ends
// where a repeated step reads data that an event wrote. Values in the arena do not outlive their micro-batch, so each
// phase contains all steps that its partial sums and outputs depend on; a step that several phases need runs in each.
#include "runtime/support/phases.h"

#include <algorithm>
#include <string>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

// Memory spaces: the arena, the shared block, then one space per variable.
constexpr uint32_t arena = 0, shared = 1, firstVariable = 2;

struct Range {
  uint32_t memory;
  uint64_t begin, end;
  bool overlaps(const Range &other) const { return memory == other.memory && begin < other.end && other.begin < end; }
};

struct Access {
  uint32_t step;
  Range bytes;
};

struct StepNode {
  bool repeated = false; // false: an event
  bool output = false;   // the step writes rows of the caller's tensors
  std::vector<Range> reads, writes;
  std::vector<uint32_t> producers; // repeated steps whose results this step reads
  std::vector<uint32_t> events;    // for a repeated step: events whose results it reads
  std::vector<uint32_t> readers;   // for an event: earlier repeated steps that read bytes that the event overwrites
  uint32_t phase = 0;              // the phase of an event; the earliest phase of a repeated step
  std::vector<uint32_t> phases;    // the phases of a repeated step, ascending
};

template <typename Vector> uint32_t count(const Vector *vector) { return vector ? vector->size() : 0; }

void insert(std::vector<uint32_t> &sorted, uint32_t value) {
  auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (at == sorted.end() || *at != value)
    sorted.insert(at, value);
}

class Phases {
public:
  Phases(const fb::Plan &plan, const fb::Program &program, uint32_t variant)
      : plan_(plan), program_(program), variant_(variant), nodes_(count(program.steps())),
        writes_(firstVariable + count(plan.variables())), reads_(writes_.size()) {}

  Status find(std::vector<Phase> &phases) {
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (Status status = addNode(i); !status.ok())
        return status;
    if (Status status = assignPhases(); !status.ok())
      return status;
    if (Status status = checkRepeats(); !status.ok())
      return status;
    write(phases);
    return {};
  }

private:
  const fb::Step &step(uint32_t index) const { return *program_.steps()->Get(index); }

  Range bytesOf(const fb::Buffer &buffer) const {
    uint64_t rows = (uint64_t{1} << variant_) * plan_.shard_rows();
    uint64_t size = buffer.fixed_bytes() + buffer.row_bytes() * rows, begin = 0;
    if (buffer.space() == fb::Space::Variable)
      return {firstVariable + buffer.index(), 0, size};
    begin = buffer.offset()->Get(buffer.space() == fb::Space::Arena ? variant_ : 0);
    return {buffer.space() == fb::Space::Arena ? arena : shared, begin, begin + size};
  }

  void addLaunch(StepNode &node, const fb::Step &step) {
    const fb::Kernel &kernel = *plan_.kernels()->Get(static_cast<uint32_t>(step.kernel()));
    for (const fb::Segment *segment : *step.segments())
      for (uint32_t b = 0; b < count(segment->buffers()); ++b) {
        const fb::Buffer &buffer = *program_.buffers()->Get(segment->buffers()->Get(b));
        bool written = kernel.arguments()->Get(b)->written();
        node.repeated |= buffer.space() == fb::Space::Arena || buffer.space() == fb::Space::Signature;
        node.output |= written && buffer.space() == fb::Space::Signature;
        if (buffer.space() != fb::Space::Signature && buffer.space() != fb::Space::Constant)
          (written ? node.writes : node.reads).push_back(bytesOf(buffer));
      }
  }

  // Adds the partial sums whose results some step reads. Bytes between them may have any value.
  void addAllReduce(StepNode &node, const fb::Step &step) {
    node.writes.push_back({shared, step.result_offset(), step.result_offset() + step.partial_bytes()});
    for (uint32_t b = 0; b < count(program_.buffers()); ++b) {
      const fb::Buffer &buffer = *program_.buffers()->Get(b);
      if (buffer.space() != fb::Space::Shared || !bytesOf(buffer).overlaps(node.writes.front()))
        continue;
      uint64_t begin = step.partial_offset()->Get(variant_) + (buffer.offset()->Get(0) - step.result_offset());
      node.reads.push_back({arena, begin, begin + buffer.fixed_bytes()});
    }
  }

  Status addNode(uint32_t index) {
    StepNode &node = nodes_[index];
    if (step(index).kernel() >= 0)
      addLaunch(node, step(index));
    else
      addAllReduce(node, step(index));
    for (const Range &bytes : node.writes)
      if (node.repeated && bytes.memory != arena)
        return {MT_INVALID, program_.name()->str() + ": expected steps that write either temporary values or shared " +
                                "ones, for micro-batches, found both in " + nameOf(index)};
    for (const Range &bytes : node.reads)
      for (uint32_t writer : writersOf(bytes))
        insert(nodes_[writer].repeated ? node.producers : node.events, writer);
    if (!node.repeated)
      for (const Range &bytes : node.writes)
        for (const Access &read : reads_[bytes.memory])
          if (read.bytes.overlaps(bytes))
            insert(node.readers, read.step);
    for (const Range &bytes : node.writes)
      writes_[bytes.memory].push_back({index, bytes});
    for (const Range &bytes : node.reads)
      if (node.repeated && bytes.memory != arena)
        reads_[bytes.memory].push_back({index, bytes});
    return {};
  }

  // Returns the steps so far that wrote the bytes that `read` covers.
  std::vector<uint32_t> writersOf(const Range &read) const {
    std::vector<uint32_t> writers;
    std::vector<Range> open = {read}, rest;
    const std::vector<Access> &writes = writes_[read.memory];
    for (auto write = writes.rbegin(); write != writes.rend() && !open.empty(); ++write) {
      rest.clear();
      for (const Range &piece : open) {
        if (!write->bytes.overlaps(piece)) {
          rest.push_back(piece);
          continue;
        }
        insert(writers, write->step);
        if (piece.begin < write->bytes.begin)
          rest.push_back({piece.memory, piece.begin, write->bytes.begin});
        if (piece.end > write->bytes.end)
          rest.push_back({piece.memory, write->bytes.end, piece.end});
      }
      open.swap(rest);
    }
    return writers;
  }

  // Raises the phase of each node to the minimum that is valid now. A node follows its producers; an event also follows
  // the events before it and the steps that read data that it overwrites; a repeated step runs after the phase of each
  // event whose result it reads. Returns true if a phase changed.
  bool raisePhases() {
    bool raised = false;
    uint32_t last = 0;
    for (StepNode &node : nodes_) {
      uint32_t least = node.repeated ? 0 : std::max(last, node.phase);
      for (uint32_t producer : node.producers)
        least = std::max(least, nodes_[producer].phase);
      for (uint32_t event : node.repeated ? node.events : std::vector<uint32_t>())
        least = std::max(least, nodes_[event].phase + 1);
      for (uint32_t reader : node.readers)
        if (!nodes_[reader].phases.empty())
          least = std::max(least, nodes_[reader].phases.back());
      raised |= node.phase != least;
      node.phase = least;
      last = node.repeated ? last : least;
    }
    return raised;
  }

  // Puts each repeated step into all phases that need its results.
  void placeRepeated() {
    for (StepNode &node : nodes_)
      node.phases.clear();
    for (size_t i = nodes_.size(); i-- > 0;) {
      StepNode &node = nodes_[i];
      if (!node.repeated)
        insert(node.phases, node.phase);
      else if (node.output && node.phases.empty())
        insert(node.phases, node.phase);
      for (uint32_t producer : node.producers)
        for (uint32_t phase : node.phases)
          insert(nodes_[producer].phases, phase);
    }
  }

  Status assignPhases() {
    while (raisePhases()) {
      placeRepeated();
      for (const StepNode &node : nodes_)
        if (node.phase > nodes_.size())
          return waitsForItself(node);
    }
    placeRepeated();
    return {};
  }

  // Reports an event that overwrites data that a step of a later phase reads: a variable, or bytes of the shared block,
  // which are never reused in a plan for micro-batches.
  Status waitsForItself(const StepNode &event) const {
    std::string place = program_.name()->str() + ": ", name = nameOf(readerOf(event));
    if (plan_.micro_batches() <= 1)
      return {MT_INVALID, place +
                              "expected a plan that was compiled for micro-batches, found one that uses memory of " +
                              name + " again; compile the model with --micro-batches"};
    return {MT_INVALID, place + "expected layers that do not wait for the whole batch, for micro-batches, found " +
                            name + "; if it normalises the batch, compile the model with --batch-norm local"};
  }

  // Returns a step that reads data that the event overwrites, or else a step that waits for an event.
  uint32_t readerOf(const StepNode &event) const {
    for (uint32_t reader : event.readers)
      if (step(reader).layer() >= 0)
        return reader;
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].events.empty() && step(i).layer() >= 0)
        return i;
    return 0;
  }

  // Returns the name of the layer or of the kernel of a step.
  std::string nameOf(uint32_t index) const {
    if (step(index).layer() >= 0)
      return plan_.layers()->Get(static_cast<uint32_t>(step(index).layer()))->str();
    if (step(index).kernel() < 0)
      return "an all-reduce";
    return plan_.kernels()->Get(static_cast<uint32_t>(step(index).kernel()))->name()->str();
  }

  // Returns the FLOPs per row; elementwise kernels have no rows.
  uint64_t costOf(uint32_t index) const {
    const fb::Kernel &kernel = *plan_.kernels()->Get(static_cast<uint32_t>(step(index).kernel()));
    return kernel.kind() == fb::KernelKind::Elementwise ? 0 : kernel.flops_per_row();
  }

  // Recomputing cheap steps in several phases is allowed. A plan that repeats much of the work is refused.
  Status checkRepeats() const {
    constexpr uint64_t worth = 8; // at most 1/worth of the work of a step may be computed again
    uint64_t all = 0, again = 0, most = 0;
    uint32_t dearest = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].repeated || nodes_[i].phases.empty())
        continue;
      uint64_t more = costOf(i) * (nodes_[i].phases.size() - 1);
      all += costOf(i);
      again += more;
      if (more > most) {
        most = more;
        dearest = i;
      }
    }
    if (again <= all / worth)
      return {};
    return {MT_INVALID, program_.name()->str() + ": expected layers that do not wait for the whole batch, for " +
                            "micro-batches, found " + nameOf(waiterOf(nodes_[dearest].phases.front())) +
                            "; if it normalises the batch, compile the model with --batch-norm local"};
  }

  // Returns the first repeated step that reads the result of an event at the end of `phase`.
  uint32_t waiterOf(uint32_t phase) const {
    uint32_t first = 0;
    for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;)
      for (uint32_t event : nodes_[i].repeated ? nodes_[i].events : std::vector<uint32_t>())
        if (nodes_[event].phase == phase)
          first = i;
    return first;
  }

  void write(std::vector<Phase> &phases) const {
    phases.clear();
    for (const StepNode &node : nodes_)
      if (!node.phases.empty() && phases.size() <= node.phases.back())
        phases.resize(node.phases.back() + 1);
    for (uint32_t p = 0; p < phases.size(); ++p) {
      bool waits = false; // true if there was a barrier since the last step of this phase
      for (uint32_t i = 0; i < nodes_.size(); ++i) {
        bool launch = step(i).kernel() >= 0;
        waits |= launch && step(i).wait() != fb::Wait::None;
        if (std::binary_search(nodes_[i].phases.begin(), nodes_[i].phases.end(), p)) {
          phases[p].steps.push_back({i, launch && !nodes_[i].repeated, launch && waits});
          phases[p].repeats |= nodes_[i].repeated;
          waits = false;
        }
        waits |= !launch;
      }
    }
  }

  const fb::Plan &plan_;
  const fb::Program &program_;
  uint32_t variant_;
  std::vector<StepNode> nodes_;
  std::vector<std::vector<Access>> writes_; // writes by memory
  std::vector<std::vector<Access>> reads_;  // reads of repeated steps by memory, except the arena
};

} // namespace

Status phasesOf(const fb::Plan &plan, const fb::Program &program, uint32_t variant, std::vector<Phase> &phases) {
  return Phases(plan, program, variant).find(phases);
}

} // namespace mtrun
