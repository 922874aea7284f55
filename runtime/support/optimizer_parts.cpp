// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/optimizer_parts.h"

#include "runtime/support/device_memory.h"
#include "runtime/support/enum_name.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

template <typename Vector> uint32_t count(const Vector *vector) { return vector ? vector->size() : 0; }

// Bytes [begin, end) of a program's shared block.
struct SharedBytes {
  uint64_t begin, end;
  bool overlaps(const SharedBytes &other) const { return begin < other.end && other.begin < end; }
  bool operator==(const SharedBytes &) const = default;
};

// An access of a launch to the shared block.
struct SharedAccess {
  SharedBytes bytes;
  int leader; // of the variables that the segment updates; -1: the segment is not divided
  bool written;
};

class Divider {
public:
  Divider(const fb::Plan &plan, int devices, OptimizerParts &parts)
      : plan_(plan), devices_(devices), parts_(parts), leaders_(count(plan.variables())) {
    std::iota(leaders_.begin(), leaders_.end(), 0);
  }

  Status run() {
    parts_.variables.assign(count(plan_.variables()), {});
    parts_.programs.assign(count(plan_.programs()), {});
    findVariables();
    for (const fb::Program *program : *plan_.programs())
      if (Status status = joinVariables(*program); !status.ok())
        return status;
    for (uint32_t p = 0; p < count(plan_.programs()); ++p)
      scatter(*plan_.programs()->Get(p), parts_.programs[p]);
    for (uint32_t v = 0; v < leaders_.size(); ++v)
      if (isDivided_[v])
        parts_.variables[v] = partsOfClass(leaderOf(v));
    for (uint32_t p = 0; p < count(plan_.programs()); ++p)
      divideLaunches(*plan_.programs()->Get(p), parts_.programs[p]);
    return {};
  }

private:
  const fb::Kernel &kernelOf(const fb::Step &step) const {
    return *plan_.kernels()->Get(static_cast<uint32_t>(step.kernel()));
  }
  const fb::Buffer &bufferOf(const fb::Program &program, const fb::Segment &segment, uint32_t argument) const {
    return *program.buffers()->Get(segment.buffers()->Get(argument));
  }
  int64_t elementsOf(uint32_t variable) const {
    const auto *shape = plan_.variables()->Get(variable)->shape();
    int64_t elements = 1;
    for (uint32_t d = 0; d < count(shape); ++d)
      elements *= shape->Get(d);
    return elements;
  }
  int leaderOf(uint32_t variable) const {
    int at = static_cast<int>(variable);
    while (leaders_[static_cast<size_t>(at)] != at)
      at = leaders_[static_cast<size_t>(at)];
    return at;
  }

  // Slots of one element, such as products of betas, are cheaper to keep than to exchange. The averages replace the
  // variables when training ends, so each device has them.
  void findVariables() {
    for (uint32_t v = 0; v < leaders_.size(); ++v)
      isDivided_.push_back(plan_.variables()->Get(v)->kind() == fb::VariableKind::Slot && elementsOf(v) > 1);
    for (const fb::Variable *variable : *plan_.variables())
      if (variable->average() >= 0)
        isDivided_[static_cast<size_t>(variable->average())] = false;
  }

  // Returns the divided variable that an argument of a launch is; -1: none.
  int dividedVariable(const fb::Buffer &buffer) const {
    return buffer.space() == fb::Space::Variable && isDivided_[buffer.index()] ? static_cast<int>(buffer.index()) : -1;
  }
  // Returns a divided variable that a segment accesses; -1: none.
  int dividedOf(const fb::Program &program, const fb::Segment &segment) const {
    for (uint32_t b = 0; b < count(segment.buffers()); ++b)
      if (int variable = dividedVariable(bufferOf(program, segment, b)); variable >= 0)
        return variable;
    return -1;
  }

  Status refuse(uint32_t variable, const fb::Kernel &kernel) const {
    return {MT_INVALID, "expected an optimizer that computes each element by itself, to divide its variables among "
                        "devices, found kernel " +
                            kernel.name()->str() + " of kind " + enumName(EnumNameKernelKind(kernel.kind())) +
                            ", which needs the whole of " + plan_.variables()->Get(variable)->name()->str() +
                            "; train without --shard-optimizer"};
  }

  bool canDivide(const fb::Step &step, const fb::Segment &segment, uint32_t variable) const {
    const fb::Kernel &kernel = kernelOf(step);
    if (kernel.kind() != fb::KernelKind::Elementwise || kernel.random() || !step.share() ||
        segment.count() != static_cast<uint64_t>(elementsOf(variable)))
      return false;
    for (const fb::KernelArgument *argument : *kernel.arguments())
      if (argument->row_bytes() > 0 || (argument->element_bytes() > 0 && argument->fixed_bytes() > 0))
        return false;
    return true;
  }

  // Joins the variables that one segment accesses: they have the same parts.
  Status joinVariables(const fb::Program &program) {
    for (uint32_t s = 0; s < count(program.steps()); ++s) {
      const fb::Step &step = *program.steps()->Get(s);
      for (uint32_t i = 0; step.kernel() >= 0 && i < count(step.segments()); ++i) {
        const fb::Segment &segment = *step.segments()->Get(i);
        int first = dividedOf(program, segment);
        if (first < 0)
          continue;
        for (uint32_t b = 0; b < count(segment.buffers()); ++b) {
          int variable = dividedVariable(bufferOf(program, segment, b));
          if (variable < 0)
            continue;
          if (!canDivide(step, segment, static_cast<uint32_t>(variable)) ||
              kernelOf(step).arguments()->Get(b)->element_bytes() == 0)
            return refuse(static_cast<uint32_t>(variable), kernelOf(step));
          leaders_[static_cast<size_t>(leaderOf(static_cast<uint32_t>(variable)))] =
              leaderOf(static_cast<uint32_t>(first));
        }
      }
    }
    return {};
  }

  std::vector<SharedAccess> sharedAccesses(const fb::Program &program) const {
    std::vector<SharedAccess> accesses;
    auto add = [&](const fb::Buffer &buffer, int leader, bool written) {
      if (buffer.space() == fb::Space::Shared)
        accesses.push_back(
            {{buffer.offset()->Get(0), buffer.offset()->Get(0) + buffer.fixed_bytes()}, leader, written});
    };
    for (uint32_t s = 0; s < count(program.steps()); ++s) { // a program without outputs has no steps
      const fb::Step &step = *program.steps()->Get(s);
      for (uint32_t i = 0; step.kernel() >= 0 && i < count(step.segments()); ++i) {
        const fb::Segment &segment = *step.segments()->Get(i);
        int divided = dividedOf(program, segment);
        for (uint32_t b = 0; b < count(segment.buffers()); ++b) {
          const fb::KernelArgument &argument = *kernelOf(step).arguments()->Get(b);
          bool own = divided >= 0 && argument.element_bytes() == sizeof(float);
          add(bufferOf(program, segment, b), own ? leaderOf(static_cast<uint32_t>(divided)) : -1, argument.written());
        }
      }
    }
    for (uint32_t m = 0; m < count(program.metrics()); ++m) {
      add(*program.buffers()->Get(program.metrics()->Get(m)->value()), -1, false);
      add(*program.buffers()->Get(program.metrics()->Get(m)->weight()), -1, false);
    }
    if (program.learning_rate() >= 0)
      add(*program.buffers()->Get(static_cast<uint32_t>(program.learning_rate())), -1, false);
    return accesses;
  }

  // Finds the parts of all-reduces that only divided launches read, each element for itself.
  void scatter(const fb::Program &program, DividedProgram &divided) {
    std::vector<SharedAccess> accesses = sharedAccesses(program);
    for (uint32_t s = 0; s < count(program.steps()); ++s) {
      const fb::Step &step = *program.steps()->Get(s);
      if (step.kernel() >= 0)
        continue;
      SharedBytes result = {step.result_offset(), step.result_offset() + step.partial_bytes()};
      std::vector<ElementRange> own;
      for (const SharedAccess &access : accesses)
        if (access.leader >= 0 && result.begin <= access.bytes.begin && access.bytes.end <= result.end &&
            onlyReader(access, accesses) && hasParts(access, result))
          own.push_back(at(access, result));
      if (own.empty())
        continue;
      std::ranges::sort(own, {}, &ElementRange::begin);
      std::vector<ElementRange> &whole = divided.scattered[s];
      int64_t end = 0;
      for (const ElementRange &range : own) {
        if (range.begin > end)
          whole.push_back({end, range.begin});
        end = std::max(end, range.end);
      }
      if (auto last = static_cast<int64_t>(step.partial_bytes() / sizeof(float)); end < last)
        whole.push_back({end, last});
    }
  }

  static ElementRange at(const SharedAccess &access, const SharedBytes &result) {
    return {static_cast<int64_t>((access.bytes.begin - result.begin) / sizeof(float)),
            static_cast<int64_t>((access.bytes.end - result.begin) / sizeof(float))};
  }

  static bool onlyReader(const SharedAccess &access, const std::vector<SharedAccess> &accesses) {
    return std::ranges::all_of(accesses, [&](const SharedAccess &other) {
      return !other.bytes.overlaps(access.bytes) ||
             (!other.written && other.bytes == access.bytes && other.leader == access.leader);
    });
  }

  // Returns true if the chunks of the all-reduce are the parts of the variables, which the first all-reduce decides.
  bool hasParts(const SharedAccess &access, const SharedBytes &result) {
    auto elements = static_cast<int64_t>((result.end - result.begin) / sizeof(float));
    auto [begin, end] = at(access, result);
    if (end - begin != elementsOf(static_cast<uint32_t>(access.leader)))
      return false;
    Parts parts;
    for (int d = 0; d <= devices_; ++d)
      parts.push_back(std::clamp(chunkBegin(elements, d, devices_), begin, end) - begin);
    return classes_.try_emplace(access.leader, parts).first->second == parts;
  }

  const Parts &partsOfClass(int leader) {
    auto [found, isNew] = classes_.try_emplace(leader);
    for (int d = 0; isNew && d <= devices_; ++d)
      found->second.push_back(chunkBegin(elementsOf(static_cast<uint32_t>(leader)), d, devices_));
    return found->second;
  }

  void divideLaunches(const fb::Program &program, DividedProgram &divided) {
    for (uint32_t s = 0; s < count(program.steps()); ++s) {
      const fb::Step &step = *program.steps()->Get(s);
      DividedLaunch launch;
      bool any = false;
      for (uint32_t i = 0; step.kernel() >= 0 && i < count(step.segments()); ++i) {
        int variable = dividedOf(program, *step.segments()->Get(i));
        launch.segments.push_back(variable < 0 ? Parts() : parts_.variables[static_cast<size_t>(variable)]);
        any = any || variable >= 0;
      }
      if (!any)
        continue;
      launch.gatherBefore = s + 1;
      while (launch.gatherBefore < count(program.steps()) && !needs(program, launch.gatherBefore, s, launch))
        ++launch.gatherBefore;
      divided.launches.emplace(s, std::move(launch));
    }
  }

  // Returns true if step `reader` accesses what the divided launch of step `writer` has written, other than divided
  // variables.
  bool needs(const fb::Program &program, uint32_t reader, uint32_t writer, const DividedLaunch &launch) const {
    const fb::Step &from = *program.steps()->Get(writer);
    for (uint32_t i = 0; i < count(from.segments()); ++i)
      for (uint32_t b = 0; !launch.segments[i].empty() && b < count(from.segments()->Get(i)->buffers()); ++b) {
        const fb::Buffer &buffer = bufferOf(program, *from.segments()->Get(i), b);
        const fb::KernelArgument &argument = *kernelOf(from).arguments()->Get(b);
        if (argument.written() && argument.element_bytes() > 0 && dividedVariable(buffer) < 0 &&
            accesses(program, *program.steps()->Get(reader), buffer))
          return true;
      }
    return false;
  }

  bool accesses(const fb::Program &program, const fb::Step &step, const fb::Buffer &buffer) const {
    auto bytesOf = [](const fb::Buffer &shared) {
      return SharedBytes{shared.offset()->Get(0), shared.offset()->Get(0) + shared.fixed_bytes()};
    };
    if (step.kernel() < 0)
      return buffer.space() == fb::Space::Shared &&
             bytesOf(buffer).overlaps({step.result_offset(), step.result_offset() + step.partial_bytes()});
    for (const fb::Segment *segment : *step.segments())
      for (uint32_t b = 0; b < count(segment->buffers()); ++b) {
        const fb::Buffer &other = bufferOf(program, *segment, b);
        if (other.space() == buffer.space() &&
            (buffer.space() == fb::Space::Shared ? bytesOf(buffer).overlaps(bytesOf(other))
                                                 : buffer.index() == other.index()))
          return true;
      }
    return false;
  }

  const fb::Plan &plan_;
  int devices_;
  OptimizerParts &parts_;
  std::vector<bool> isDivided_;  // by variable
  std::vector<int> leaders_;     // by variable: another variable with the same parts
  std::map<int, Parts> classes_; // by leader
};

} // namespace

Status divideOptimizer(const fb::Plan &plan, int devices, OptimizerParts &parts) {
  return plan.variables() && plan.programs() && devices > 1 ? Divider(plan, devices, parts).run() : Status();
}

VariablePlaces placeVariables(const fb::Plan &plan, const OptimizerParts &parts, int device) {
  VariablePlaces places;
  for (uint32_t v = 0; v < count(plan.variables()); ++v) {
    const fb::Variable &variable = *plan.variables()->Get(v);
    if (parts.variables.empty()) {
      places.offsets.push_back(variable.offset());
      continue;
    }
    uint64_t size = variable.size();
    if (parts.divides(v)) {
      const Parts &own = parts.variables[v];
      size = size / static_cast<uint64_t>(own.back()) *
             static_cast<uint64_t>(own[static_cast<size_t>(device) + 1] - own[static_cast<size_t>(device)]);
    }
    places.offsets.push_back(places.bytes);
    places.bytes += static_cast<uint64_t>(alignBuffer(static_cast<int64_t>(size)));
  }
  if (parts.variables.empty())
    places.bytes = plan.variables_bytes();
  return places;
}

} // namespace mtrun
