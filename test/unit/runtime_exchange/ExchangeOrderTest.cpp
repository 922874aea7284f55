// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ExchangeOrder.h"
#include "runtime/device/ExchangeThread.h"

#include <atomic>
#include <gtest/gtest.h>
#include <string>

namespace mtrun {
namespace {

// A program whose steps access pieces of memory that have letters: A to Z, of one byte each.
class Steps {
public:
  Steps &launch(const std::string &memory, bool waits = false) { return add(memory, waits, false); }
  Steps &update(const std::string &memory, bool waits = false) { return add(memory, waits, true); }
  Steps &write(const std::string &memory, bool waits = false) { // of variables
    add(memory, waits, true);
    program_.steps.back().writes = true;
    return *this;
  }
  Steps &allReduce(const std::string &memory) {
    add(memory, false, false);
    program_.steps.back().kernel = nullptr;
    return *this;
  }

  Steps &gather(const std::string &memory) {
    allReduce(memory);
    program_.steps.back().gathers = true;
    return *this;
  }

  // Returns the order as text: the number of a step, "|" before it for a barrier, "<N" for all-reduces of the other
  // thread that must have ended, "!" for an all-reduce in place. Then the steps that write
  // variables early.
  std::string order(bool commits = true) { return textOf(overlapExchanges(program_, ranges(), commits)); }

  // The order of a phase, then how many all-reduces the other thread has had after it.
  std::string phase(uint32_t begin, uint32_t end, uint32_t posted) {
    ExchangeOrder found = overlapExchanges(program_, {begin, end, true}, ranges(), /*commits=*/true, posted);
    return textOf(found) + "; " + std::to_string(found.posted);
  }

private:
  RangesOf ranges() const {
    return [this](const BoundStep &step) {
      std::vector<Range> ranges;
      for (char letter : memory_[step.index])
        ranges.push_back({static_cast<uint64_t>(letter), static_cast<uint64_t>(letter) + 1});
      return ranges;
    };
  }

  static std::string textOf(const ExchangeOrder &found) {
    std::string text;
    for (const OrderedStep &step : found.steps)
      text += (text.empty() ? "" : " ") + std::string(step.waits ? "|" : "") + std::to_string(step.step) +
              (step.needs ? "<" + std::to_string(step.needs) : "") + (step.inPlace ? "!" : "");
    for (uint32_t step : found.early)
      text += " early " + std::to_string(step);
    return text;
  }

  Steps &add(const std::string &memory, bool waits, bool isUpdate) {
    BoundStep step = {};
    step.kernel = this;
    step.waits = waits;
    step.isUpdate = isUpdate;
    step.index = static_cast<uint32_t>(memory_.size());
    program_.steps.push_back(step);
    memory_.push_back(memory);
    return *this;
  }

  DeviceProgram program_;
  std::vector<std::string> memory_;
};

TEST(ExchangeOrderTest, LaunchesThatNeedNothingRunMeanwhile) {
  EXPECT_EQ(Steps().launch("A").allReduce("AR").launch("B").launch("C").launch("RB").order(), "0 1 2 3 |4<1");
}

TEST(ExchangeOrderTest, AnAllReduceThatTheNextStepNeedsIsInPlace) {
  EXPECT_EQ(Steps().launch("A").allReduce("AR").launch("R").launch("B").order(), "0 1! |2 3");
  EXPECT_EQ(Steps().allReduce("AR").order(), "0!");
  // The next step needs an earlier one only.
  EXPECT_EQ(Steps().allReduce("AR").allReduce("BS").launch("R").launch("S").order(), "0 1 |2<1 |3<2");
  EXPECT_EQ(Steps().allReduce("AR").allReduce("BS").launch("S").order(), "0 1<1! |2<1");
}

TEST(ExchangeOrderTest, UpdatesAreDeferred) {
  EXPECT_EQ(Steps().allReduce("AR").update("RV").launch("B").allReduce("BS").update("SW").order(), "0 2 3 |1<1 |4<2");
  // An update without an all-reduce runs at once.
  EXPECT_EQ(Steps().update("V").allReduce("AR").launch("B").order(), "0 1 2");
}

// No variable changes before the last all-reduce has ended: a process that is lost meanwhile leaves the others with
// variables of one step.
TEST(ExchangeOrderTest, VariablesAreWrittenAfterTheLastAllReduce) {
  EXPECT_EQ(Steps().allReduce("AR").write("RV").launch("B").allReduce("BS").write("SW").order(), "0 2 3<1! |1<1 |4");
  // A write that needs no all-reduce, and one whose barrier ordered other launches too.
  EXPECT_EQ(Steps().write("V").launch("A").allReduce("AR").write("RW").order(), "1 2! |0 |3");
  EXPECT_EQ(Steps().launch("A").write("V", true).launch("A").allReduce("BR").write("RW").order(), "0 |2 3! |1 |4");
  // All that were posted have ended before the first write, even if it needs the first of them.
  EXPECT_EQ(Steps().allReduce("AR").allReduce("BS").launch("C").write("RV").write("SW").order(), "0 1 2 |3<2 |4");
  // A later step needs the new value: it is written early.
  EXPECT_EQ(Steps().allReduce("AR").write("RV").launch("VB").allReduce("BS").write("SW").order(),
            "0! |1 |2 3! |4 early 1");
  EXPECT_EQ(Steps().allReduce("AR").write("RV").allReduce("VS").write("SW").order(), "0! |1 |2! |3 early 1");
  EXPECT_EQ(Steps().write("V").launch("V").order(), "0 1");
}

// In micro-batches each phase has an order of its own. Numbers of all-reduces go on from phase to phase.
TEST(ExchangeOrderTest, PhasesHaveOrdersOfTheirOwn) {
  Steps steps;
  steps.launch("A").allReduce("AR").launch("B").launch("RB").allReduce("BS").launch("C").write("RV").launch("S");
  EXPECT_EQ(steps.phase(0, 4, 0), "0 1 2 |3<1; 1");
  EXPECT_EQ(steps.phase(4, 8, 1), "4 5<1 |6<2 7<1; 2");
}

// With a divided optimizer each part is updated as soon as its gradient is complete, and gathered while the next is
// updated.
TEST(ExchangeOrderTest, PartsAreGatheredDuringUpdates) {
  EXPECT_EQ(Steps().allReduce("AR").write("RV").launch("B").allReduce("BS").write("SW").gather("V").gather("W").order(
                /*commits=*/false),
            "0 2 3 |1<1 |5 |4<2 |6<3!");
  // A launch waits for the gather of what it reads.
  EXPECT_EQ(Steps().allReduce("AR").write("RV").gather("V").launch("C").launch("V").order(false), "0! |1 |2 3 |4<1");
}

// A launch that reads a variable follows its update, and launches after it need its barrier.
TEST(ExchangeOrderTest, MemoryOfADeferredUpdateKeepsItsOrder) {
  EXPECT_EQ(Steps().allReduce("AR").update("RV").launch("B").launch("V").launch("C").order(), "0 2 |1<1 |3<1 4");
  // An all-reduce that writes where the update reads.
  EXPECT_EQ(Steps().allReduce("AR").update("RV").launch("B").allReduce("BR").order(), "0 2 |1<1 |3<1!");
}

// The barrier before a deferred step also ordered the launches around it.
TEST(ExchangeOrderTest, ADeferredStepLeavesItsBarrier) {
  EXPECT_EQ(Steps().launch("B").allReduce("AR").update("RV", true).launch("B").order(), "0 1 |3 |2<1");
}

TEST(ExchangeThreadTest, RunsWhatIsPostedInOrder) {
  std::vector<uint32_t> ran;
  ExchangeThread thread;
  ASSERT_TRUE(thread.start([&](uint32_t number) { ran.push_back(number); }, 8).ok());
  for (int run = 0; run < 100; ++run) {
    thread.reset();
    ran.clear();
    thread.post(3);
    thread.post(1);
    thread.wait(1);
    thread.post(2);
    thread.wait(3);
    ASSERT_EQ(ran, std::vector<uint32_t>({3, 1, 2}));
  }
}

TEST(ExchangeThreadTest, EndsWithoutWork) {
  ExchangeThread never, idle;
  never.wait(0);
  EXPECT_TRUE(idle.start([](uint32_t) {}, 1).ok());
}

} // namespace
} // namespace mtrun
