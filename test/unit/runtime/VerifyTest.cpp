// SPDX-License-Identifier: Apache-2.0
//
// Well-hashed plans whose tables are wrong: one case a rule of docs/plan-format.md section 4.
#include "Corrupt.h"
#include "Exercise.h"
#include "Mutate.h"
#include "TestPlan.h"

#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

constexpr uint64_t huge = std::numeric_limits<uint64_t>::max();

struct Case {
  const char *message; // a part of it
  void (*change)(fb::PlanT &plan);
};

fb::ProgramT &train(fb::PlanT &plan) { return *plan.programs[1]; }

fb::BufferT &bufferIn(fb::PlanT &plan, fb::Space space) {
  for (auto &buffer : train(plan).buffers)
    if (buffer->space == space)
      return *buffer;
  std::abort();
}

void rescale(fb::PlanT &plan, const std::string &input, double scale) {
  auto &scaling = plan.input_scaling.emplace_back(std::make_unique<fb::InputScalingT>());
  scaling->input = input;
  scaling->scale = scale;
}

const Case cases[] = {
    {"batch: expected 1 to 2^40 samples, found 0", [](fb::PlanT &p) { p.batch = 0; }},
    {"shards: expected a power of two of at most 65536, found 6", [](fb::PlanT &p) { p.shards = 6; }},
    {"shards: expected a power of two", [](fb::PlanT &p) { p.shards = 0; }},
    {"shards: expected a power of two", [](fb::PlanT &p) { p.shards = 1u << 31; }},
    {"micro_batches: expected a power of two of at most 8, found 16", [](fb::PlanT &p) { p.micro_batches = 16; }},
    {"micro_batches: expected a power of two of at most 8, found 3", [](fb::PlanT &p) { p.micro_batches = 3; }},
    {"min_devices: expected 1 to 8, found 9", [](fb::PlanT &p) { p.min_devices = 9; }},
    {"shard_rows: expected 3, found 4", [](fb::PlanT &p) { p.shard_rows = 4; }},
    {"fixed_batch: expected 1 to 21 samples, found 22",
     [](fb::PlanT &p) { p.fixed_batch = std::make_unique<fb::FixedBatchT>(), p.fixed_batch->rows = 22; }},
    {"fixed_batch: expected 1 to 21 samples, found 0",
     [](fb::PlanT &p) { p.fixed_batch = std::make_unique<fb::FixedBatchT>(); }},
    {"expected a name of 1 to 1024 bytes, found 1025 bytes",
     [](fb::PlanT &p) { p.variables[0]->name = std::string(1025, 'a'); }},
    {"expected a name of 1 to 1024 bytes, found 0 bytes", [](fb::PlanT &p) { p.kernels[0]->name = ""; }},
    {"expected a name without control characters, found byte 10", [](fb::PlanT &p) { p.kernels[0]->name = "a\nb"; }},
    {"expected a name in UTF-8, found other bytes", [](fb::PlanT &p) { p.variables[0]->name = "w\xff\xfe"; }},
    {"expected names that differ, found a second w", [](fb::PlanT &p) { p.variables[1]->name = "w"; }},
    {"expected names that differ, found a second update", [](fb::PlanT &p) { p.kernels[0]->name = "update"; }},
    {"expected names that differ, found a second any", [](fb::PlanT &p) { p.targets[0]->name = "any"; }},
    {"expected names that differ, found a second predict", [](fb::PlanT &p) { p.programs[0]->name = "predict"; }},
    {"expected names that differ, found a second x", [](fb::PlanT &p) { train(p).signature[1]->name = "x"; }},
    {"variables_bytes: expected at most 2^46", [](fb::PlanT &p) { p.variables_bytes = huge; }},
    {"variable 0: expected 148 bytes for its shape, found 149", [](fb::PlanT &p) { p.variables[0]->size = 149; }},
    {"variable 0: expected dimensions of 0 to 2^40", [](fb::PlanT &p) { p.variables[0]->shape = {-2}; }},
    {"variable 0: expected a tensor of at most 2^46 bytes",
     [](fb::PlanT &p) { p.variables[0]->shape = {1 << 30, 1 << 30, 1 << 30}; }},
    {"variable 0: expected a rank of at most 8, found 9", [](fb::PlanT &p) { p.variables[0]->shape.assign(9, 1); }},
    {"variable 0: expected an element type, found 9", [](fb::PlanT &p) { p.variables[0]->dtype = fb::DType(9); }},
    {"variable 1: expected an offset that is a multiple of 64", [](fb::PlanT &p) { p.variables[1]->offset += 4; }},
    {"expected bytes inside the variables' 384 bytes", [](fb::PlanT &p) { p.variables[3]->offset = 384; }},
    {"expected bytes inside the variables'", [](fb::PlanT &p) { p.variables[3]->offset = huge - 63; }},
    {"variables: expected variables that do not overlap", [](fb::PlanT &p) { p.variables[3]->offset = 0; }},
    {"kernel 2: expected 1 to 2^40 inner tiles, found 0", [](fb::PlanT &p) { p.kernels[2]->inner_tiles = 0; }},
    {"kernel 2: expected a kind of kernel", [](fb::PlanT &p) { p.kernels[2]->kind = fb::KernelKind(99); }},
    {"kernel 6: expected 1 to 2^40 elements per tile, found 0",
     [](fb::PlanT &p) { p.kernels[6]->elements_per_tile = 0; }},
    {"kernel 1: expected a grid of at most 2^40 tiles", [](fb::PlanT &p) { p.kernels[1]->inner_tiles = 1ull << 40; }},
    {"target 1: expected a section below 2, found 2", [](fb::PlanT &p) { p.targets[1]->section = 2; }},
    {"layer 1: expected names that differ, found a second a", [](fb::PlanT &p) { p.layers = {"a", "a"}; }},
    {"expected -1 or a layer below 1, found 1",
     [](fb::PlanT &p) {
       p.layers = {"a"};
       train(p).steps[0]->layer = 1;
     }},
    {"constants: expected a section below 2, found 7", [](fb::PlanT &p) { p.constants = 7; }},
    {"learning_rate: expected a variable below 4", [](fb::PlanT &p) { p.learning_rate = 4; }},
    {"iteration: expected a variable below 4, found -2", [](fb::PlanT &p) { p.iteration = -2; }},
    // A user's weights must not be taken for the learning rate, which is read and written as four bytes.
    {"learning_rate: expected a variable of one F32, without axes, found w, F32 with 1",
     [](fb::PlanT &p) { p.learning_rate = 0; }},
    {"learning_rate: expected a variable of one F32, without axes, found iteration, I32 with 0",
     [](fb::PlanT &p) { p.learning_rate = 3; }},
    {"iteration: expected a variable of one I32, without axes, found b, F32 with 1",
     [](fb::PlanT &p) { p.iteration = 1; }},
    // What kernels read and write, against the buffers that launches give them.
    {"kernel 2 argument 1: expected at most 2^46 bytes, found more",
     [](fb::PlanT &p) { p.kernels[2]->arguments[1]->row_bytes = huge; }},
    {"kernel 2 argument 1: expected 0 bytes per element of a kernel of another kind, found 4",
     [](fb::PlanT &p) { p.kernels[2]->arguments[1]->element_bytes = 4; }},
    {"kernel 6 argument 0: expected 0 bytes per row of an Elementwise kernel, found 4",
     [](fb::PlanT &p) { p.kernels[6]->arguments[0]->row_bytes = 4; }},
    {"kernel 2: expected at most 2^30 bytes of scratch, a multiple of 64, found 32",
     [](fb::PlanT &p) { p.kernels[2]->scratch_bytes = 32; }},
    {"kernel 2: expected at most 2^30 bytes of scratch, a multiple of 64, found 18446744073709551552",
     [](fb::PlanT &p) { p.kernels[2]->scratch_bytes = huge - 63; }},
    {"step 6 argument 0 of update: expected a buffer of at least 34359738368 bytes",
     [](fb::PlanT &p) { train(p).steps[6]->segments[0]->count = uint64_t{1} << 33; }},
    {"step 0: expected 7 buffers for the kernel difference_rows, found 6",
     [](fb::PlanT &p) { train(p).steps[0]->segments[0]->buffers.pop_back(); }},
    {"step 0: expected 7 buffers for the kernel difference_rows, found 8",
     [](fb::PlanT &p) { train(p).steps[0]->segments[0]->buffers.push_back(0); }},
    {"step 6: expected 3 buffers for the kernel update, found 0",
     [](fb::PlanT &p) { train(p).steps[6]->segments[1]->buffers.clear(); }},
    {"argument 1 of init_variables: expected a buffer of at least 148 bytes for 1 shards",
     [](fb::PlanT &p) {
       p.variables[0]->shape = {1};
       p.variables[0]->size = 4;
       for (auto &program : p.programs)
         for (auto &buffer : program->buffers)
           if (buffer->space == fb::Space::Variable)
             buffer->fixed_bytes = 4;
     }},
    {"step 0 argument 6 of difference_rows: expected a buffer of at least 12 bytes for 1 shards",
     [](fb::PlanT &p) {
       for (auto &buffer : train(p).buffers)
         if (buffer->space == fb::Space::Arena) {
           buffer->row_bytes = 0;
           buffer->fixed_bytes = 4;
         }
     }},
    // Enough for one shard, but not for all of them on one device.
    {"step 0 argument 6 of difference_rows: expected a buffer of at least 96 bytes for 8 shards",
     [](fb::PlanT &p) {
       bufferIn(p, fb::Space::Arena).row_bytes = 0;
       bufferIn(p, fb::Space::Arena).fixed_bytes = 12;
     }},
    {"step 0 argument 1 of difference_rows: expected at most 148 bytes per row of a tensor of the caller, found 149 "
     "per",
     [](fb::PlanT &p) { p.kernels[2]->arguments[1]->row_bytes = 149; }},
    {"step 0 argument 1 of difference_rows: expected at most 148 bytes per row of a tensor of the caller, found 148 "
     "per row and 1 other bytes",
     [](fb::PlanT &p) { p.kernels[2]->arguments[1]->fixed_bytes = 1; }},
    {"argument 0 of init_variables: expected a buffer that may be written, found buffer0 in Constant",
     [](fb::PlanT &p) { p.kernels[0]->arguments[0]->written = true; }},
    {"step 0 argument 2 of difference_rows: expected a buffer that may be written, found buffer1 in Signature",
     [](fb::PlanT &p) { p.kernels[2]->arguments[2]->written = true; }},
    {"expected a sum_kernel of two operands and a result, 4 bytes per element, and no scratch, found sum_partials",
     [](fb::PlanT &p) { p.kernels[7]->arguments.pop_back(); }},
    {"expected a sum_kernel of two operands and a result, 4 bytes per element, and no scratch, found sum_partials",
     [](fb::PlanT &p) { p.kernels[7]->arguments[0]->element_bytes = 8; }},
    {"expected a sum_kernel of two operands and a result, 4 bytes per element, and no scratch, found sum_partials",
     [](fb::PlanT &p) { p.kernels[7]->scratch_bytes = 64; }},
    {"program 1 (train_step): expected 4 variants, found 3", [](fb::PlanT &p) { train(p).variants.pop_back(); }},
    {"variant 1: expected 2 shards, found 3", [](fb::PlanT &p) { train(p).variants[1]->shards = 3; }},
    {"variant 1: expected an arena of at most 2^46 bytes",
     [](fb::PlanT &p) { train(p).variants[1]->arena_bytes = huge; }},
    {"signature entry 0: expected -1 as first dimension, found 3",
     [](fb::PlanT &p) { train(p).signature[0]->shape[0] = 3; }},
    {"signature entry 0: expected 148 bytes per row, found 4",
     [](fb::PlanT &p) { train(p).signature[0]->row_bytes = 4; }},
    {"signature entry 0: expected only sample weights to be optional",
     [](fb::PlanT &p) { train(p).signature[0]->optional = true; }},
    {"expected 4 bytes per row and 0 other bytes, found 8 and 0",
     [](fb::PlanT &p) { train(p).buffers[1]->row_bytes = 8; }},
    {"expected a signature entry below 3, found 3", [](fb::PlanT &p) { train(p).buffers[1]->index = 3; }},
    {"expected a variable below 4, found 4", [](fb::PlanT &p) { bufferIn(p, fb::Space::Variable).index = 4; }},
    {"expected bytes inside the variable's 148 bytes",
     [](fb::PlanT &p) { bufferIn(p, fb::Space::Variable).fixed_bytes = 149; }},
    {"expected bytes inside the constants section's 16 bytes",
     [](fb::PlanT &p) { bufferIn(p, fb::Space::Constant).offset = {8}; }},
    {"expected bytes inside the arena's", [](fb::PlanT &p) { bufferIn(p, fb::Space::Arena).offset[2] = huge - 3; }},
    {"expected bytes inside the arena's", [](fb::PlanT &p) { bufferIn(p, fb::Space::Arena).row_bytes = 4096; }},
    {"expected at most 2^46 bytes", [](fb::PlanT &p) { bufferIn(p, fb::Space::Arena).row_bytes = 1ull << 45; }},
    {"expected 4 offsets, found 1", [](fb::PlanT &p) { bufferIn(p, fb::Space::Arena).offset = {0}; }},
    {"expected an offset that is a multiple of its elements' 4 bytes",
     [](fb::PlanT &p) { bufferIn(p, fb::Space::Arena).offset[1] = 2; }},
    {"expected bytes inside the shared block's",
     [](fb::PlanT &p) { bufferIn(p, fb::Space::Shared).offset = {1 << 20}; }},
    {"expected 0 bytes per row, found 4", [](fb::PlanT &p) { bufferIn(p, fb::Space::Shared).row_bytes = 4; }},
    {"expected a space, found 9", [](fb::PlanT &p) { bufferIn(p, fb::Space::Shared).space = fb::Space(9); }},
    {"inside one all-reduce's result or outside all",
     [](fb::PlanT &p) { bufferIn(p, fb::Space::Shared).fixed_bytes = 200; }},
    {"metric 0: expected sums that fit the finalizer Roc, found 0",
     [](fb::PlanT &p) { train(p).metrics[0]->finalizer = fb::Finalizer::Roc; }},
    {"metric 0: expected sums that fit the finalizer Mean, found 1",
     [](fb::PlanT &p) { train(p).metrics[0]->shape = {1}; }},
    {"metric 0: expected a finalizer, found 255",
     [](fb::PlanT &p) { train(p).metrics[0]->finalizer = static_cast<fb::Finalizer>(-1); }},
    {"metric 0: expected 1 to 2^24 sums, found 4611686018427387904 in axis 0",
     [](fb::PlanT &p) {
       train(p).metrics[0]->finalizer = fb::Finalizer::Roc;
       train(p).metrics[0]->shape = {int64_t{1} << 62, 2, 200};
     }},
    {"metric 0: expected a buffer of 400 F32",
     [](fb::PlanT &p) {
       train(p).metrics[0]->finalizer = fb::Finalizer::Roc;
       train(p).metrics[0]->shape = {2, 200};
     }},
    {"metric 0: expected parameters that fit the finalizer Sum, found 1",
     [](fb::PlanT &p) {
       train(p).metrics[0]->finalizer = fb::Finalizer::Sum;
       train(p).metrics[0]->parameters = {1};
     }},
    {"metric 0: expected parameters that fit the finalizer Iou, found 1",
     [](fb::PlanT &p) {
       train(p).metrics[0]->finalizer = fb::Finalizer::Iou;
       train(p).metrics[0]->shape = {1, 1};
       train(p).metrics[0]->parameters = {1};
     }},
    {"metric 0: expected a direction that is better, found 2",
     [](fb::PlanT &p) { train(p).metrics[0]->better = static_cast<fb::Better>(2); }},
    {"learning rate: expected a buffer below", [](fb::PlanT &p) { train(p).learning_rate = 1000; }},
    {"learning rate: expected a buffer or -1, found -2", [](fb::PlanT &p) { train(p).learning_rate = -2; }},
    {"learning rate: expected one F32 or F64 in Shared, found F32 in Signature",
     [](fb::PlanT &p) { train(p).learning_rate = 0; }},
    {"metric 0: expected a buffer below", [](fb::PlanT &p) { train(p).metrics[0]->value = 1000; }},
    {"metric 0: expected one F32 or F64 in Shared, found F32 in Signature",
     [](fb::PlanT &p) { train(p).metrics[0]->value = 0; }},
    {"step 0: expected a kernel below 11, found 11", [](fb::PlanT &p) { train(p).steps[0]->kernel = 11; }},
    {"step 0: expected a launch without a collective, found 0",
     [](fb::PlanT &p) { train(p).steps[0]->collective = 0; }},
    {"step 0: expected 1 segment or more, found 0", [](fb::PlanT &p) { train(p).steps[0]->segments.clear(); }},
    {"step 0: expected buffers below", [](fb::PlanT &p) { train(p).steps[0]->segments[0]->buffers[2] = 1000; }},
    {"step 0: expected a kind of wait", [](fb::PlanT &p) { train(p).steps[0]->wait = fb::Wait(3); }},
    {"step 0: expected a tail after a launch", [](fb::PlanT &p) { train(p).steps[0]->tail = true; }},
    {"step 2: expected a tail after a launch", [](fb::PlanT &p) { train(p).steps[2]->tail = true; }},
    {"step 6: expected segments of at most 2^40 elements",
     [](fb::PlanT &p) { train(p).steps[6]->segments[0]->count = huge; }},
    {"step 3: expected a kernel or -1, found -2", [](fb::PlanT &p) { train(p).steps[3]->kernel = -2; }},
    {"step 3: expected all-reduce 0, found 1", [](fb::PlanT &p) { train(p).steps[3]->collective = 1; }},
    {"step 3: expected a partial sum of F32 elements, found 0 bytes",
     [](fb::PlanT &p) { train(p).steps[3]->partial_bytes = 0; }},
    {"step 3: expected 4 partial sum offsets, found 3",
     [](fb::PlanT &p) { train(p).steps[3]->partial_offset.pop_back(); }},
    {"step 3 partial sum: expected bytes inside the arena's",
     [](fb::PlanT &p) { train(p).steps[3]->partial_offset[3] = 1 << 20; }},
    {"step 3 result: expected bytes inside the shared block's",
     [](fb::PlanT &p) { train(p).steps[3]->result_offset = huge - 3; }},
    {"results of all-reduces that do not overlap", [](fb::PlanT &p) { train(p).steps[4]->result_offset = 0; }},
    {"expected an Elementwise kernel as the plan's sum_kernel, found 0", [](fb::PlanT &p) { p.sum_kernel = 0; }},
    {"input_scaling 0: expected the name of an input, found y", [](fb::PlanT &p) { rescale(p, "y", 1); }},
    {"input_scaling 0: expected a scale and an offset that are finite, found inf",
     [](fb::PlanT &p) { rescale(p, "x", std::numeric_limits<double>::infinity()); }},
    {"input_scaling 1: expected names that differ, found a second x",
     [](fb::PlanT &p) {
       rescale(p, "x", 1);
       rescale(p, "x", 1);
     }},
    {"class 1: expected names that differ, found a second cat", [](fb::PlanT &p) { p.class_names = {"cat", "cat"}; }},
    {"class 0: expected a name without control characters", [](fb::PlanT &p) { p.class_names = {"a\x1b[2J"}; }},
    {"vocabulary 1: expected one character of UTF-8, found 2 bytes",
     [](fb::PlanT &p) { p.vocabulary = {"\xc3\xa4", "ab"}; }},
    {"vocabulary 0: expected one character of UTF-8, found 2 bytes",
     [](fb::PlanT &p) { p.vocabulary = {"\xc0\x80"}; }},
    {"vocabulary 0: expected one character of UTF-8, found 3 bytes",
     [](fb::PlanT &p) { p.vocabulary = {"\xed\xa0\x80"}; }},
    {"vocabulary 2: expected characters that differ", [](fb::PlanT &p) { p.vocabulary = {"a", "\n", "a"}; }},
};

TEST(Verify, RefusesEachFault) {
  for (const Case &c : cases) {
    std::vector<uint8_t> bytes = makePlan({}, c.change);
    expectCorrupt(bytes, c.message);
  }
}

const Case gpuCases[] = {
    // A grid that no GPU launches is the plan's fault, not the device's.
    {"step 0: expected a grid of at most 2147483647 x 65535 blocks of a GPU, found 34359738368 x 1",
     [](fb::PlanT &p) { p.kernels[2]->gpu->inner_tiles = uint64_t{1} << 32; }},
    {"step 6: expected a grid of at most 2147483647 x 65535 blocks of a GPU, found 8 x 65536",
     [](fb::PlanT &p) {
       auto &segments = train(p).steps[6]->segments;
       for (size_t i = segments.size(); i < 65536; ++i)
         segments.push_back(std::make_unique<fb::SegmentT>(*segments[0]));
     }},
    {"step 6: expected at most 2^46 bytes of partial sums, found 140737488355328",
     [](fb::PlanT &p) { p.kernels[6]->gpu->partial_bytes = uint64_t{1} << 46; }},
    {"expected at most 227 KiB of workgroup memory, found 262144",
     [](fb::PlanT &p) {
       for (size_t i = 0; i < p.kernels.size(); ++i)
         p.targets.back()->usage.push_back(std::make_unique<fb::GpuUsageT>());
       p.targets.back()->usage.back()->dynamic_shared_bytes = 256 << 10;
     }},
};

TEST(Verify, RefusesEachFaultOfGpus) {
  for (const Case &c : gpuCases) {
    TestPlanShape shape;
    shape.gpu = true;
    std::vector<uint8_t> bytes = makePlan(shape, c.change);
    expectCorrupt(bytes, c.message);
  }
}

// Tables with hashes that fit, damaged anywhere: loads or says why not, and reads nothing outside (the sanitizers'
// part).
TEST(Verify, SurvivesAnyTables) {
  std::vector<uint8_t> good = makePlan();
  mt_plan_header header;
  std::memcpy(&header, good.data(), sizeof(header));
  std::mt19937 random(1);
  int refused = 0, ran = 0;
  constexpr int rounds = 3000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint8_t> bytes = good;
    for (int i = 0, changes = 1 + static_cast<int>(random() % 3); i < changes; ++i) {
      size_t at = header.tables_offset + random() % header.tables_size;
      static constexpr uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
      bytes[at] = random() % 2 ? values[random() % 5] : static_cast<uint8_t>(random());
    }
    rehash(bytes);
    Exercised result = exercise(bytes.data(), bytes.size(), 3, round % 2);
    refused += result == Exercised::Refused;
    ran += result == Exercised::Ran;
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_GT(ran, rounds / 20);
}

// The same with changes that every field of the tables is as likely to get.
TEST(Verify, SurvivesAnyFields) {
  std::mt19937 random(2);
  int refused = 0, ran = 0;
  constexpr int rounds = 1500;
  for (int round = 0; round < rounds; ++round) {
    TestPlanShape shape;
    shape.gpu = round % 4 == 0;
    std::vector<uint8_t> bytes = makePlan(shape, [&](fb::PlanT &plan) { mutateTables(plan, random); });
    Exercised result = exercise(bytes.data(), bytes.size(), 1 + round % 3, round % 2);
    refused += result == Exercised::Refused;
    ran += result == Exercised::Ran;
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_GT(ran, rounds / 20);
}

} // namespace
} // namespace mtrun::test
