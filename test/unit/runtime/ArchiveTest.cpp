// SPDX-License-Identifier: Apache-2.0
//
// The archive of a plan (docs/plan-format.md section 6): what is refused, and the bytes that are written.
#include "Corrupt.h"
#include "TestPlan.h"

#include "runtime/plan/Plan.h"
#include "runtime/session/Export.h"
#include "runtime/session/Session.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <zlib.h>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

std::unique_ptr<fb::ArchivePieceT> piece(fb::PieceKind kind, uint64_t size, uint64_t begin = 0, uint32_t variable = 0) {
  auto made = std::make_unique<fb::ArchivePieceT>();
  made->kind = kind;
  made->size = size;
  made->begin = begin;
  made->variable = variable;
  return made;
}

// 10 bytes of the constants | CRC of w and b | w | b | 6 bytes of the constants. The average of b is the rate.
void addArchive(fb::PlanT &plan) {
  plan.archive = std::make_unique<fb::ArchiveT>();
  plan.archive->suffix = ".test";
  plan.archive->section = static_cast<uint32_t>(plan.constants);
  auto &pieces = plan.archive->pieces;
  pieces.push_back(piece(fb::PieceKind::Bytes, 10));
  pieces.push_back(piece(fb::PieceKind::Crc32, 152, 14));
  pieces.push_back(piece(fb::PieceKind::Variable, 0, 0, 0));
  pieces.push_back(piece(fb::PieceKind::Variable, 0, 0, 1));
  pieces.push_back(piece(fb::PieceKind::Bytes, 6));
  plan.variables[1]->average = 2;
}

struct ArchiveCase {
  const char *message; // a part of it
  void (*change)(fb::PlanT &plan);
};
const ArchiveCase archiveCases[] = {
    {"archive: expected a section below 2, found 2", [](fb::PlanT &p) { p.archive->section = 2; }},
    {"archive: expected a name of 1 to 1024 bytes", [](fb::PlanT &p) { p.archive->suffix = ""; }},
    {"archive: expected pieces of the section's 16 bytes, found 15",
     [](fb::PlanT &p) { p.archive->pieces[0]->size = 9; }},
    {"archive piece 0: expected an archive of at most 2^46 bytes",
     [](fb::PlanT &p) { p.archive->pieces[0]->size = ~0ull; }},
    {"archive piece 2: expected a variable below 4, found 4", [](fb::PlanT &p) { p.archive->pieces[2]->variable = 4; }},
    {"archive piece 2: expected a kind of piece, found 3",
     [](fb::PlanT &p) { p.archive->pieces[2]->kind = fb::PieceKind(3); }},
    {"archive piece 1: expected a checksum of bytes of the archive that are no checksums, found 152 bytes at 13",
     [](fb::PlanT &p) { p.archive->pieces[1]->begin = 13; }},
    {"archive piece 1: expected a checksum of bytes", [](fb::PlanT &p) { p.archive->pieces[1]->size = 159; }},
    {"archive piece 1: expected a checksum of bytes", [](fb::PlanT &p) { p.archive->pieces[1]->begin = ~0ull; }},
    {"archive: expected at most 64 checksums, found 65",
     [](fb::PlanT &p) {
       for (int i = 0; i < 64; ++i)
         p.archive->pieces.push_back(piece(fb::PieceKind::Crc32, 0));
     }},
    {"variable 0: expected an average below 4, found 4", [](fb::PlanT &p) { p.variables[0]->average = 4; }},
    {"variable 0: expected an average of its size", [](fb::PlanT &p) { p.variables[0]->average = 1; }},
    {"variable 1: expected an average of its size in a plan that counts steps", [](fb::PlanT &p) { p.iteration = -1; }},
};

TEST(Archive, RefusesEachFault) {
  for (const ArchiveCase &c : archiveCases) {
    std::vector<uint8_t> bytes = makePlan({}, [&](fb::PlanT &plan) {
      addArchive(plan);
      c.change(plan);
    });
    expectCorrupt(bytes, c.message);
  }
}

class ArchiveFile : public testing::Test {
protected:
  void open(const std::function<void(fb::PlanT &)> &change) {
    std::vector<uint8_t> bytes = makePlan({}, change);
    ASSERT_TRUE(Plan::loadMemory(bytes.data(), bytes.size(), plan).ok());
    mtrun_options options = mtrun_options_init();
    options.devices = "null:1";
    ASSERT_TRUE(Session::create(*plan, &options, session).ok());
    for (size_t i = 0; i < sizeof w; ++i)
      w[i] = static_cast<char>(i * 7);
    set(0, w);
    set(1, b);
    set(2, rate);
  }
  template <typename T> void set(uint32_t variable, const T &value) {
    EXPECT_TRUE(session->setVariable(variable, std::as_bytes(std::span<const T, 1>(&value, 1))).ok());
  }
  std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::unique_ptr<Plan> plan;
  std::unique_ptr<Session> session;
  char w[148];
  float b = 2.5f, rate = 0.125f;
};

TEST_F(ArchiveFile, HasBytesVariablesAndChecksums) {
  open(addArchive);
  std::string path = testing::TempDir() + "/archive_test.test";
  auto expected = [&](float second) {
    std::string constants(reinterpret_cast<const char *>(plan->constants().data()), 16), values(w, sizeof w);
    values.append(reinterpret_cast<const char *>(&second), sizeof second);
    uLong checksum = crc32(0, reinterpret_cast<const Bytef *>(values.data()), static_cast<uInt>(values.size()));
    std::string bytes = constants.substr(0, 10);
    for (int i = 0; i < 4; ++i)
      bytes += static_cast<char>(checksum >> 8 * i);
    return bytes + values + constants.substr(10);
  };
  set(3, int32_t{0});
  ASSERT_TRUE(writeArchive(*session, path).ok());
  EXPECT_EQ(contents(path), expected(b)) << "before the first step an average is of nothing";
  set(3, int32_t{1});
  ASSERT_TRUE(writeArchive(*session, path).ok());
  EXPECT_EQ(contents(path), expected(rate));
  ASSERT_TRUE(takeAverages(*session).ok());
  EXPECT_EQ(std::memcmp(session->variable(1).data(), &rate, sizeof rate), 0);
  EXPECT_EQ(std::memcmp(session->variable(0).data(), w, sizeof w), 0);
  EXPECT_EQ(writeArchive(*session, testing::TempDir() + "/archive.h5").message(),
            "expected a file name that ends with .test (the model) or .safetensors (the variables), found " +
                testing::TempDir() + "/archive.h5");
}

TEST_F(ArchiveFile, IsNotInEveryPlan) {
  open({});
  EXPECT_EQ(writeArchive(*session, "x.test").code(), MT_INVALID);
}

} // namespace
} // namespace mtrun::test
