// SPDX-License-Identifier: Apache-2.0
//
// A share held out of data that is sorted by class once held out whole classes, and training never saw them.
#include "runtime/data/Split.h"
#include "Fixtures.h"
#include "runtime/data/Labels.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace fixtures;

namespace {

class Split : public testing::Test {
protected:
  // Labels 0 to 3, sorted, of 40, 30, 20 and 10 samples.
  void SetUp() override {
    std::string labels;
    for (int label = 0; label < 4; ++label)
      labels.append(static_cast<size_t>(40 - 10 * label), static_cast<char>(label));
    writeSmallMnist(folder, labels);
    data = openData(plan.get(), "mnist:" + folder.path());
  }
  std::string split(const mtrun_dataset *of, double share, int64_t seed) {
    mtrun_dataset *kept = nullptr, *held = nullptr;
    std::string result = text(mtrun_dataset_split(of, share, seed, &kept, &held));
    training.reset(kept);
    validation.reset(held);
    return result;
  }
  static std::vector<int64_t> samples(const mtrun_dataset *of) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < of->size; ++i)
      all.push_back(of->sample(i));
    return all;
  }
  static std::map<int64_t, int> classes(const mtrun_dataset *of) {
    std::map<int64_t, int> counts;
    for (int64_t sample : samples(of))
      ++counts[of->columns[1].classOf(sample).value_or(-1)];
    return counts;
  }

  TempFolder folder;
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_dataset> data, training, validation;
};

} // namespace

TEST_F(Split, EachClassGivesTheSameShare) {
  ASSERT_EQ(split(data.get(), 0.2, 1), "0");
  EXPECT_EQ(classes(validation.get()), (std::map<int64_t, int>{{0, 8}, {1, 6}, {2, 4}, {3, 2}}));
  EXPECT_EQ(classes(training.get()), (std::map<int64_t, int>{{0, 32}, {1, 24}, {2, 16}, {3, 8}}));
  std::vector<int64_t> kept = samples(training.get()), held = samples(validation.get());
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()) && std::is_sorted(held.begin(), held.end()));
  std::set<int64_t> all(kept.begin(), kept.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 100u);
  EXPECT_TRUE(training->notes.empty() && validation->notes.empty());
}

TEST_F(Split, IsAFunctionOfTheSeed) {
  ASSERT_EQ(split(data.get(), 0.2, 1), "0");
  std::vector<int64_t> first = samples(validation.get());
  ASSERT_EQ(split(data.get(), 0.2, 1), "0");
  EXPECT_EQ(samples(validation.get()), first);
  ASSERT_EQ(split(data.get(), 0.2, 2), "0");
  EXPECT_NE(samples(validation.get()), first);
}

// The known samples of a seed: a run that is resumed by a later version holds out the same.
TEST_F(Split, StaysTheSame) {
  ASSERT_EQ(split(data.get(), 0.05, 7), "0");
  EXPECT_EQ(classes(validation.get()), (std::map<int64_t, int>{{0, 2}, {1, 2}, {2, 1}}));
  EXPECT_EQ(samples(validation.get()), (std::vector<int64_t>{6, 26, 51, 56, 73}));
}

TEST_F(Split, NamesTheClassesThatAPartLacks) {
  ASSERT_EQ(split(data.get(), 0.05, 1), "0");
  ASSERT_EQ(validation->notes.size(), 1u);
  EXPECT_EQ(validation->notes[0], "the 5 samples held out to validate on: expected samples of each of the 4 classes, "
                                  "found none of 1: 3");
  std::unique_ptr<mtrun_dataset> kept, held;
  ASSERT_EQ(text(mtrun::splitDataset(*data, {0.1, true, 1}, kept, held)), "0");
  EXPECT_EQ(samples(held.get()), (std::vector<int64_t>{90, 91, 92, 93, 94, 95, 96, 97, 98, 99}));
  EXPECT_EQ(kept->notes, (std::vector<std::string>{"the 90 samples left to train on: expected samples of each of the 4 "
                                                   "classes, found none of 1: 3"}));
}

TEST_F(Split, OfARange) {
  mtrun_dataset *slice = nullptr;
  ASSERT_EQ(text(mtrun_dataset_slice(data.get(), 60, 100, &slice)), "0");
  Owned<mtrun_dataset> part(slice);
  ASSERT_EQ(split(part.get(), 0.5, 3), "0");
  for (int64_t sample : samples(validation.get()))
    EXPECT_GE(sample, 60);
  EXPECT_EQ(validation->size, 20);
  ASSERT_EQ(text(mtrun_dataset_slice(validation.get(), 5, 8, &slice)), "0");
  part.reset(slice);
  EXPECT_EQ(part->sample(0), samples(validation.get())[5]);
}

// Labels of another folder were numbered anew.
TEST(Labels, AreNumberedByName) {
  Owned<mtrun_plan> plan = emptyPlan(4);
  std::vector<float> images(4 * 6);
  std::vector<int64_t> labels = {0, 1, 1, 0};
  int64_t shape[2] = {2, 3};
  mtrun_field fields[] = {{"image", MT_F32, 2, shape, images.data(), MTRUN_DENSE},
                          {"label", MT_I64, 0, nullptr, labels.data(), MTRUN_DENSE}};
  mtrun_dataset *opened = nullptr;
  ASSERT_EQ(text(mtrun_dataset_open_arrays(plan.get(), fields, 2, 4, nullptr, &opened)), "0");
  Owned<mtrun_dataset> data(opened);
  EXPECT_EQ(text(mtrun::numberLabels(*data, {"a", "b", "c"})), "0"); // data without names stays as it is
  EXPECT_EQ(data->columns[1].label(1), 1);
  data->classNames = {"b", "d"};
  EXPECT_EQ(text(mtrun::numberLabels(*data, {"a", "b", "c"})),
            "1: array \"image\": expected classes that the model knows, a, b, c, found d");
  EXPECT_EQ(text(mtrun::numberLabels(*data, {"a", "b", "c", "d"})), "0");
  EXPECT_EQ(data->columns[1].label(0), 1);
  EXPECT_EQ(data->columns[1].label(1), 3);
  EXPECT_EQ(labels[1], 1); // the caller's
  EXPECT_EQ(text(mtrun::numberLabels(*data, {"a", "b", "c", "d"})), "0");
  EXPECT_EQ(data->columns[1].label(1), 3);
  data->classNames = {"d", "c", "b", "a"};
  EXPECT_EQ(text(mtrun::numberLabels(*data, {"e", "d", "c", "b", "a"})), // more than the model has
            "1: array \"label\": sample 1 has label 4, expected 0 to 3");
}

TEST_F(Split, Messages) {
  EXPECT_EQ(split(data.get(), 0.999, 1),
            "1: validation split: expected at least 1 sample to train on and 1 to validate on, found 0 and 100: the "
            "share is 0.999 of 100");
  EXPECT_EQ(split(data.get(), 1, 1), "1: validation split: expected a share above 0 and below 1, found 1.000000");
}

// Windows of tokens that overlap: what is held out is in no sample to train on.
TEST_F(Split, SamplesThatOverlap) {
  data->columns[0].field.stride = 2; // of 6 bytes: each begins within the two before it
  EXPECT_EQ(split(data.get(), 0.2, 1),
            "1: validation split: expected samples that have nothing in common, found samples that overlap with the "
            "next 2: hold out the last ones (:last)");
  auto last = [&](double share) {
    std::unique_ptr<mtrun_dataset> kept, held;
    mtrun::Status status = mtrun::splitDataset(*data, {share, true, 0}, kept, held);
    training.reset(kept.release());
    validation.reset(held.release());
    return status;
  };
  ASSERT_TRUE(last(0.2).ok());
  EXPECT_EQ(training->size, 78);
  EXPECT_EQ(training->sample(77), 77);
  EXPECT_EQ(validation->size, 20);
  EXPECT_EQ(validation->sample(0), 80);
  EXPECT_EQ(last(0.98).message(), "validation split: expected at least 1 sample to train on, found 2, and 2 of "
                                  "them overlap with the samples to validate on");
}
