// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Pack.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace mtc {

int64_t livenessBound(std::span<const Tenant> tenants) {
  std::map<int64_t, int64_t> change;
  for (const Tenant &tenant : tenants) {
    change[tenant.first] += tenant.bytes;
    change[tenant.last + 1] -= tenant.bytes;
  }
  int64_t alive = 0, most = 0;
  for (auto [phase, bytes] : change)
    most = std::max(most, alive += bytes);
  return most;
}

static bool meet(const Tenant &a, const Tenant &b) { return a.first <= b.last && b.first <= a.last; }

// The offset of the tightest gap that holds `bytes` between `taken` (offset, end), sorted; above all of them if none
// does.
static int64_t tightestGap(const std::vector<std::pair<int64_t, int64_t>> &taken, int64_t bytes) {
  int64_t best = -1, bestSlack = std::numeric_limits<int64_t>::max(), end = 0;
  for (auto [begin, next] : taken) {
    if (int64_t slack = begin - end - bytes; slack >= 0 && slack < bestSlack) {
      best = end;
      bestSlack = slack;
    }
    end = std::max(end, next);
  }
  return best >= 0 ? best : end;
}

static Packing packInOrder(std::span<const Tenant> tenants, const std::vector<size_t> &order) {
  Packing packing;
  packing.offsets.resize(tenants.size());
  std::vector<size_t> placed;
  for (size_t index : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed)
      if (meet(tenants[index], tenants[other]) && tenants[other].bytes > 0)
        taken.emplace_back(packing.offsets[other], packing.offsets[other] + tenants[other].bytes);
    std::sort(taken.begin(), taken.end());
    packing.offsets[index] = tightestGap(taken, tenants[index].bytes);
    packing.bytes = std::max(packing.bytes, packing.offsets[index] + tenants[index].bytes);
    placed.push_back(index);
  }
  return packing;
}

Packing packTenants(std::span<const Tenant> tenants) {
  auto length = [](const Tenant &tenant) { return tenant.last - tenant.first + 1; };
  const std::function<bool(const Tenant &, const Tenant &)> orders[] = {
      [](const Tenant &a, const Tenant &b) { return a.bytes > b.bytes; },
      [](const Tenant &a, const Tenant &b) { return a.first < b.first; },
      [&](const Tenant &a, const Tenant &b) { return length(a) > length(b); },
      [&](const Tenant &a, const Tenant &b) { return a.bytes * length(a) > b.bytes * length(b); },
      [](const Tenant &a, const Tenant &b) { return a.last > b.last; },
  };
  int64_t bound = livenessBound(tenants);
  Packing best;
  for (const auto &before : orders) {
    std::vector<size_t> order(tenants.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return before(tenants[a], tenants[b]); });
    Packing packing = packInOrder(tenants, order);
    if (best.offsets.empty() || packing.bytes < best.bytes)
      best = std::move(packing);
    constexpr size_t many = 4000; // an order takes time in the square of their number
    if (best.bytes == bound || tenants.size() > many)
      break;
  }
  return best;
}

} // namespace mtc
