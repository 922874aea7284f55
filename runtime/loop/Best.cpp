// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Best.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <algorithm>

namespace mtrun {

namespace fb = ::mt::plan;

// Indices of the variables that are the model's own. The optimizer's follow them, and its step counter comes first.
static std::vector<uint32_t> ofModel(const Session &session) {
  std::vector<uint32_t> indices;
  const auto *variables = session.plan().tables().variables();
  int32_t iteration = session.plan().tables().iteration();
  for (uint32_t i = 0; variables && i < variables->size(); ++i)
    if (variables->Get(i)->kind() != fb::VariableKind::Slot && (iteration < 0 || i < static_cast<uint32_t>(iteration)))
      indices.push_back(i);
  return indices;
}

void Best::keep(const Session &session) {
  std::vector<uint32_t> indices = ofModel(session);
  values_.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    std::span<const std::byte> bytes = session.variable(indices[i]);
    values_[i].first = indices[i];
    values_[i].second.assign(bytes.begin(), bytes.end());
  }
}

bool Best::load(const Session &session, const std::string &folder, double value) {
  for (int64_t step : checkpointSteps(folder)) {
    std::string path = folder + "/" + checkpointName(step);
    Manifest manifest;
    Checkpoint checkpoint;
    if (!readManifest(path, manifest).ok() || manifest.monitored != value || !readCheckpoint(path, checkpoint).ok())
      continue;
    std::vector<std::pair<uint32_t, std::vector<std::byte>>> values;
    const auto *variables = session.plan().tables().variables();
    for (uint32_t index : ofModel(session)) {
      std::string name = variables->Get(index)->name()->str();
      auto tensor = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                 [&](const SafeTensor &t) { return t.name == name; });
      if (tensor != checkpoint.tensors.end() && tensor->bytes.size() == session.variableSize(index))
        values.emplace_back(index, std::vector<std::byte>(tensor->bytes.begin(), tensor->bytes.end()));
    }
    if (values.size() != ofModel(session).size())
      continue;
    values_ = std::move(values);
    return true;
  }
  return false;
}

bool Best::restore(Session &session) const {
  for (const auto &[index, bytes] : values_)
    session.setVariable(index, bytes);
  return !values_.empty();
}

} // namespace mtrun
