// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Check.h"
#include "runtime/session/SessionState.h"
#include "runtime/support/hash_text.h"

namespace mtrun {

uint64_t Session::changes() const { return state_->changes; }

std::span<const std::byte> Session::variable(uint32_t index) const {
  if (state_->layout.optimizer.divides(index))
    return state_->divided.whole(index);
  const fb::Variable &variable = *state_->plan->tables().variables()->Get(index);
  const std::byte *place = state_->memory.map.variables[0] + state_->memory.map.places[0].offsets[index];
  if (state_->group->hostMemory())
    return {place, variable.size()};
  std::byte *copy = state_->memory.mirror.data() + variable.offset();
  state_->group->copyOut(0, copy, place, variable.size());
  return {copy, variable.size()};
}

size_t Session::variableSize(uint32_t index) const { return state_->plan->tables().variables()->Get(index)->size(); }

Status Session::setVariable(uint32_t index, std::span<const std::byte> bytes) {
  const fb::Variable &variable = *state_->plan->tables().variables()->Get(index);
  if (bytes.size() != variable.size())
    return {MT_INVALID, "expected " + std::to_string(variable.size()) + " bytes for variable " +
                            variable.name()->str() + ", found " + std::to_string(bytes.size())};
  ++state_->changes;
  const MemoryMap &map = state_->memory.map;
  for (size_t d = 0; d < map.variables.size(); ++d) {
    std::span<const std::byte> part = state_->divided.partOf(index, static_cast<int>(d), bytes);
    state_->group->copyIn(static_cast<int>(d), map.variables[d] + map.places[d].offsets[index], part.data(),
                          part.size());
  }
  return {};
}

bool Session::dividesOptimizer() const { return state_->transport && state_->divided.any(); }

std::span<const std::byte> Session::ownPart(uint32_t index) const {
  return divides(index) ? state_->divided.own(index, 0) : variable(index);
}

bool Session::divides(uint32_t index) const { return state_->transport && state_->layout.optimizer.divides(index); }

Session::Part Session::partOf(uint32_t index, int process) const {
  DividedVariables::Place place = state_->divided.placeOf(index, static_cast<size_t>(process));
  return {place.begin, place.bytes};
}

Status Session::collect(bool everywhere) {
  if (!dividesOptimizer() || !health().ok())
    return health();
  return state_->divided.collect(*state_->transport, *state_->processGroup, everywhere);
}

Status Session::findVariable(std::string_view name, uint32_t &index) const {
  int found = state_->plan->variable(name);
  if (found >= 0) {
    index = static_cast<uint32_t>(found);
    return {};
  }
  std::string names;
  const auto *variables = state_->plan->tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    names += (i ? ", " : "") + variables->Get(i)->name()->str();
  return {MT_INVALID, "expected one of the plan's variables (" + names + "), found " + std::string(name)};
}

std::string Session::variablesHash() const {
  std::string all;
  for (uint32_t i = 0; i < count(state_->plan->tables().variables()); ++i) {
    if (divides(i)) // each process has another part
      continue;
    std::span<const std::byte> bytes = variable(i);
    all += hashText(bytes.data(), bytes.size());
  }
  return hashText(all.data(), all.size());
}

} // namespace mtrun
