// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dataset.h"
#include "runtime/plan/Signature.h"

#include <cstring>

using namespace mtrun;

Status mtrun_dataset::bind(const char *program, Binding &binding) const {
  if (!plan->program(program)) {
    const char *reason = strcmp(program, "eval_step") == 0 ? ": its model has no loss or metric but in its update" : "";
    return {MT_INVALID, std::string("the plan has no program \"") + program + "\"" + reason};
  }
  binding.columns.clear();
  for (const mtrun_tensor_info &entry : signatureOf(*plan, program)) {
    int found = entry.role == MTRUN_OUTPUT ? Binding::output : Binding::absent;
    for (size_t c = 0; c < columns.size(); ++c)
      if (columns[c].role == entry.role && columns[c].name == entry.name)
        found = static_cast<int>(c);
    if (found == Binding::absent && !entry.optional)
      return {MT_INVALID,
              std::string("the data has no field for \"") + entry.name + "\" of program \"" + program + "\""};
    binding.columns.push_back(found);
  }
  return {};
}

std::unique_ptr<mtrun_dataset> mtrun::sliceOf(const mtrun_dataset &data, int64_t begin, int64_t end) {
  auto part = std::make_unique<mtrun_dataset>(data);
  part->begin += begin;
  part->size = end - begin;
  return part;
}
