// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/overlap.h"
#include "gtest/gtest.h"

using namespace mtrun;

namespace {

class OverlapTest : public testing::Test {
protected:
  void allReduce(std::initializer_list<Range> touched) { overlap.allReduce({touched.begin(), touched.end()}); }
  // What compute must wait for.
  int pass(std::initializer_list<Range> touched) {
    Overlap::Place place = overlap.launch({touched.begin(), touched.end()}, false);
    EXPECT_FALSE(place.onCommunication);
    return place.after;
  }
  bool updateIsOnCommunicator(std::initializer_list<Range> touched) {
    Overlap::Place place = overlap.launch({touched.begin(), touched.end()}, true);
    EXPECT_EQ(place.after, -1);
    return place.onCommunication;
  }

  Overlap overlap;
};

TEST_F(OverlapTest, NothingWaitsWithoutAnAllReduce) {
  EXPECT_EQ(pass({{0, 10}}), -1);
  EXPECT_FALSE(updateIsOnCommunicator({{0, 10}}));
  EXPECT_EQ(overlap.links(), 0);
}

TEST_F(OverlapTest, TheBackwardPassGoesOnBesideAllReducesAndUpdates) {
  allReduce({{0, 10}, {50, 60}});            // partial, result
  EXPECT_EQ(pass({{10, 20}, {20, 30}}), -1); // next to the partial sum, not in it
  EXPECT_TRUE(updateIsOnCommunicator({{50, 60}, {80, 90}}));
  EXPECT_EQ(pass({{10, 20}, {30, 40}}), -1);
  EXPECT_EQ(overlap.links(), 2);
}

TEST_F(OverlapTest, WhoeverReusesAPartialSumOrReadsAResultWaitsForTheLastThatTouchesIt) {
  allReduce({{0, 10}, {50, 60}});
  allReduce({{10, 20}, {60, 70}});
  EXPECT_TRUE(updateIsOnCommunicator({{50, 60}, {80, 90}}));
  EXPECT_EQ(pass({{9, 11}}), 1);   // both partial sums: the second
  EXPECT_EQ(pass({{0, 20}}), -1);  // known by now
  EXPECT_EQ(pass({{50, 51}}), 2);  // read by the update
  EXPECT_EQ(pass({{80, 90}}), -1); // known by now
}

TEST_F(OverlapTest, AnUpdateOfWhatComputeHasSeenDoneRunsThere) {
  allReduce({{0, 10}, {50, 60}});
  EXPECT_EQ(pass({{50, 60}, {60, 61}}), 0);
  EXPECT_FALSE(updateIsOnCommunicator({{50, 60}, {80, 90}}));
}

TEST_F(OverlapTest, AnUpdateFollowsAnotherOfTheSameState) {
  allReduce({{0, 10}, {50, 60}});
  EXPECT_TRUE(updateIsOnCommunicator({{50, 60}, {80, 90}}));
  EXPECT_TRUE(updateIsOnCommunicator({{80, 90}, {90, 95}}));
  EXPECT_FALSE(updateIsOnCommunicator({{95, 99}}));
}

} // namespace
