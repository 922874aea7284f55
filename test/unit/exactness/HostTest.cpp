// SPDX-License-Identifier: Apache-2.0
//
// What the host does must not reach the bits of a run: its floating-point control register, what lies behind the valid
// rows, where its arrays begin, what other sessions do.
#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

// Tiny inputs make subnormal products, which a processor that flushes them would lose.
const char model[] = R"(
mt.model @small {
  %x = mt.input "x" : tensor<?x5xf32>
  %y = mt.target "y" : tensor<?xi32>
  %w1 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<5x7xf32>
  %b1 = mt.variable "dense/bias" init(zeros) : tensor<7xf32>
  %z1 = mt.matmul %x, %w1 : tensor<?x5xf32>, tensor<5x7xf32>
  %a1 = mt.add %z1, %b1 : tensor<?x7xf32>, tensor<7xf32>
  %h1 = mt.relu %a1 : tensor<?x7xf32>
  %w2 = mt.variable "dense_1/kernel" init(glorot_uniform) : tensor<7x3xf32>
  %z2 = mt.matmul %h1, %w2 : tensor<?x7xf32>, tensor<7x3xf32>
  %l = mt.sparse_categorical_crossentropy %z2, %y from_logits : tensor<?x3xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "logits", %z2 : tensor<?x3xf32>
  mt.adam <{learning_rate = 1.0e-2 : f32}>
})";

constexpr int64_t planBatch = 10, sampleCount = 23; // 23 = 10 + 10 + 3

void check(mt_status *status) { ASSERT_EQ(status, nullptr) << mt_status_message(status); }

class Host : public testing::Test {
protected:
  void SetUp() override {
    mtc_options options = mtc_options_init();
    options.batch = planBatch;
    options.shards = 8;
    mtc_result *result = nullptr;
    check(mtc_compile_text(model, strlen(model), "small.mlir", &options, &result));
    ASSERT_NE(result, nullptr);
    check(mtrun_plan_load_memory(mtc_result_data(result), mtc_result_size(result), &plan));
    mtc_result_free(result);
    for (int64_t i = 0; i < sampleCount * 5; ++i)
      x.push_back(static_cast<float>(i * 37 % 101 - 50) * (i % 3 ? 0.02f : 1e-38f));
    for (int64_t i = 0; i < sampleCount; ++i)
      y.push_back(static_cast<int32_t>(i * 7 % 3));
  }
  void TearDown() override { mtrun_plan_free(plan); }

  using Step = std::function<void(mtrun_session *, int64_t first, int64_t rows)>;
  void plainStep(mtrun_session *session, int64_t first, int64_t rows) {
    const void *tensors[] = {x.data() + first * 5, y.data() + first};
    check(mtrun_train_step(session, tensors, rows, nullptr));
  }

  // Trains four epochs and returns the bytes of the variables.
  std::vector<float> train(const char *devices, const Step &step) {
    mtrun_options options = mtrun_options_init();
    options.devices = devices;
    mtrun_session *session = nullptr;
    check(mtrun_session_create(plan, &options, &session));
    for (int epoch = 0; epoch < 4; ++epoch)
      for (int64_t first = 0; first < sampleCount; first += planBatch)
        step(session, first, std::min(planBatch, sampleCount - first));
    std::vector<float> variables(35 + 7 + 21);
    check(mtrun_get_variable(session, "dense/kernel", variables.data(), 35 * 4));
    check(mtrun_get_variable(session, "dense/bias", variables.data() + 35, 7 * 4));
    check(mtrun_get_variable(session, "dense_1/kernel", variables.data() + 42, 21 * 4));
    mtrun_session_free(session);
    for (float value : variables)
      EXPECT_TRUE(std::isfinite(value));
    return variables;
  }
  std::vector<float> train(const char *devices) {
    return train(devices,
                 [this](mtrun_session *session, int64_t first, int64_t rows) { plainStep(session, first, rows); });
  }

  mtrun_plan *plan = nullptr;
  std::vector<float> x;
  std::vector<int32_t> y;
};

bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// `rows` rows that end where readable memory ends.
class GuardedRows {
public:
  GuardedRows(const void *data, size_t bytes) {
    memory_ = static_cast<std::byte *>(
        mmap(nullptr, 2 * pageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + pageBytes, pageBytes, PROT_NONE);
    start_ = memory_ + pageBytes - bytes;
    memcpy(start_, data, bytes);
  }
  ~GuardedRows() { munmap(memory_, 2 * pageBytes); }
  const void *start() const { return start_; }

private:
  static constexpr size_t pageBytes = 4096;
  std::byte *memory_, *start_;
};

} // namespace

TEST_F(Host, FlushedSubnormalsAndRounding) {
  std::vector<float> expected = train("cpu:1");
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040 | 0x6000); // flush to zero, subnormals are zero, round towards zero
  std::vector<float> one = train("cpu:1"), three = train("cpu:3");
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, (before | 0x8040 | 0x6000) & ~0x3fu); // the caller's register is as it was
  _mm_setcsr(before);
  EXPECT_TRUE(same(one, expected));
  EXPECT_TRUE(same(three, expected));
}

TEST_F(Host, RowsPastTheValidOnesAreNotRead) {
  std::vector<float> expected = train("cpu:1");
  for (const char *devices : {"cpu:1", "cpu:3", "cpu:8", "cpu:2x2"})
    EXPECT_TRUE(same(train(devices,
                           [&](mtrun_session *session, int64_t first, int64_t rows) {
                             GuardedRows inputs(x.data() + first * 5, static_cast<size_t>(rows) * 20);
                             GuardedRows labels(y.data() + first, static_cast<size_t>(rows) * 4);
                             const void *tensors[] = {inputs.start(), labels.start()};
                             check(mtrun_train_step(session, tensors, rows, nullptr));
                           }),
                     expected))
        << devices;
}

TEST_F(Host, NansBehindTheValidRows) {
  std::vector<float> expected = train("cpu:1");
  for (const char *devices : {"cpu:1", "cpu:5"})
    EXPECT_TRUE(same(train(devices,
                           [&](mtrun_session *session, int64_t first, int64_t rows) {
                             std::vector<float> inputs(planBatch * 5, NAN);
                             std::vector<int32_t> labels(planBatch, -1);
                             std::copy_n(x.begin() + first * 5, rows * 5, inputs.begin());
                             std::copy_n(y.begin() + first, rows, labels.begin());
                             const void *tensors[] = {inputs.data(), labels.data()};
                             check(mtrun_train_step(session, tensors, rows, nullptr));
                           }),
                     expected))
        << devices;
}

TEST_F(Host, TwoSessionsAtOnce) {
  std::vector<float> expected = train("cpu:1"), first, second;
  std::thread other([&] { first = train("cpu:2"); });
  second = train("cpu:3");
  other.join();
  EXPECT_TRUE(same(first, expected));
  EXPECT_TRUE(same(second, expected));
}
