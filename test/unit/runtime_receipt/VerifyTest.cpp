// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Verify.h"

#include <gtest/gtest.h>

using namespace mtrun;

namespace {

// A receipt with records every 10 steps, and the end at step 47.
Receipt receipt() {
  Receipt result;
  result.path = "r";
  result.every = 10;
  for (int64_t step = 0; step < 47; step += 10)
    result.lines.push_back({step, false, "{}"});
  result.lines.push_back({47, true, "{}"});
  return result;
}

std::vector<Window> windows(mtrun_verify_options options) {
  std::vector<Window> result;
  EXPECT_TRUE(chooseWindows(receipt(), options, result).ok());
  return result;
}

} // namespace

TEST(VerifyTest, WindowsReachRecords) {
  mtrun_verify_options options = mtrun_verify_options_init();
  EXPECT_EQ(windows(options), (std::vector<Window>{{0, 47}}));
  options.begin = 12;
  options.end = 18;
  EXPECT_EQ(windows(options), (std::vector<Window>{{10, 20}}));
  options.end = 41;
  EXPECT_EQ(windows(options), (std::vector<Window>{{10, 47}}));
  options.end = 48;
  std::vector<Window> none;
  EXPECT_EQ(chooseWindows(receipt(), options, none).message(),
            "r: expected a window inside steps 0 to 47, found steps 12 to 48");
}

TEST(VerifyTest, RandomWindowsAreDrawnOnceEach) {
  mtrun_verify_options options = mtrun_verify_options_init();
  options.windows = 2;
  bool different = false;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    int64_t records = 0;
    for (const Window &window : windows(options))
      records += (window.end - window.begin + 9) / 10;
    EXPECT_EQ(records, 2);
    EXPECT_EQ(windows(options), windows(options));
    mtrun_verify_options other = options;
    other.seed = options.seed + 1;
    different = different || windows(options) != windows(other);
  }
  EXPECT_TRUE(different);
  options.windows = 100;
  EXPECT_EQ(windows(options), (std::vector<Window>{{0, 47}}));
}

TEST(VerifyTest, WindowsThatTouchAreOne) {
  std::vector<Window> parts = {{30, 40}, {0, 10}, {10, 20}, {5, 12}};
  joinWindows(parts);
  EXPECT_EQ(parts, (std::vector<Window>{{0, 20}, {30, 40}}));
}
