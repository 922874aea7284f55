// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Pack.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

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

static bool meet(const LiveBuffer &a, const LiveBuffer &b) { return a.first <= b.last && b.first <= a.last; }

namespace {
struct Placed {
  int64_t begin, end; // offsets
  const LiveBuffer *buffer;
};
} // namespace

// The offset of the tightest gap that holds the buffer between those that are alive with it; above all of them if none
// does. `placed` is sorted by offset.
static int64_t tightestGap(const std::vector<Placed> &placed, const LiveBuffer &buffer) {
  int64_t best = -1, bestSlack = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed &other : placed) {
    if (!meet(buffer, *other.buffer))
      continue;
    if (int64_t slack = other.begin - end - buffer.bytes; slack >= 0 && slack < bestSlack) {
      best = end;
      bestSlack = slack;
    }
    end = std::max(end, other.end);
  }
  return best >= 0 ? best : end;
}

static Packing packInOrder(std::span<const LiveBuffer> buffers, const std::vector<size_t> &order) {
  Packing packing;
  packing.offsets.resize(buffers.size());
  std::vector<Placed> placed;
  for (size_t index : order) {
    const LiveBuffer &buffer = buffers[index];
    int64_t begin = tightestGap(placed, buffer), end = begin + buffer.bytes;
    packing.offsets[index] = begin;
    packing.bytes = std::max(packing.bytes, end);
    if (buffer.bytes > 0)
      placed.insert(std::upper_bound(placed.begin(), placed.end(), begin,
                                     [](int64_t offset, const Placed &other) { return offset < other.begin; }),
                    {begin, end, &buffer});
  }
  return packing;
}

// The packing and, where it misses the bound, better ones: buffers that end above the bound move towards the front of
// the order, where there is more room, again and again.
static Packing packImproved(std::span<const LiveBuffer> buffers, std::vector<size_t> order, int64_t bound) {
  constexpr int attempts = 40; // more of them gain little
  Packing last = packInOrder(buffers, order), best = last;
  for (int attempt = 0; attempt < attempts && best.bytes > bound; ++attempt) {
    for (size_t place = 1; place < order.size(); ++place) {
      size_t index = order[place];
      auto at = order.begin() + static_cast<std::ptrdiff_t>(place);
      if (last.offsets[index] + buffers[index].bytes > bound)
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(place / 2), at, at + 1);
    }
    last = packInOrder(buffers, order);
    if (last.bytes < best.bytes)
      best = last;
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
  constexpr size_t many = 1000, tooMany = 4000; // an order takes time in the square of their number
  int64_t bound = livenessBound(buffers);
  Packing best;
  for (bool improves : {false, true})
    for (const auto &before : orders) {
      std::vector<size_t> order(buffers.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return before(buffers[a], buffers[b]); });
      Packing packing = improves ? packImproved(buffers, std::move(order), bound) : packInOrder(buffers, order);
      if (best.offsets.empty() || packing.bytes < best.bytes)
        best = std::move(packing);
      if (best.bytes == bound || buffers.size() > (improves ? many : tooMany))
        return best;
    }
  return best;
}

} // namespace mtc
