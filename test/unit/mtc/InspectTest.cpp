// SPDX-License-Identifier: Apache-2.0
#include "Model.h"

#include <gtest/gtest.h>

using namespace mtctest;

static Outcome inspect(const void *data, size_t size, bool json) {
  mtc_result *result = nullptr;
  mt_status *status = mtc_inspect(data, size, json, &result);
  return take(status, result);
}

TEST(Inspect, PrintsTextAndJson) {
  std::string plan = compile(model).bytes();
  Outcome text = inspect(plan.data(), plan.size(), false), json = inspect(plan.data(), plan.size(), true);
  ASSERT_EQ(text.code, MT_OK) << text.message;
  ASSERT_EQ(json.code, MT_OK) << json.message;
  EXPECT_TRUE(
      text.bytes().starts_with("plan of small: batch 32, 8 shards of 4 rows, mode exact, precision f32, seed 1\n"))
      << text.bytes();
  EXPECT_EQ(json.bytes().front(), '{');
  EXPECT_NE(json.bytes().find("\"model\": \"small\""), std::string::npos);
}

TEST(Inspect, ReadsAPlanAtAnyAddress) {
  std::string plan = compile(model).bytes();
  for (size_t shift = 1; shift < 9; ++shift) {
    std::string moved = std::string(shift, ' ') + plan;
    EXPECT_EQ(inspect(moved.data() + shift, plan.size(), true).code, MT_OK) << shift;
  }
}

TEST(Inspect, RefusesDamage) {
  std::string plan = compile(model).bytes();
  EXPECT_EQ(inspect(nullptr, 0, false).code, MT_CORRUPT);
  for (size_t size : {size_t{1}, size_t{63}, size_t{64}, plan.size() / 2, plan.size() - 1})
    EXPECT_EQ(inspect(plan.data(), size, false).code, MT_CORRUPT) << size;
  for (size_t at = 0; at < plan.size(); at += plan.size() / 97) {
    std::string damaged = plan;
    damaged[at] ^= 0x10;
    Outcome outcome = inspect(damaged.data(), damaged.size(), false);
    EXPECT_EQ(outcome.code, MT_CORRUPT) << at;
    EXPECT_FALSE(outcome.message.empty()) << at;
  }
}
