// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/LengthGroups.h"

#include "runtime/data/FitLength.h"
#include "runtime/data/Order.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Lengths.h"

#include <algorithm>

namespace mtrun {

constexpr int64_t groupBatches = 64;

LengthGroups::LengthGroups(const mtrun_dataset &data, int64_t batch)
    : batch_(batch), lengths_(static_cast<size_t>(data.size)), order_(static_cast<size_t>(data.size)),
      sorted_(static_cast<size_t>(std::min(data.size, groupBatches * batch))) {
  const auto *signature = data.plan->program("train_step")->signature();
  for (uint32_t e = 0; e < count(signature); ++e) {
    const mt::plan::SignatureEntry &entry = *signature->Get(e);
    if (!hasLength(data.plan->tables(), "train_step", e) || !saysLength(data.plan->tables(), entry))
      continue;
    for (const Column &column : data.columns)
      if (column.name == entry.name()->string_view() && column.role == MTRUN_INPUT && !column.made())
        for (int64_t i = 0; i < data.size; ++i) {
          auto used = static_cast<uint32_t>(usedPositions(column.field, column.at(data.sample(i))));
          lengths_[size_t(i)] = std::max(lengths_[size_t(i)], used);
        }
  }
}

void LengthGroups::group(int64_t seed, int64_t pass, const std::vector<int64_t> &order) {
  std::copy(order.begin(), order.end(), order_.begin());
  auto whole = static_cast<int64_t>(order_.size()) / batch_ * batch_;
  for (int64_t begin = 0; begin < whole; begin += groupBatches * batch_)
    groupPart(seed, pass, begin, std::min(begin + groupBatches * batch_, whole));
}

// Sorts a part of the order by length. Samples of equal length keep their order, because the lower half of a key is the
// sample's index.
void LengthGroups::groupPart(int64_t seed, int64_t pass, int64_t begin, int64_t end) {
  int64_t samples = end - begin, batches = samples / batch_;
  for (int64_t i = 0; i < samples; ++i)
    sorted_[size_t(i)] = int64_t(lengths_[size_t(order_[size_t(begin + i)])]) << 32 | i;
  std::sort(sorted_.begin(), sorted_.begin() + samples);
  for (int64_t i = 0; i < samples; ++i)
    sorted_[size_t(i)] = order_[size_t(begin + (sorted_[size_t(i)] & UINT32_MAX))];
  std::copy(sorted_.begin(), sorted_.begin() + samples, order_.begin() + begin);
  for (int64_t i = batches - 1; i > 0; --i) {
    int64_t other = drawGroup(seed, begin / batch_ + i, pass, i + 1);
    auto place = [&](int64_t index) { return order_.begin() + begin + index * batch_; };
    if (other != i)
      std::swap_ranges(place(i), place(i + 1), place(other));
  }
}

} // namespace mtrun
