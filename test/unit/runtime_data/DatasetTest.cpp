// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dataset.h"
#include "Fixtures.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace fixtures;

namespace {

class Data : public testing::Test {
protected:
  std::string problem(const std::string &keys = "") {
    mtrun_dataset *data = nullptr;
    std::string result = text(mtrun_dataset_open(plan.get(), ("mnist:" + folder.path() + keys).c_str(), &data));
    mtrun_dataset_free(data);
    for (size_t at; (at = result.find(folder.path() + "/")) != std::string::npos;)
      result.erase(at, folder.path().size() + 1);
    return result;
  }

  TempFolder folder;
  Owned<mtrun_plan> plan = emptyPlan(4);
};

} // namespace

TEST_F(Data, Gathers) {
  writeSmallMnist(folder, std::string("\0\1\2\3\0", 5));
  Owned<mtrun_dataset> data = openData(plan.get(), "mnist:" + folder.path() + ",range=1:5");
  ASSERT_EQ(mtrun_dataset_size(data.get()), 4);
  int64_t rows[2] = {data->sample(3), data->sample(0)};
  float pixels[12];
  int32_t labels[2];
  data->columns[0].gather(rows, 2, pixels);
  data->columns[1].gather(rows, 2, labels);
  for (int p = 0; p < 6; ++p) {
    EXPECT_EQ(pixels[p], static_cast<float>(24 + p) / 255.0f); // sample 4
    EXPECT_EQ(pixels[6 + p], static_cast<float>(6 + p) / 255.0f);
  }
  EXPECT_EQ(labels[0], 0);
  EXPECT_EQ(labels[1], 1);
  Owned<mtrun_dataset> unscaled = openData(plan.get(), "mnist:" + folder.path() + ",scale=1");
  unscaled->columns[0].gather(rows + 1, 1, pixels);
  EXPECT_EQ(pixels[5], 11.0f); // of sample 1
}

TEST_F(Data, OrderCoversTheRange) {
  writeSmallMnist(folder, std::string("\0\1\2\3\0", 5));
  Owned<mtrun_dataset> data = openData(plan.get(), "mnist:" + folder.path() + ",range=2:5");
  int64_t order[3];
  mtrun_dataset_order(data.get(), 1, 0, order);
  EXPECT_EQ(order[0] + order[1] + order[2], 3);
}

TEST_F(Data, BindsByName) {
  writeSmallMnist(folder, std::string("\0\1", 2));
  Owned<mtrun_dataset> data = openData(plan.get(), "mnist:" + folder.path());
  mtrun::Binding binding;
  ASSERT_EQ(text(data->bind("train_step", binding)), "0");
  EXPECT_EQ(binding.columns, (std::vector<int>{0, 1}));
  ASSERT_EQ(text(data->bind("predict", binding)), "0");
  EXPECT_EQ(binding.columns, (std::vector<int>{0, mtrun::Binding::output}));
  EXPECT_EQ(text(data->bind("tune", binding)), "1: the plan has no program \"tune\"");
}

TEST_F(Data, Messages) {
  EXPECT_EQ(problem(),
            "7: cannot open train-images-idx3-ubyte or train-images-idx3-ubyte.gz: No such file or directory");
  writeSmallMnist(folder, std::string("\0\1\4\3\0", 5));
  EXPECT_EQ(problem(), "1: train-labels-idx1-ubyte: sample 2 has label 4, expected 0 to 3");
  EXPECT_EQ(problem(",range=0:2"), "0");
  EXPECT_EQ(problem(",classes=5"), "0");
  EXPECT_EQ(problem(",classes=2"), "1: train-labels-idx1-ubyte: sample 2 has label 4, expected 0 to 1");
  EXPECT_EQ(problem(",range=2:6"), "1: data: the range 2:6 is not within the 5 samples of train-images-idx3-ubyte");
  writeFile(folder.path("train-labels-idx1-ubyte"), idx({4}, std::string(4, '\0')));
  EXPECT_EQ(problem(), "1: train-images-idx3-ubyte has 5 samples, train-labels-idx1-ubyte has 4");
  writeFile(folder.path("train-images-idx3-ubyte"), idx({4, 2, 2}, std::string(16, 'x')));
  EXPECT_EQ(problem(), "1: train-images-idx3-ubyte: samples of u8 [2, 2] do not fit input \"image\": f32 [?, 2, 3]");
  writeFile(folder.path("train-images-idx3-ubyte"), idx({0, 2, 3}, ""));
  writeFile(folder.path("train-labels-idx1-ubyte"), idx({0}, ""));
  EXPECT_EQ(problem(), "1: train-images-idx3-ubyte: expected samples, found none");
}

TEST_F(Data, Slices) {
  writeSmallMnist(folder, std::string("\0\1\2\3\0", 5));
  Owned<mtrun_dataset> data = openData(plan.get(), "mnist:" + folder.path() + ",range=1:5,scale=1");
  mtrun_dataset *slice = nullptr;
  ASSERT_EQ(text(mtrun_dataset_slice(data.get(), 1, 3, &slice)), "0");
  Owned<mtrun_dataset> part(slice);
  data.reset();
  ASSERT_EQ(mtrun_dataset_size(part.get()), 2);
  int64_t row = part->sample(1);
  float pixels[6];
  part->columns[0].gather(&row, 1, pixels);
  EXPECT_EQ(pixels[0], 18.0f); // sample 3
  EXPECT_EQ(text(mtrun_dataset_slice(part.get(), 1, 3, &slice)),
            "1: slice: expected samples BEGIN:END within 2 with BEGIN < END, found 1:3");
}
