// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Pack.h"
#include "compiler/allocate/Occupied.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

namespace mtc {

int64_t livenessBound(std::span<const LiveBuffer> buffers) {
  std::map<int64_t, int64_t> change;
  for (const LiveBuffer &buffer : buffers) {
    change[buffer.first] += buffer.bytes;
    change[buffer.last + 1] -= buffer.bytes;
  }
  int64_t alive = 0, most = 0;
  for (auto [phase, bytes] : change)
    most = std::max(most, alive += bytes);
  return most;
}

static bool isFar(const Packing &packing, int64_t bound) { return packing.bytes - bound > bound / 500; }

using Order = std::vector<size_t>;

template <typename Occupied>
static Packing packInto(Occupied occupied, std::span<const LiveBuffer> buffers, const Order &order) {
  Packing packing;
  packing.offsets.resize(buffers.size());
  for (size_t index : order) {
    const LiveBuffer &buffer = buffers[index];
    int64_t begin = occupied.tightestGap(buffer);
    packing.offsets[index] = begin;
    packing.bytes = std::max(packing.bytes, begin + buffer.bytes);
    if (buffer.bytes > 0)
      occupied.place(buffer, begin);
  }
  return packing;
}

constexpr size_t many = 1000; // number of buffers from which the tree is faster than the list

static Packing packInOrder(std::span<const LiveBuffer> buffers, const Order &order) {
  return buffers.size() > many ? packInto(OccupiedTree(buffers), buffers, order)
                               : packInto(OccupiedList(buffers), buffers, order);
}

// Packs the buffers, then improves the order: buffers that end above the bound move towards the front, where there is
// more room, repeatedly.
static Packing packImproved(std::span<const LiveBuffer> buffers, Order order, int64_t bound) {
  constexpr int attempts = 40; // more attempts gain little
  Packing last = packInOrder(buffers, order), best = last;
  for (int attempt = 0; attempt < attempts && best.bytes > bound; ++attempt) {
    for (size_t position = 1; position < order.size(); ++position) {
      size_t index = order[position];
      auto at = order.begin() + static_cast<std::ptrdiff_t>(position);
      if (last.offsets[index] + buffers[index].bytes > bound)
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(position / 2), at, at + 1);
    }
    last = packInOrder(buffers, order);
    if (last.bytes < best.bytes)
      best = last;
  }
  return best;
}

// Local search, if no rule comes close to the bound: moves a buffer that ends above the bound to an earlier position of
// the order, and keeps the order unless it is worse. The result is deterministic, because the C++ standard defines the
// numbers of the generator.
static Packing packBySearch(std::span<const LiveBuffer> buffers, Order order, int64_t bound) {
  constexpr size_t comparisons = 100'000'000; // takes a fraction of a second
  std::minstd_rand random;
  Packing best = packInOrder(buffers, order);
  size_t attempts = comparisons / (buffers.size() * buffers.size());
  for (size_t attempt = 0; attempt < attempts && isFar(best, bound); ++attempt) {
    Order above; // positions in the order
    for (size_t position = 1; position < order.size(); ++position)
      if (best.offsets[order[position]] + buffers[order[position]].bytes > bound)
        above.push_back(position);
    if (above.empty())
      break;
    size_t from = above[random() % above.size()], to = random() % from;
    Order changed = order;
    auto at = [&](size_t position) { return changed.begin() + static_cast<std::ptrdiff_t>(position); };
    std::rotate(at(to), at(from), at(from + 1));
    Packing packing = packInOrder(buffers, changed);
    if (packing.bytes <= best.bytes) {
      best = std::move(packing);
      order = std::move(changed);
    }
  }
  return best;
}

Packing packBuffers(std::span<const LiveBuffer> buffers) {
  auto length = [](const LiveBuffer &buffer) { return buffer.last - buffer.first + 1; };
  const std::function<bool(const LiveBuffer &, const LiveBuffer &)> orders[] = {
      [](const LiveBuffer &a, const LiveBuffer &b) { return a.bytes > b.bytes; },
      [](const LiveBuffer &a, const LiveBuffer &b) { return a.first < b.first; },
      [&](const LiveBuffer &a, const LiveBuffer &b) { return length(a) > length(b); },
      [&](const LiveBuffer &a, const LiveBuffer &b) { return a.bytes * length(a) > b.bytes * length(b); },
      [](const LiveBuffer &a, const LiveBuffer &b) { return a.last > b.last; },
  };
  constexpr size_t tooMany = 4000; // with more buffers, one order is tried
  int64_t bound = livenessBound(buffers);
  auto sorted = [&](const auto &before) {
    Order order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return before(buffers[a], buffers[b]); });
    return order;
  };
  Packing best;
  auto keep = [&](Packing packing) {
    if (best.offsets.empty() || packing.bytes < best.bytes)
      best = std::move(packing);
  };
  for (bool improves : {false, true})
    for (const auto &before : orders) {
      keep(improves ? packImproved(buffers, sorted(before), bound) : packInOrder(buffers, sorted(before)));
      if (best.bytes == bound || buffers.size() > (improves ? many : tooMany))
        return best;
    }
  for (const auto &before : orders)
    if (isFar(best, bound))
      keep(packBySearch(buffers, sorted(before), bound));
  return best;
}

} // namespace mtc
