// SPDX-License-Identifier: Apache-2.0
//
// Reads the data flow of a program from its steps, for reports. A value has one buffer, and the first step that
// accesses the buffer produces the value.
#include "runtime/api/Handles.h"
#include "runtime/plan/Check.h"
#include "runtime/trace/Profile.h"

#include <algorithm>
#include <map>
#include <set>

namespace fb = ::mt::plan;

using namespace mtrun;

namespace {

class GraphReader {
public:
  GraphReader(const Plan &plan, const fb::Program &program, void (*node)(void *, const mtrun_node *), void *user)
      : plan_(plan), program_(program), node_(node), user_(user), makers_(count(program.buffers())) {}

  void read() {
    std::set<uint32_t> touched;
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const fb::Step &step = *program_.steps()->Get(i);
      for (uint32_t s = 0; s < count(step.segments()); ++s)
        for (uint32_t b = 0; b < count(step.segments()->Get(s)->buffers()); ++b)
          touched.insert(step.segments()->Get(s)->buffers()->Get(b));
    }
    for (uint32_t buffer : touched)
      addSource(buffer);
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const fb::Step &step = *program_.steps()->Get(i);
      step.kernel() < 0 ? addReduce(step) : addLaunch(step);
    }
    for (uint32_t buffer : touched)
      if (isOutput(buffer))
        emit(entry(buffer).name()->str(), "output", {makers_[buffer]});
  }

private:
  const fb::Buffer &buffer(uint32_t index) const { return *program_.buffers()->Get(index); }
  const fb::SignatureEntry &entry(uint32_t index) const { return *program_.signature()->Get(buffer(index).index()); }
  bool isOutput(uint32_t index) const {
    return buffer(index).space() == fb::Space::Signature && entry(index).role() == fb::Role::Output;
  }

  // Adds a node for a value that exists before the program runs: a variable or a tensor of the caller.
  void addSource(uint32_t index) {
    static constexpr const char *roles[] = {"input", "target", "sample_weight"};
    if (buffer(index).space() == fb::Space::Variable)
      makers_[index] = emit(plan_.tables().variables()->Get(buffer(index).index())->name()->str(), "variable", {});
    else if (buffer(index).space() == fb::Space::Signature && !isOutput(index))
      makers_[index] = emit(entry(index).name()->str(), roles[static_cast<size_t>(entry(index).role())], {});
  }

  void addLaunch(const fb::Step &step) {
    StepFacts facts = factsOf(plan_, step);
    std::vector<std::string> inputs;
    std::vector<uint32_t> results;
    for (uint32_t s = 0; s < count(step.segments()); ++s)
      for (uint32_t b = 0; b < count(step.segments()->Get(s)->buffers()); ++b) {
        uint32_t index = step.segments()->Get(s)->buffers()->Get(b);
        if (!makers_[index].empty())
          inputs.push_back(makers_[index]);
        else if (buffer(index).space() != fb::Space::Constant)
          results.push_back(index);
      }
    std::string name = emit(std::string(facts.layer) + (*facts.layer ? "/" : "") + facts.name, facts.kind, inputs);
    for (uint32_t index : results) {
      makers_[index] = name;
      if (buffer(index).space() == fb::Space::Arena)
        places_[buffer(index).offset()->Get(0)] = name;
    }
  }

  void addReduce(const fb::Step &step) {
    std::vector<std::string> inputs;
    uint64_t partial = step.partial_offset()->Get(0);
    for (auto at = places_.lower_bound(partial); at != places_.end() && at->first < partial + step.partial_bytes();
         ++at)
      inputs.push_back(at->second);
    std::string name = emit("all-reduce " + std::to_string(step.collective()), "all_reduce", inputs);
    for (uint32_t i = 0; i < count(program_.buffers()); ++i)
      if (buffer(i).space() == fb::Space::Shared && buffer(i).offset()->Get(0) >= step.result_offset() &&
          buffer(i).offset()->Get(0) < step.result_offset() + step.partial_bytes())
        makers_[i] = name;
  }

  std::string emit(std::string name, const char *kind, std::vector<std::string> inputs) {
    std::string unique = name;
    for (int i = 1; !names_.insert(unique).second; ++i)
      unique = name + "_" + std::to_string(i);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    std::vector<const char *> pointers;
    for (const std::string &input : inputs)
      if (!input.empty())
        pointers.push_back(input.c_str());
    mtrun_node node = {unique.c_str(), kind, static_cast<int32_t>(pointers.size()), pointers.data()};
    node_(user_, &node);
    return unique;
  }

  const Plan &plan_;
  const fb::Program &program_;
  void (*node_)(void *, const mtrun_node *);
  void *user_;
  std::vector<std::string> makers_;        // by buffer: the node that produced it, "" if none so far
  std::map<uint64_t, std::string> places_; // by offset in the arena: the last node that wrote there
  std::set<std::string> names_;
};

} // namespace

mt_status *mtrun_plan_graph(const mtrun_plan *plan, const char *program, void (*node)(void *, const mtrun_node *),
                            void *user) {
  return guarded([&]() -> Status {
    const fb::Program *found = plan && program ? plan->plan->program(program) : nullptr;
    if (!found)
      return {MT_INVALID, std::string("the plan has no program ") + (program ? program : "")};
    GraphReader(*plan->plan, *found, node, user).read();
    return {};
  });
}
