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

TEST(Events, Records) {
  // As TensorBoard's own writer makes them.
  EXPECT_EQ(
      hex(versionRecord(1) + scalarRecord(2, 7, "loss", 0.5f)),
      "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a1a00000000000000129bd82d0900"
      "0000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST(Events, Histograms) {
  const float values[] = {0, 1, 2, 3, 3, NAN, INFINITY};
  Histogram h = histogramOf(values);
  EXPECT_EQ(h.count, 5);
  EXPECT_EQ(h.least, 0);
  EXPECT_EQ(h.largest, 3);
  EXPECT_EQ(h.sum, 9);
  EXPECT_EQ(h.sumOfSquares, 23);
  ASSERT_EQ(h.counts.size(), 30u);
  EXPECT_EQ(h.limits.back(), 3);
  EXPECT_EQ(h.counts[0], 1);
  EXPECT_EQ(h.counts[10], 1);
  EXPECT_EQ(h.counts[20], 1);
  EXPECT_EQ(h.counts[29], 2);
  // Equal values have one bucket, no values none.
  const float equal[] = {2, 2};
  EXPECT_EQ(histogramOf(equal).counts, std::vector<int64_t>{2});
  EXPECT_EQ(histogramOf(equal).limits, std::vector<double>{2});
  EXPECT_TRUE(histogramOf(std::span(values).subspan(5)).counts.empty());
  // HistogramProto: min, max, num, sum, sum of squares, bucket_limit, bucket; packed doubles.
  std::string record = hex(histogramRecord(2, 7, "w", histogramOf(equal)));
  EXPECT_NE(record.find("0a01772a41" // tag "w", histo of 65 bytes
                        "090000000000000040"
                        "110000000000000040"
                        "190000000000000040"
                        "210000000000001040"
                        "290000000000002040"
                        "32080000000000000040"
                        "3a080000000000000040"),
            std::string::npos)
      << record;
}

TEST(Events, GraphAndText) {
  std::string graph = hex(graphRecord(1, {{"x", "input", {}}, {"d/k", "matmul", {"x"}}}));
  EXPECT_NE(graph.find("2222" // graph_def of 34 bytes
                       "0a0a0a01781205696e707574"
                       "0a100a03642f6b12066d61746d756c1a0178"
                       "22020816"),
            std::string::npos)
      << graph;
  std::string text = hex(textRecord(1, "run", "hi"));
  EXPECT_NE(text.find("0a0372756e"
                      "42080807120042026869"
                      "4a0a0a060a047465787420"
                      "02"),
            std::string::npos)
      << text;
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
