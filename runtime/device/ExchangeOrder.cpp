// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ExchangeOrder.h"

#include <algorithm>

namespace mtrun {
namespace {

bool share(const std::vector<Range> &left, const std::vector<Range> &right) {
  return std::ranges::any_of(left, [&](const Range &a) {
    return std::ranges::any_of(right, [&](const Range &b) { return a.begin < b.end && b.begin < a.end; });
  });
}

class Orderer {
public:
  void allReduce(uint32_t step, std::vector<Range> ranges) {
    // All-reduces run in order, so only deferred updates have to come first.
    size_t end = pending_.size();
    while (end > 0 && (!pending_[end - 1].isUpdate || !share(pending_[end - 1].ranges, ranges)))
      --end;
    (void)flush(end);
    add({step, false, 0, false});
    ++allReduces_;
    pending_.push_back({step, false, std::move(ranges), allReduces_});
  }

  void launch(uint32_t step, const BoundStep &bound, std::vector<Range> ranges) {
    size_t end = pending_.size();
    while (end > 0 && !share(pending_[end - 1].ranges, ranges))
      --end;
    if (end > 0 && bound.isUpdate) {
      barrierDue_ = barrierDue_ || bound.waits;
      pending_.push_back({step, true, std::move(ranges), 0});
      return;
    }
    uint32_t needs = flush(end);
    add({step, bound.waits || needs > 0, needs, false});
  }

  std::vector<OrderedStep> finish(const DeviceProgram &program) {
    (void)flush(pending_.size());
    // From here on only all-reduces of the other thread count.
    std::vector<uint32_t> posted = {0}; // by number of all-reduces
    for (size_t i = 0; i < order_.size(); ++i) {
      OrderedStep &step = order_[i];
      if (program.steps[step.step].kernel) {
        step.needs = posted[step.needs];
        continue;
      }
      step.inPlace = i + 1 == order_.size() || order_[i + 1].needs >= posted.size();
      step.needs = step.inPlace ? posted.back() : 0;
      posted.push_back(posted.back() + !step.inPlace);
    }
    return std::move(order_);
  }

private:
  // An all-reduce that may be running, or a deferred update.
  struct Pending {
    uint32_t step;
    bool isUpdate;
    std::vector<Range> ranges;
    uint32_t ordinal; // of an all-reduce: its number, from 1
  };

  void add(OrderedStep step) {
    step.waits = step.waits || barrierDue_;
    barrierDue_ = false;
    order_.push_back(step);
  }

  // Waits for the first `end` pending entries, and runs the updates among them. Returns the number of all-reduces that
  // the next step needs.
  uint32_t flush(size_t end) {
    uint32_t needs = 0;
    for (size_t i = 0; i < end; ++i) {
      if (pending_[i].isUpdate)
        add({pending_[i].step, true, needs, false});
      else
        needs = pending_[i].ordinal;
      barrierDue_ = true;
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(end));
    return needs;
  }

  std::vector<OrderedStep> order_;
  std::vector<Pending> pending_;
  uint32_t allReduces_ = 0;
  bool barrierDue_ = false; // a step with a barrier was deferred, or an update has run
};

} // namespace

std::vector<OrderedStep> overlapExchanges(const DeviceProgram &program,
                                          const std::function<std::vector<Range>(const BoundStep &step)> &rangesOf) {
  Orderer orderer;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const BoundStep &step = program.steps[i];
    auto index = static_cast<uint32_t>(i);
    if (step.kernel)
      orderer.launch(index, step, rangesOf(step));
    else
      orderer.allReduce(index, rangesOf(step));
  }
  return orderer.finish(program);
}

} // namespace mtrun
