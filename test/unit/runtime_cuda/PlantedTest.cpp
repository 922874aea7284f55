// SPDX-License-Identifier: Apache-2.0
//
// Faults that a test plants in a plan, and that simulated GPUs show: by another order of independent work, and by
// another number of devices.
#include "../runtime/Training.h"

#include "Child.h"

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

constexpr const char *otherBits = "other bits";

// Trains a plan with a fault; the status says whether the bits are those of the plan without it.
Status trainsAsExpected(const char *devices, const std::function<void(fb::PlanT &)> &fault) {
  TestPlanShape shape = {21, 8, 37, true};
  Loaded loaded(shape, fault);
  Samples samples(shape, 3);
  LinearModel want = expected(shape, samples);
  std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
  return trained(*session, shape, samples) == want ? Status() : Status{MT_DEVICE, otherBits};
}

// Number of the simulated driver's orders in which a fault changes bits.
int ordersThatShow(const char *devices, const std::function<void(fb::PlanT &)> &fault) {
  int found = 0;
  for (int order = 1; order <= 6; ++order) {
    std::string outcome = inChild({{"MTC_SIM_DEVICES", "8"}, {"MTC_SIM_ORDER", std::to_string(order)}},
                                  [&] { return trainsAsExpected(devices, fault); });
    if (outcome != "0") {
      EXPECT_NE(outcome.find(otherBits), std::string::npos) << outcome;
      ++found;
    }
  }
  return found;
}

void nothing(fb::PlanT &) {}

TEST(PlantedFaults, AMissingEdgeShowsInAnotherOrder) {
  // The gradient reads the differences, for which it no longer waits.
  auto missingEdge = [](fb::PlanT &plan) { plan.programs[1]->steps[1]->wait = fb::Wait::None; };
  for (const char *devices : {"cuda:0", "cuda:0-2"}) {
    EXPECT_EQ(ordersThatShow(devices, nothing), 0) << devices;
    EXPECT_GT(ordersThatShow(devices, missingEdge), 0) << devices;
  }
}

TEST(PlantedFaults, AStatisticOverAShardsEndShowsOnAnotherNumberOfDevices) {
  auto beyond = [](fb::PlanT &plan) { plan.kernels[4]->name = "loss_beyond"; };
  auto outcomeOn = [&](const char *devices) {
    return inChild({{"MTC_SIM_DEVICES", "8"}}, [&] { return trainsAsExpected(devices, beyond); });
  };
  EXPECT_EQ(outcomeOn("cuda:0-7"), "0"); // no device has a row behind its only shard
  for (const char *devices : {"cuda:0", "cuda:0-1", "cuda:0-2"})
    EXPECT_NE(outcomeOn(devices).find(otherBits), std::string::npos) << devices;
}

} // namespace
} // namespace mtrun::test
