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

  // A barrier comes before the next step.
  void barrier() { barrierDue_ = true; }

  // Everything before this step has ended, all-reduces too.
  void commit(uint32_t step) {
    uint32_t needs = flush(pending_.size());
    add({step, true, needs, false});
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

  // `before`: all-reduces that the other thread has had before.
  ExchangeOrder finish(const DeviceProgram &program, uint32_t before) {
    (void)flush(pending_.size());
    // From here on only all-reduces of the other thread count.
    std::vector<uint32_t> posted = {before}; // by number of all-reduces
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
    return {std::move(order_), posted.back(), {}};
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

// Moves the steps that write variables to the end, after the last all-reduce, as far as no later step needs their
// results.
class Committer {
public:
  Committer(const DeviceProgram &program, const BoundPhase &phase, const RangesOf &rangesOf, bool commits)
      : program_(program), phase_(phase), rangesOf_(rangesOf) {
    for (size_t i = phase.begin; commits && i < phase.end; ++i)
      if (!program.steps[i].kernel)
        lastAllReduce_ = i + 1;
  }

  ExchangeOrder order(uint32_t posted) {
    for (size_t i = phase_.begin; i < phase_.end; ++i) {
      const BoundStep &step = program_.steps[i];
      std::vector<Range> ranges = rangesOf_(step);
      if (step.writes && i < lastAllReduce_) {
        if (step.waits) // it ordered the launches around it too
          orderer_.barrier();
        deferred_.push_back({static_cast<uint32_t>(i), std::move(ranges)});
        continue;
      }
      size_t end = deferred_.size();
      while (end > 0 && !share(deferred_[end - 1].ranges, ranges))
        --end;
      if (i >= lastAllReduce_ && step.writes)
        end = deferred_.size();
      release(end, i < lastAllReduce_);
      if (i >= lastAllReduce_ && step.writes && lastAllReduce_ > 0)
        orderer_.commit(static_cast<uint32_t>(i));
      else
        add(static_cast<uint32_t>(i), std::move(ranges));
    }
    release(deferred_.size(), false);
    ExchangeOrder order = orderer_.finish(program_, posted);
    order.early = std::move(early_);
    return order;
  }

private:
  struct Deferred {
    uint32_t step;
    std::vector<Range> ranges;
  };

  void add(uint32_t step, std::vector<Range> ranges) {
    if (program_.steps[step].kernel)
      orderer_.launch(step, program_.steps[step], std::move(ranges));
    else
      orderer_.allReduce(step, std::move(ranges));
  }

  // Adds the first `end` deferred steps.
  void release(size_t end, bool isEarly) {
    for (size_t i = 0; i < end; ++i) {
      orderer_.barrier();
      if (isEarly) {
        early_.push_back(deferred_[i].step);
        add(deferred_[i].step, std::move(deferred_[i].ranges));
      } else {
        orderer_.commit(deferred_[i].step);
      }
      orderer_.barrier();
    }
    deferred_.erase(deferred_.begin(), deferred_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  const DeviceProgram &program_;
  BoundPhase phase_;
  const RangesOf &rangesOf_;
  size_t lastAllReduce_ = 0; // the number of steps up to it
  std::vector<Deferred> deferred_;
  std::vector<uint32_t> early_;
  Orderer orderer_;
};

} // namespace

ExchangeOrder overlapExchanges(const DeviceProgram &program, const RangesOf &rangesOf, bool commits) {
  return overlapExchanges(program, {0, static_cast<uint32_t>(program.steps.size()), false}, rangesOf, commits, 0);
}

ExchangeOrder overlapExchanges(const DeviceProgram &program, const BoundPhase &phase, const RangesOf &rangesOf,
                               bool commits, uint32_t posted) {
  return Committer(program, phase, rangesOf, commits).order(posted);
}

} // namespace mtrun
