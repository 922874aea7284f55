// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/BatchStream.h"
#include "Fixtures.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

class Stream : public testing::Test {
protected:
  void SetUp() override {
    writeSmallMnist(folder, std::string("\0\1\2\3\0\1\2", 7));
    data = openData(plan.get(), "mnist:" + folder.path() + ",scale=1");
    ASSERT_TRUE(data->bind("train_step", binding).ok());
  }
  // The samples of the next batch: pixel 0 of sample s is 6 s.
  static std::vector<int64_t> samples(const Batch &batch) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < batch.rows; ++i) {
      result.push_back(static_cast<int64_t>(static_cast<float *>(batch.tensors[0])[i * 6]) / 6);
      EXPECT_EQ(static_cast<int32_t *>(batch.tensors[1])[i], result.back() % 4);
    }
    return result;
  }

  TempFolder folder;
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_dataset> data;
  Binding binding;
};

} // namespace

TEST_F(Stream, InOrderWithAShortBatch) {
  BatchStream stream(*data, binding, {.batch = 4, .epochs = 2});
  ASSERT_EQ(stream.stepsPerEpoch(), 2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(samples(stream.next()), (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(samples(stream.next()), (std::vector<int64_t>{4, 5, 6}));
  }
}

TEST_F(Stream, DropsTheRemainder) {
  BatchStream stream(*data, binding, {.batch = 4, .epochs = 2, .dropRemainder = true});
  ASSERT_EQ(stream.stepsPerEpoch(), 1);
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(samples(stream.next()), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(Stream, ShufflesAsTheDatasetSays) {
  BatchStream stream(*data, binding, {.batch = 3, .epochs = 50, .shuffle = true, .seed = 9});
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    std::vector<int64_t> seen, expected(7);
    for (int64_t step = 0; step < stream.stepsPerEpoch(); ++step)
      for (int64_t sample : samples(stream.next()))
        seen.push_back(sample);
    mtrun_dataset_order(data.get(), 9, epoch, expected.data());
    EXPECT_EQ(seen, expected);
  }
}

// Processes with rows 0 and 1 to 2 of batches of 4 together have what one process has, and read no more. The second
// batch has 3 samples, of which a process with row 3 has none.
TEST_F(Stream, ReadsItsOwnRows) {
  StreamOptions all = {.batch = 4, .epochs = 3, .shuffle = true, .seed = 9};
  BatchStream whole(*data, binding, all);
  auto part = [&](int64_t first, int64_t rows) {
    StreamOptions options = all;
    options.firstRow = first;
    options.needed = rows;
    return options;
  };
  BatchStream first(*data, binding, part(0, 1)), second(*data, binding, part(1, 2)), last(*data, binding, part(3, 1));
  for (int64_t step = 0; step < 6; ++step) {
    std::vector<int64_t> expected = samples(whole.next()), seen;
    for (BatchStream *stream : {&first, &second, &last}) {
      const Batch &batch = stream->next();
      EXPECT_EQ(batch.rows, static_cast<int64_t>(expected.size()));
      for (int64_t row = batch.begin; row < batch.end; ++row)
        seen.push_back(static_cast<int64_t>(static_cast<float *>(batch.tensors[0])[row * 6]) / 6);
    }
    EXPECT_EQ(seen, expected);
  }
  int64_t sample = whole.read().bytes / 21; // 7 samples, 3 times
  EXPECT_GT(sample, 0);
  EXPECT_EQ(first.read().bytes, 6 * sample);
  EXPECT_EQ(second.read().bytes, 12 * sample);
  EXPECT_EQ(last.read().bytes, 3 * sample);
}

TEST_F(Stream, EndsAtAnyPoint) {
  for (int taken = 0; taken < 6; ++taken) {
    BatchStream stream(*data, binding, {.batch = 4, .epochs = 1000});
    for (int i = 0; i < taken; ++i)
      stream.next();
  }
}
