// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Signature.h"
#include "runtime/plan/Check.h"

namespace mtrun {

namespace fb = ::mt::plan;

mtrun_tensor_info infoOf(const fb::SignatureEntry &entry) {
  mtrun_tensor_info info = {};
  info.name = entry.name()->c_str();
  info.dtype = static_cast<mt_dtype>(entry.dtype());
  info.rank = static_cast<int32_t>(entry.shape()->size());
  info.shape = entry.shape()->data();
  info.role = static_cast<mtrun_role>(entry.role());
  info.optional = entry.optional();
  info.limit = entry.limit();
  return info;
}

mtrun_tensor_info infoOf(const fb::Variable &variable) {
  mtrun_tensor_info info = {};
  info.name = variable.name()->c_str();
  info.dtype = static_cast<mt_dtype>(variable.dtype());
  info.rank = static_cast<int32_t>(count(variable.shape()));
  info.shape = variable.shape() ? variable.shape()->data() : nullptr;
  info.kind = static_cast<int>(variable.kind());
  info.limit = -1;
  return info;
}

std::vector<mtrun_tensor_info> signatureOf(const Plan &plan, std::string_view program) {
  std::vector<mtrun_tensor_info> entries;
  if (const fb::Program *found = plan.program(program))
    for (const fb::SignatureEntry *entry : Each(found->signature()))
      entries.push_back(infoOf(*entry));
  return entries;
}

std::vector<mtrun_tensor_info> variablesOf(const Plan &plan) {
  std::vector<mtrun_tensor_info> variables;
  for (const fb::Variable *variable : Each(plan.tables().variables()))
    variables.push_back(infoOf(*variable));
  return variables;
}

} // namespace mtrun
