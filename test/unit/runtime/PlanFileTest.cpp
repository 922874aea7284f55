// SPDX-License-Identifier: Apache-2.0
//
// What damage does to a plan file: it is found, said, and never crashes.
#include "TestPlan.h"

#include "runtime/abi/compact_tables.h"
#include "runtime/plan/Plan.h"

#include <cstring>
#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

Status load(const std::vector<uint8_t> &bytes) {
  std::unique_ptr<Plan> plan;
  return Plan::loadMemory(bytes.data(), bytes.size(), plan);
}

uint64_t tablesEnd(const std::vector<uint8_t> &bytes) {
  mt_plan_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.tables_offset + header.tables_size;
}

TEST(PlanFile, LoadsWhatItWrote) {
  std::vector<uint8_t> bytes = makePlan();
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(plan->batch(), 21u);
  EXPECT_EQ(plan->shards(), 8u);
  EXPECT_NE(plan->program("train_step"), nullptr);
  EXPECT_EQ(plan->program("none"), nullptr);
  EXPECT_EQ(plan->variable("iteration"), 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plan->constants().data()) % 64, 0u);
}

TEST(PlanFile, SameInputGivesTheSameBytes) { EXPECT_EQ(makePlan(), makePlan()); }

TEST(PlanFile, EveryFlippedByteIsFound) {
  std::vector<uint8_t> bytes = makePlan();
  uint64_t end = tablesEnd(bytes);
  for (uint64_t i = 0; i < bytes.size(); i += i < end ? 1 : 61) {
    for (int bit : {0, 3, 7}) {
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
      Status status = load(bytes);
      EXPECT_EQ(status.code(), MT_CORRUPT) << "byte " << i << " bit " << bit;
      EXPECT_FALSE(status.message().empty());
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
    }
  }
  EXPECT_TRUE(load(bytes).ok());
}

TEST(PlanFile, EveryTruncationIsFound) {
  std::vector<uint8_t> bytes = makePlan();
  for (size_t size = 0; size < bytes.size(); size += size < 300 ? 1 : 97)
    EXPECT_EQ(load({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).code(), MT_CORRUPT) << size;
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_EQ(load(longer).code(), MT_CORRUPT);
  EXPECT_EQ(load({}).message(), "expected a plan file of 64 bytes or more, found 0 bytes");
}

// A vector of 64-bit numbers can be moved by 4 bytes and still lie inside the tables: its first number is then its
// length.
TEST(PlanFile, FindsMisalignedVectors) {
  std::vector<uint8_t> bytes = makePlan();
  mt_plan_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::span<const uint8_t> tables(bytes.data() + header.tables_offset, header.tables_size);
  const mt::plan::Plan *plan = wellFormedTables(tables);
  ASSERT_NE(plan, nullptr);
  const auto *buffer = reinterpret_cast<const flatbuffers::Table *>(plan->programs()->Get(0)->buffers()->Get(0));
  size_t field = buffer->GetAddressOf(mt::plan::Buffer::VT_OFFSET) - bytes.data();
  flatbuffers::uoffset_t distance;
  std::memcpy(&distance, &bytes[field], sizeof(distance));
  distance += 4;
  std::memcpy(&bytes[field], &distance, sizeof(distance));
  EXPECT_EQ(wellFormedTables(tables), nullptr);
}

TEST(PlanFile, NamesBothVersions) {
  std::vector<uint8_t> bytes = makePlan();
  bytes[8] = 7;
  Status status = load(bytes);
  EXPECT_EQ(status.code(), MT_CORRUPT);
  EXPECT_EQ(status.message(), "expected plan format version 8 to 13, found version 7");
}

uint32_t versionOf(const std::vector<uint8_t> &bytes) {
  mt_plan_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.version;
}

// An older reader would take the numbers of a CSV as they are, the sums of a metric as those of another, doubles as
// floats, and any number of samples.
TEST(PlanFile, HasALaterVersionForWhatOlderReadersPassOver) {
  EXPECT_EQ(versionOf(makePlan()), MT_PLAN_VERSION);
  std::vector<uint8_t> columns = makePlan({}, [](mt::plan::PlanT &plan) { plan.columns = "{}"; });
  EXPECT_EQ(versionOf(columns), 9u);
  std::vector<uint8_t> parameters = makePlan({}, [](mt::plan::PlanT &plan) {
    for (auto &program : plan.programs)
      for (auto &metric : program->metrics)
        metric->parameters = {0.5};
  });
  EXPECT_EQ(versionOf(parameters), 9u);
  std::vector<uint8_t> doubles = makePlan({}, [](mt::plan::PlanT &plan) { plan.precision = "f64"; });
  EXPECT_EQ(versionOf(doubles), 10u);
  std::vector<uint8_t> fixed = makePlan({}, [](mt::plan::PlanT &plan) {
    plan.fixed_batch = std::make_unique<mt::plan::FixedBatchT>();
    plan.fixed_batch->rows = 3;
  });
  EXPECT_EQ(versionOf(fixed), 10u);
  EXPECT_EQ(versionOf(makePlan({}, compactTables)), MT_PLAN_COMPACT_VERSION);
}

TEST(PlanFile, ReadsFromAFile) {
  std::string path = testing::TempDir() + "/plan_file_test.mtp";
  std::vector<uint8_t> bytes = makePlan();
  FILE *file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(bytes.data(), 1, bytes.size() - 1, file);
  std::fclose(file);
  std::unique_ptr<Plan> plan;
  Status status = Plan::load(path, plan);
  EXPECT_EQ(status.code(), MT_CORRUPT);
  EXPECT_EQ(status.message().rfind(path + ": ", 0), 0u) << status.message();
  std::remove(path.c_str());
  status = Plan::load(path, plan);
  EXPECT_EQ(status.code(), MT_IO);
  EXPECT_EQ(status.message(), "cannot open " + path + ": No such file or directory");
  EXPECT_EQ(Plan::load(testing::TempDir(), plan).code(), MT_IO);
}

} // namespace
} // namespace mtrun::test
