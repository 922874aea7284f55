// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Events.h"
#include "Fixtures.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun_tool;

static std::string hex(const std::string &bytes) {
  std::string text;
  for (char c : bytes)
    for (int shift : {4, 0})
      text += "0123456789abcdef"[c >> shift & 15];
  return text;
}

TEST(Events, Crc) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(Events, Records) {
  // As TensorBoard's own writer makes them.
  EXPECT_EQ(
      hex(versionRecord(1) + scalarRecord(2, 7, "loss", 0.5f)),
      "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a1a00000000000000129bd82d0900"
      "0000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST(Events, Files) {
  TempFolder folder;
  const char *names[] = {"loss", "val_loss"};
  double values[] = {0.5, 0.25}, step[] = {2};
  mtrun_progress p = {};
  p.metrics = 1;
  p.names = names;
  p.values = values;
  p.step_values = step;
  p.total_step = 1;
  p.learning_rate = NAN;
  EventLog log(folder.path("tb/run"));
  EXPECT_EQ(log.update(p), "");
  p.metrics = 2;
  p.validation = p.epoch_end = 1;
  EXPECT_EQ(log.update(p), "");
  auto contents = [&](const char *part) {
    auto files = std::filesystem::directory_iterator(folder.path("tb/run/") + part);
    return readFile((*begin(files)).path());
  };
  std::string train = contents("train"), held = contents("validation");
  EXPECT_NE(train.find("batch_loss"), std::string::npos);
  EXPECT_NE(train.find("epoch_loss"), std::string::npos);
  EXPECT_EQ(train.find("learning_rate"), std::string::npos);
  EXPECT_NE(held.find("epoch_loss"), std::string::npos);
  EXPECT_EQ(held.find("batch_"), std::string::npos);
  writeFile(folder.path("file"), "");
  EXPECT_NE(EventLog(folder.path("file")).update(p).find(": Not a directory"), std::string::npos);
}
