// SPDX-License-Identifier: Apache-2.0
//
// The caller's own arrays and callbacks as data.
#include "Fixtures.h"
#include "runtime/data/BatchStream.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

const int64_t imageShape[] = {2, 3};
const mtrun_field labelAndImage[] = {{"label", MT_I64, 0, nullptr, nullptr, 0},
                                     {"image", MT_U8, 2, imageShape, nullptr, 0}};

// Samples as the small MNIST of the fixtures has them: pixel p of sample s is 6 s + p, the label s % 4.
struct Numbers {
  std::vector<int64_t> passes = {7}; // samples of each pass, the last one of all that follow
  std::atomic<int64_t> calls{0}, lastPass{0}, failAt{-1}, labelOffset{0};
  bool lies = false, ownOnly = false;
  std::atomic<int64_t> written{0};

  static int64_t read(void *user, mtrun_request *request) {
    auto *self = static_cast<Numbers *>(user);
    ++self->calls;
    self->lastPass = request->pass;
    auto pass = std::min(static_cast<size_t>(request->pass), self->passes.size() - 1);
    int64_t rows = request->rows;
    if (!request->samples)
      rows = std::min(rows, self->passes[pass] - request->first);
    request->own_only = self->ownOnly;
    for (int64_t i = 0; i < rows; ++i) {
      if (self->ownOnly && (i < request->own_first || i >= request->own_first + request->own_rows))
        continue;
      ++self->written;
      int64_t sample = request->samples ? request->samples[i] : request->first + i;
      if (sample == self->failAt) {
        snprintf(request->message, request->message_size, "no picture %lld", static_cast<long long>(sample));
        return -1;
      }
      if (request->fields[0])
        static_cast<int64_t *>(request->fields[0])[i] = sample % 4 + self->labelOffset;
      for (int64_t p = 0; p < 6; ++p)
        static_cast<uint8_t *>(request->fields[1])[6 * i + p] = static_cast<uint8_t>(6 * sample + p);
    }
    return self->lies ? rows + 1 : rows;
  }
};

class SourceData : public testing::Test {
protected:
  Owned<mtrun_dataset> open(int64_t samples, int32_t threads = 1, const char *keys = nullptr) {
    mtrun_source source = {samples, labelAndImage, 2, Numbers::read, &numbers, threads};
    mtrun_dataset *data = nullptr;
    EXPECT_EQ(text(mtrun_dataset_open_source(plan.get(), &source, keys, &data)), "0");
    return Owned<mtrun_dataset>(data);
  }
  static std::vector<int64_t> samples(const Batch &batch) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < batch.rows; ++i) {
      const float *pixels = static_cast<float *>(batch.tensors[0]) + 6 * i;
      result.push_back(static_cast<int64_t>(pixels[5]) / 6);
      EXPECT_EQ(pixels[1], 6 * static_cast<float>(result.back()) + 1);
      EXPECT_EQ(static_cast<int32_t *>(batch.tensors[1])[i], result.back() % 4);
    }
    return result;
  }
  static Binding bindingOf(const Owned<mtrun_dataset> &data) {
    Binding binding;
    EXPECT_TRUE(data->bind("train_step", binding).ok());
    return binding;
  }
  std::string opening(const mtrun_source &source, const char *keys = nullptr) {
    mtrun_dataset *data = nullptr;
    std::string result = text(mtrun_dataset_open_source(plan.get(), &source, keys, &data));
    mtrun_dataset_free(data);
    return result;
  }
  // Samples of each epoch of a stream.
  static std::vector<std::vector<int64_t>> epochs(const Owned<mtrun_dataset> &data, StreamOptions options) {
    options.batch = 4;
    options.augment = true; // as training does, which alone has passes
    std::vector<std::vector<int64_t>> result;
    BatchStream stream(*data, bindingOf(data), options);
    for (int64_t epoch = options.epoch; epoch < options.epochs; ++epoch) {
      result.emplace_back();
      for (bool last = false; !last;) {
        const Batch &batch = stream.next();
        EXPECT_TRUE(batch.status.ok()) << batch.status.message();
        if (!batch.status.ok())
          return result;
        for (int64_t sample : samples(batch))
          result.back().push_back(sample);
        last = batch.last;
      }
    }
    return result;
  }

  Owned<mtrun_plan> plan = emptyPlan(4);
  Numbers numbers;
};

using Epochs = std::vector<std::vector<int64_t>>;

} // namespace

TEST_F(SourceData, AsAFileOfTheSameSamples) {
  TempFolder folder;
  writeSmallMnist(folder, std::string("\0\1\2\3\0\1\2", 7));
  Owned<mtrun_dataset> file = openData(plan.get(), "mnist:" + folder.path() + ",scale=1");
  StreamOptions options = {.epochs = 20, .shuffle = true, .seed = 5};
  Epochs expected = epochs(file, options);
  for (int threads : {1, 3})
    EXPECT_EQ(epochs(open(7, threads), options), expected) << threads;
  options.window = 3;
  EXPECT_EQ(epochs(open(7), options), epochs(file, options));
}

TEST_F(SourceData, ScalesAndSlices) {
  Owned<mtrun_dataset> data = open(7, 1, "scale=1/2,range=1:7");
  mtrun_dataset *part = nullptr;
  ASSERT_EQ(text(mtrun_dataset_slice(data.get(), 1, 3, &part)), "0");
  Owned<mtrun_dataset> slice(part);
  BatchStream stream(*slice, bindingOf(slice), {.batch = 4});
  const Batch &batch = stream.next();
  ASSERT_EQ(batch.rows, 2);
  EXPECT_TRUE(batch.last);
  EXPECT_EQ(static_cast<float *>(batch.tensors[0])[0], 6); // sample 2
  EXPECT_EQ(static_cast<int32_t *>(batch.tensors[1])[1], 3);
}

TEST_F(SourceData, EndsWhenThePassDoes) {
  numbers.passes = {7, 4, 8, 1};
  Owned<mtrun_dataset> data = open(-1);
  EXPECT_EQ(mtrun_dataset_size(data.get()), -1);
  EXPECT_EQ(epochs(data, {.epochs = 4}), (Epochs{{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}, {0}}));
  numbers.passes = {7, 4};
  EXPECT_EQ(epochs(data, {.epochs = 2, .dropRemainder = true}), (Epochs{{0, 1, 2, 3}, {0, 1, 2, 3}}));
  EXPECT_EQ(epochs(data, {.epochs = 3, .stepsPerEpoch = 3}), // passes follow one another
            (Epochs{{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3},
                    {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
                    {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}}));
}

TEST_F(SourceData, GoesOnWhereARunStopped) {
  numbers.passes = {7, 8, 5};
  Owned<mtrun_dataset> data = open(-1);
  Epochs all = epochs(data, {.epochs = 3});
  for (int64_t epoch = 0; epoch < 3; ++epoch)
    for (int64_t position = 0; position <= 2; ++position) { // 2: all of the epoch's steps are done
      Epochs expected(all.begin() + epoch, all.end());
      expected[0].erase(expected[0].begin(),
                        expected[0].begin() + std::min<int64_t>(4 * position, int64_t(expected[0].size())));
      EXPECT_EQ(epochs(data, {.epochs = 3, .epoch = epoch, .position = position}), expected) << epoch << position;
    }
  Epochs steps = epochs(data, {.epochs = 4, .stepsPerEpoch = 3});
  EXPECT_EQ(epochs(data, {.epochs = 4, .stepsPerEpoch = 3, .epoch = 2}), Epochs(steps.begin() + 2, steps.end()));
  BatchStream stream(*data, bindingOf(data), {.batch = 4, .epochs = 1, .position = 3});
  EXPECT_EQ(text(stream.next().status),
            "1: the source: expected the 3 steps of pass 0 that the run has completed, found 2");
}

TEST_F(SourceData, EndsAtAnyPoint) {
  for (int64_t length : {int64_t(-1), int64_t(7)})
    for (int taken = 0; taken < 6; ++taken) {
      Owned<mtrun_dataset> data = open(length, 2);
      BatchStream stream(*data, bindingOf(data), {.batch = 4, .epochs = 1000});
      for (int i = 0; i < taken; ++i)
        stream.next();
    }
}

TEST_F(SourceData, Failures) {
  auto failure = [&](int64_t length, int batches) {
    Owned<mtrun_dataset> data = open(length);
    BatchStream stream(*data, bindingOf(data), {.batch = 4, .epochs = 2, .augment = true});
    for (int i = 1; i < batches; ++i)
      EXPECT_TRUE(stream.next().status.ok());
    return text(stream.next().status);
  };
  numbers.failAt = 5;
  EXPECT_EQ(failure(7, 2), "7: the source of \"label\", \"image\" at sample 4: no picture 5");
  EXPECT_EQ(failure(-1, 2), "7: the source of \"label\", \"image\" at sample 4 of pass 0: no picture 5");
  numbers.failAt = -1;
  numbers.labelOffset = 2;
  EXPECT_EQ(failure(7, 1), "1: source \"label\": sample 2 has label 4, expected 0 to 3");
  EXPECT_EQ(failure(-1, 1), "1: source \"label\": sample 2 has label 4, expected 0 to 3");
  numbers.labelOffset = 0;
  numbers.lies = true;
  EXPECT_EQ(failure(7, 1), "1: the source of \"label\", \"image\" at sample 0: expected 4 samples, found 5");
  EXPECT_EQ(failure(-1, 1),
            "1: the source of \"label\", \"image\" at sample 0 of pass 0: expected at most 4 samples, found 5");
  numbers.lies = false;
  numbers.passes = {4, 0};
  EXPECT_EQ(failure(-1, 2), "1: the source: expected 1 samples or more in pass 1, found 0");
}

TEST_F(SourceData, Loops) {
  numbers.passes = {7, 4};
  Owned<mtrun_session> session = nullSession(plan.get());
  Owned<mtrun_dataset> data = open(-1), validation = open(-1);
  std::vector<std::array<int64_t, 4>> calls;
  mtrun_loop_options options = mtrun_loop_options_init();
  options.epochs = 2;
  options.validation = validation.get();
  options.progress_user = &calls;
  options.progress = [](void *user, const mtrun_progress *p) {
    static_cast<decltype(calls) *>(user)->push_back({p->epoch, p->step, p->steps, p->epoch_end});
    return 0;
  };
  ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(calls, (std::vector<std::array<int64_t, 4>>{
                       {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 2, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}}));
  calls.clear();
  double values[2];
  ASSERT_EQ(text(mtrun_evaluate(session.get(), data.get(), &options, values)), "0");
  EXPECT_EQ(calls, (std::vector<std::array<int64_t, 4>>{{0, 1, 0, 0}, {0, 2, 0, 1}}));
  EXPECT_EQ(numbers.lastPass, 0);
  TempFolder folder;
  EXPECT_EQ(text(mtrun_predict_file(session.get(), data.get(), 0, folder.path("p.npy").c_str())),
            "1: predict: expected data of known length, because the file's header has the number of rows");
  EXPECT_EQ(text(mtrun_predict_file(session.get(), open(7).get(), 0, folder.path("p.npy").c_str())), "0");
  options.shuffle_window = 3;
  EXPECT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "1: a shuffle window needs data of known length");
  mtrun_dataset *part = nullptr;
  EXPECT_EQ(text(mtrun_dataset_slice(data.get(), 0, 1, &part)),
            "1: slice: expected data of known length, found a stream");
}

// Of unknown length, stopped after any step: validation is still to come after an epoch's last one.
TEST_F(SourceData, Resumes) {
  numbers.passes = {7, 8};
  Owned<mtrun_dataset> data = open(-1), validation = open(-1);
  struct Run {
    int64_t stopAfter = -1, steps = 0, ends = 0;
    static int stop(void *user) { return --static_cast<Run *>(user)->stopAfter == 0; }
    static int progress(void *user, const mtrun_progress *p) {
      auto *run = static_cast<Run *>(user);
      run->ends += p->epoch_end;
      run->steps = p->total_step;
      return 0;
    }
  };
  auto fit = [&](const std::string &folder, const char *resume, Run run) {
    Owned<mtrun_session> session = nullSession(plan.get());
    mtrun_checkpoint_options checkpoint = mtrun_checkpoint_options_init();
    checkpoint.folder = folder.c_str();
    checkpoint.resume = resume;
    mtrun_fit_result result = {};
    mtrun_loop_options options = mtrun_loop_options_init();
    options.epochs = 3;
    options.validation = validation.get();
    options.checkpoint = &checkpoint;
    options.stop = Run::stop;
    options.stop_user = options.progress_user = &run;
    options.progress = Run::progress;
    options.result = &result;
    EXPECT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
    EXPECT_EQ(result.total_step, run.steps);
    return std::pair(run, result);
  };
  for (int64_t stopAfter = 1; stopAfter <= 12; ++stopAfter) { // 2 steps per epoch, and 2 of validation
    TempFolder folder;
    auto [first, stopped] = fit(folder.path("c"), nullptr, {stopAfter});
    ASSERT_TRUE(stopped.saved);
    auto [second, done] = fit(folder.path("c"), "auto", {});
    EXPECT_EQ(second.steps, 6) << stopAfter;
    EXPECT_EQ(first.ends + second.ends, 3) << stopAfter;
    EXPECT_EQ(done.epochs, 3);
  }
}

TEST_F(SourceData, Arrays) {
  struct Row {
    float pixels[6];
    int32_t label, unused;
  } rows[5];
  for (int s = 0; s < 5; ++s) {
    for (int p = 0; p < 6; ++p)
      rows[s].pixels[p] = static_cast<float>(6 * s + p);
    rows[s].label = s % 4;
  }
  mtrun_field fields[] = {{"image", MT_F32, 2, imageShape, rows[0].pixels, sizeof(Row)},
                          {"label", MT_I32, 0, nullptr, &rows[0].label, sizeof(Row)}};
  auto opening = [&](int64_t count) {
    mtrun_dataset *data = nullptr;
    std::string result = text(mtrun_dataset_open_arrays(plan.get(), fields, 2, count, nullptr, &data));
    mtrun_dataset_free(data);
    return result;
  };
  mtrun_dataset *opened = nullptr;
  ASSERT_EQ(text(mtrun_dataset_open_arrays(plan.get(), fields, 2, 5, nullptr, &opened)), "0");
  Owned<mtrun_dataset> data(opened);
  EXPECT_EQ(epochs(data, {.epochs = 2}), (Epochs{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}));
  rows[3].label = 4;
  EXPECT_EQ(opening(5), "1: arrays: array \"label\": sample 3 has label 4, expected 0 to 3");
  EXPECT_EQ(opening(3), "0");
  EXPECT_EQ(opening(0), "1: arrays: expected at least 1 sample, found 0");
  fields[0].stride = 23;
  EXPECT_EQ(opening(3), "1: arrays: array \"image\": expected a stride of MTRUN_DENSE or at least 24 bytes, "
                        "found 23");
  fields[0].stride = 0; // as of a view that shows one sample many times
  EXPECT_EQ(opening(3), "1: arrays: array \"image\": expected a stride of MTRUN_DENSE or at least 24 bytes, found 0");
  EXPECT_EQ(opening(1), "0");
  fields[0].stride = INT64_MAX;
  EXPECT_EQ(opening(3), "1: arrays: array \"image\": expected samples of less than 2^62 bytes together, found 3 of "
                        "9223372036854775807");
  fields[0].stride = MTRUN_DENSE;
  fields[0].data = nullptr;
  EXPECT_EQ(opening(3), "1: arrays: array \"image\": expected the samples, found NULL");
  fields[0].data = rows;
  fields[0].rank = 1;
  EXPECT_EQ(opening(3), "1: arrays: array \"image\": samples of f32 [2] do not fit input \"image\": f32 [?, 2, 3]");
  fields[0].rank = 2;
  fields[0].name = "picture";
  EXPECT_EQ(opening(3), "1: arrays: array \"picture\": the model has nothing named \"picture\"; expected image, label");
  fields[0].name = "label";
  EXPECT_EQ(opening(3), "1: arrays: expected fields of different names, found two of \"label\"");
}

TEST_F(SourceData, Messages) {
  mtrun_source source = {7, labelAndImage, 2, Numbers::read, &numbers, 0};
  EXPECT_EQ(opening(source), "0");
  EXPECT_EQ(opening(source, "scale"), "1: source: data: expected key=value, found \"scale\" in \"scale\"");
  EXPECT_EQ(opening(source, "class-weight=1:2"),
            "1: source: data: class-weight needs samples in memory; a callback can write the weights itself");
  EXPECT_EQ(opening(source, "range=3:8"),
            "1: source: data: the range 3:8 is not within the 7 samples of source \"label\"");
  source.samples = -2;
  EXPECT_EQ(opening(source), "1: source: expected at least 1 sample, or -1 for an unknown number, found -2");
  source.samples = -1;
  EXPECT_EQ(opening(source, "range=3:8"), "1: source: data: a range needs data of known length");
  source.field_count = 0;
  EXPECT_EQ(opening(source), "1: source: expected 1 to 1024 fields, found 0");
  source.field_count = 2;
  int64_t empty[] = {2, 0};
  mtrun_field fields[] = {labelAndImage[0], {"image", MT_U8, 2, empty, nullptr, 0}};
  source.fields = fields;
  EXPECT_EQ(opening(source),
            "1: source: source \"image\": expected axes of at least 1 and samples of at most 2^46 bytes, found 0");
  fields[1] = {"image", static_cast<mt_dtype>(17), 2, imageShape, nullptr, 0};
  EXPECT_EQ(opening(source), "1: source: source \"image\": expected a dtype of mt.h, found 17");
  source.read = nullptr;
  EXPECT_EQ(opening(source),
            "1: source: expected a plan, a source with a callback and room for the dataset, found NULL");
}

// A process with rows 1 and 2 of batches of 4: the callback may write these rows alone, or all.
TEST_F(SourceData, OwnRows) {
  for (int64_t known : {7, -1})
    for (bool ownOnly : {true, false}) {
      Owned<mtrun_dataset> data = open(known, 2);
      numbers.ownOnly = ownOnly;
      numbers.written = 0;
      Binding binding = bindingOf(data);
      {
        BatchStream stream(*data, binding, {.batch = 4, .firstRow = 1, .needed = 2});
        for (int64_t begin : {0, 4}) {
          const Batch &batch = stream.next();
          ASSERT_TRUE(batch.status.ok()) << batch.status.message();
          EXPECT_EQ(batch.rows, begin ? 3 : 4);
          EXPECT_EQ(batch.begin, ownOnly ? 1 : 0);
          EXPECT_EQ(batch.end, ownOnly ? 3 : batch.rows);
          for (int64_t row = batch.begin; row < batch.end; ++row)
            EXPECT_EQ(static_cast<float *>(batch.tensors[0])[6 * row], static_cast<float>(6 * (begin + row)));
        }
      }
      EXPECT_EQ(numbers.written, ownOnly ? 4 : 7);
    }
}
