// SPDX-License-Identifier: Apache-2.0
//
// Compact tables: what is written is read again, loops take a few bytes, and damage is found before it takes memory.
#include "TestPlan.h"

#include "runtime/abi/compact_tables.h"
#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace mtrun::test {
namespace {

namespace fb = mt::plan;

std::vector<uint8_t> pack(const fb::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  fb::FinishPlanBuffer(builder, fb::CreatePlan(builder, &plan));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

void expectSame(fb::PlanT &plan) {
  std::vector<uint8_t> plain = pack(plan);
  compactTables(plan);
  for (const auto &program : plan.programs)
    EXPECT_TRUE(program->buffers.empty() && program->steps.empty());
  EXPECT_TRUE(plan.compact);
  ASSERT_EQ(expandTables(plan), "");
  EXPECT_EQ(pack(plan), plain);
}

TEST(Compact, KeepsAPlan) {
  fb::PlanT plan = makeTables({});
  expectSame(plan);
}

TEST(Compact, AFileHasTheSameTablesInBothForms) {
  std::vector<uint8_t> plain = makePlan(), compact = makePlan({}, compactTables);
  PlanFileView plainView = openPlanFile(plain), compactView = openPlanFile(compact);
  ASSERT_EQ(compactView.message, "");
  EXPECT_EQ(plainView.expanded, nullptr);
  EXPECT_EQ(stepsTables(*compactView.tables), stepsTables(*plainView.tables));
}

void addBuffer(fb::ProgramT &program, std::string name, uint64_t offset) {
  auto buffer = std::make_unique<fb::BufferT>();
  buffer->name = std::move(name);
  buffer->offset = {offset, 2 * offset, 4 * offset};
  buffer->row_bytes = 256;
  buffer->shape = {-1, 64};
  program.buffers.push_back(std::move(buffer));
}

// A loop of launches with five operands: two that are the same each time, and three that move.
fb::PlanT makeLoop(uint32_t times) {
  fb::PlanT plan;
  auto program = std::make_unique<fb::ProgramT>();
  addBuffer(*program, "weights", 0);
  addBuffer(*program, "bias", 512);
  for (uint32_t i = 0; i < times; ++i) {
    uint32_t first = static_cast<uint32_t>(program->buffers.size());
    addBuffer(*program, "slice." + std::to_string(i), 1024 + 512 * uint64_t{i});
    addBuffer(*program, "state", 1 << 20);
    addBuffer(*program, "gate", (uint64_t{1} << 40) - 768 * uint64_t{i});
    for (bool second : {false, true}) {
      auto step = std::make_unique<fb::StepT>();
      step->kernel = second ? 7 : 3;
      step->wait = fb::Wait::Device;
      step->segments.push_back(std::make_unique<fb::SegmentT>());
      step->segments.back()->buffers = {0, 1, first, first + 1, first + 2};
      program->steps.push_back(std::move(step));
    }
  }
  plan.programs.push_back(std::move(program));
  return plan;
}

TEST(Compact, ALoopTakesTheBytesOfItsFirstTimes) {
  auto bytesOf = [](uint32_t times) {
    fb::PlanT plan = makeLoop(times);
    expectSame(plan);
    compactTables(plan);
    return plan.compact->numbers.size();
  };
  size_t few = bytesOf(6);
  EXPECT_LT(few, 400u);
  EXPECT_LE(bytesOf(6000), few + 60); // the counts have more digits
}

TEST(Compact, KeepsAnyNumbersAndNames) {
  std::mt19937_64 random(1);
  const char *texts[] = {"",    "0",          "7",           "a",    "a0",  "a00", "a01",
                         "a10", "a999999999", "a1234567890", "a.12", "12a", "ä3"};
  auto number = [&] {
    uint64_t bits = random() >> random() % 64;
    return random() % 4 ? bits : random() % 2 ? std::numeric_limits<uint64_t>::max() - bits : 0;
  };
  fb::PlanT plan;
  for (int count : {0, 1, 2, 3, 300}) {
    auto program = std::make_unique<fb::ProgramT>();
    for (int i = 0; i < count; ++i) {
      auto buffer = std::make_unique<fb::BufferT>();
      buffer->name = texts[random() % std::size(texts)];
      buffer->space = static_cast<fb::Space>(number());
      buffer->fixed_bytes = number();
      buffer->index = static_cast<uint32_t>(number());
      buffer->offset.resize(random() % 3, number());
      buffer->shape.resize(random() % 3, static_cast<int64_t>(number()));
      program->buffers.push_back(std::move(buffer));
      auto step = std::make_unique<fb::StepT>();
      step->kernel = static_cast<int32_t>(number());
      step->layer = static_cast<int32_t>(number());
      step->share = random() % 2;
      step->partial_offset.resize(random() % 3, number());
      for (uint64_t s = random() % 3; s; --s) {
        step->segments.push_back(std::make_unique<fb::SegmentT>());
        step->segments.back()->count = number();
        step->segments.back()->buffers.resize(random() % 3, static_cast<uint32_t>(number()));
      }
      program->steps.push_back(std::move(step));
    }
    plan.programs.push_back(std::move(program));
  }
  expectSame(plan);
}

// A plan without kernels whose columns were written by hand.
std::string faultOf(const std::vector<uint64_t> &numbers, const std::vector<uint8_t> &last = {}) {
  fb::PlanT plan;
  plan.programs.push_back(std::make_unique<fb::ProgramT>());
  auto compact = std::make_unique<fb::CompactTablesT>();
  compact->words = {"a", "b"};
  for (uint64_t number : numbers) {
    for (; number >= 0x80; number >>= 7)
      compact->numbers.push_back(static_cast<uint8_t>(number | 0x80));
    compact->numbers.push_back(static_cast<uint8_t>(number));
  }
  compact->numbers.insert(compact->numbers.end(), last.begin(), last.end());
  plan.compact = std::move(compact);
  return expandTables(plan);
}

TEST(Compact, FindsDamage) {
  constexpr uint64_t huge = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(faultOf({}), "compact tables: expected a number of 64 bits, found the end of the bytes");
  EXPECT_EQ(faultOf({}, {0xff, 0xff}), "compact tables: expected a number of 64 bits, found the end of the bytes");
  EXPECT_EQ(faultOf({}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}),
            "compact tables: expected a number of 64 bits, found more bits");
  EXPECT_EQ(faultOf({}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}),
            "compact tables: expected a number of 64 bits, found more bits");
  // The number of buffers.
  EXPECT_EQ(faultOf({huge}), "compact tables: expected at most 536870912 bytes of expanded tables, found more");
  EXPECT_EQ(faultOf({1048577}), "compact tables: expected at most 536870912 bytes of expanded tables, found more");
  // Runs of the column of words.
  EXPECT_EQ(faultOf({8, 9}), "compact tables: expected at most 8 differences, found 9");
  EXPECT_EQ(faultOf({8, huge}), "compact tables: expected at most 8 differences, found " + std::to_string(huge));
  EXPECT_EQ(faultOf({8, 2, 0, 0, 1, 7}), "compact tables: expected at most 6 repeated numbers, found 7");
  EXPECT_EQ(faultOf({8, 2, 0, 0, 1, huge}),
            "compact tables: expected at most 6 repeated numbers, found " + std::to_string(huge));
  EXPECT_EQ(faultOf({8, 2, 0, 0, 2, 6}), "compact tables: expected at most 1 numbers as the period, found 2");
  EXPECT_EQ(faultOf({8, 2, 0, 0, huge, 6}),
            "compact tables: expected at most 1 numbers as the period, found " + std::to_string(huge));
  EXPECT_EQ(faultOf({8, 2, 0, 0, 0, 6}), "compact tables: expected a period and a length of 1 or more, found 0 and 6");
  EXPECT_EQ(faultOf({8, 2, 0, 0, 1, 0}), "compact tables: expected a period and a length of 1 or more, found 1 and 0");
  EXPECT_EQ(faultOf({8, 0, 0, 0}), "compact tables: expected a period and a length of 1 or more, found 0 and 0");
  // Words 0, 1, 2 ...; then the column of numbers of names, then a space of 256.
  EXPECT_EQ(faultOf({4, 2, 0, 2, 1, 2, 4, 0, 0, 0, 0}),
            "compact tables: expected the index of one of 2 words, found 2");
  EXPECT_EQ(faultOf({1, 1, 0, 1, 0, 1, 512}), "compact tables: expected a number of the field's type, found 256");
  EXPECT_EQ(faultOf({0, 0}), "");
  EXPECT_EQ(faultOf({0, 0, 0}), "compact tables: expected the end after the last column, found more bytes");
}

TEST(Compact, FindsSizesThatTakeTooMuchMemory) {
  // One buffer: word, number, space, dtype, fixed_bytes, row_bytes and index are 0; then the size of its offsets.
  std::vector<uint64_t> buffer = {1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
  for (uint64_t size : {uint64_t{1} << 25, uint64_t{1} << 62}) {
    std::vector<uint64_t> numbers = buffer;
    numbers.insert(numbers.end(), {1, size << 1});
    EXPECT_EQ(faultOf(numbers), "compact tables: expected at most 536870912 bytes of expanded tables, found more");
  }
  // Names: a word of a MiB for each of 1000 buffers.
  fb::PlanT plan = makeLoop(334);
  compactTables(plan);
  for (std::string &word : plan.compact->words)
    word.resize(1 << 20, 'a');
  EXPECT_EQ(expandTables(plan), "compact tables: expected at most 536870912 bytes of expanded tables, found more");
  // A plan that a reader would refuse stays as it is.
  fb::PlanT large = makeLoop(1);
  large.programs[0]->steps[0]->segments[0]->buffers.resize(maxExpandedBytes / numberBytes);
  compactTables(large);
  EXPECT_EQ(large.compact, nullptr);
  EXPECT_EQ(large.programs[0]->steps.size(), 2u);
}

TEST(Compact, AFileIsRefused) {
  auto load = [](const std::vector<uint8_t> &bytes) {
    std::unique_ptr<Plan> plan;
    return Plan::loadMemory(bytes.data(), bytes.size(), plan).message();
  };
  EXPECT_EQ(load(makePlan({}, compactTables)), "");
  EXPECT_EQ(load(makePlan({},
                          [](fb::PlanT &plan) {
                            compactTables(plan);
                            plan.programs[1]->steps.push_back(std::make_unique<fb::StepT>());
                          })),
            "expected no arguments, buffers and steps next to the compact ones, found some");
  // An older reader would see programs without steps.
  std::vector<uint8_t> older = makePlan({}, compactTables);
  const auto *tables = reinterpret_cast<const flatbuffers::Table *>(fb::GetPlan(&older[sizeof(mt_plan_header)]));
  older[static_cast<size_t>(tables->GetAddressOf(fb::Plan::VT_VERSION) - older.data())] = older[8] = 10;
  rehash(older);
  EXPECT_EQ(load(older), "expected no compact tables in a plan of version 10, found some");
}

TEST(Compact, AnyBytesAreReadOrRefused) {
  std::mt19937 random(1);
  fb::PlanT start = makeTables({});
  compactTables(start);
  size_t refused = 0, tries = 20000;
  for (size_t i = 0; i < tries; ++i) {
    fb::PlanT plan = start;
    std::vector<uint8_t> &numbers = plan.compact->numbers;
    for (size_t changes = 1 + random() % 3; changes; --changes)
      numbers[random() % numbers.size()] = static_cast<uint8_t>(random() % 4 ? random() % 8 : random());
    refused += !expandTables(plan).empty();
  }
  EXPECT_GT(refused, tries / 10);
  EXPECT_LT(refused, tries);
}

} // namespace
} // namespace mtrun::test
