// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Best.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <algorithm>

namespace mtrun {

namespace fb = ::mt::plan;

// The optimizer's variables follow the model's, and the step counter is the first of them.
std::vector<uint32_t> modelVariables(const Session &session) {
  std::vector<uint32_t> indices;
  const auto *variables = session.plan().tables().variables();
  int32_t iteration = session.plan().tables().iteration();
  for (uint32_t i = 0; variables && i < variables->size(); ++i)
    if (variables->Get(i)->kind() != fb::VariableKind::Slot && (iteration < 0 || i < static_cast<uint32_t>(iteration)))
      indices.push_back(i);
  return indices;
}

void Best::keep(const Session &session) {
  std::vector<uint32_t> indices = modelVariables(session);
  values_.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    std::span<const std::byte> bytes = session.variable(indices[i]);
    values_[i].first = indices[i];
    values_[i].second.assign(bytes.begin(), bytes.end());
  }
}

bool Best::load(const Session &session, const std::string &path) {
  Checkpoint checkpoint;
  if (!readCheckpoint(path, checkpoint).ok())
    return false;
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> values;
  const auto *variables = session.plan().tables().variables();
  for (uint32_t index : modelVariables(session)) {
    std::string name = variables->Get(index)->name()->str();
    auto tensor = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                               [&](const SafeTensor &t) { return t.name == name; });
    if (tensor == checkpoint.tensors.end() || tensor->bytes.size() != session.variableSize(index))
      return false;
    values.emplace_back(index, std::vector<std::byte>(tensor->bytes.begin(), tensor->bytes.end()));
  }
  values_ = std::move(values);
  return true;
}

bool Best::restore(Session &session) const {
  for (const auto &[index, bytes] : values_)
    (void)session.setVariable(index, bytes); // the values have the variable's size: both keep() and load() check it
  return !values_.empty();
}

} // namespace mtrun
