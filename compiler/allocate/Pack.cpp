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

namespace {
struct Placed {
  int64_t begin, end; // offsets
  const Tenant *tenant;
};
} // namespace

// The offset of the tightest gap that holds the tenant between those that are alive with it; above all of them if none
// does. `placed` is sorted by offset.
static int64_t tightestGap(const std::vector<Placed> &placed, const Tenant &tenant) {
  int64_t best = -1, bestSlack = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed &other : placed) {
    if (!meet(tenant, *other.tenant))
      continue;
    if (int64_t slack = other.begin - end - tenant.bytes; slack >= 0 && slack < bestSlack) {
      best = end;
      bestSlack = slack;
    }
    end = std::max(end, other.end);
  }
  return best >= 0 ? best : end;
}

static Packing packInOrder(std::span<const Tenant> tenants, const std::vector<size_t> &order) {
  Packing packing;
  packing.offsets.resize(tenants.size());
  std::vector<Placed> placed;
  for (size_t index : order) {
    const Tenant &tenant = tenants[index];
    int64_t begin = tightestGap(placed, tenant), end = begin + tenant.bytes;
    packing.offsets[index] = begin;
    packing.bytes = std::max(packing.bytes, end);
    if (tenant.bytes > 0)
      placed.insert(std::upper_bound(placed.begin(), placed.end(), begin,
                                     [](int64_t offset, const Placed &other) { return offset < other.begin; }),
                    {begin, end, &tenant});
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
