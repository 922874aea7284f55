// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Lengths.h"

#include "runtime/plan/Check.h"

namespace mtrun {

namespace fb = ::mt::plan;

int32_t programAt(const fb::Length &length, std::string_view program) {
  return program == "train_step"  ? length.train_step()
         : program == "eval_step" ? length.eval_step()
         : program == "predict"   ? length.predict()
                                  : -1;
}

// Compares the entry of the largest length with the entry of the smallest: a different size means a sequence axis.
bool hasLength(const fb::Plan &plan, std::string_view program, uint32_t entry) {
  if (count(plan.lengths()) < 2)
    return false;
  const fb::Length &smallest = *plan.lengths()->Get(0), &largest = *plan.lengths()->Get(plan.lengths()->size() - 1);
  int32_t small = programAt(smallest, program), large = programAt(largest, program);
  if (small < 0 || large < 0)
    return false;
  auto rowBytes = [&](int32_t index) {
    return plan.programs()->Get(static_cast<uint32_t>(index))->signature()->Get(entry)->row_bytes();
  };
  return rowBytes(small) != rowBytes(large);
}

bool saysLength(const fb::Plan &plan, const fb::SignatureEntry &entry) {
  if (entry.role() != fb::Role::Input)
    return false;
  return !plan.length_input() || plan.length_input()->string_view() == entry.name()->string_view();
}

} // namespace mtrun
