// SPDX-License-Identifier: Apache-2.0
//
// The layout of archives, small ones and ones of more than 4 GiB, as libzip finds them. Values are holes in the file.
#include "frontend/keras/Zip.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

namespace mtc::keras {
namespace {

class ZipFile : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override {
    path = testing::TempDir() + "/zip_test_XXXXXX";
    descriptor = mkstemp(path.data());
    ASSERT_GE(descriptor, 0);
  }
  void TearDown() override {
    close(descriptor);
    unlink(path.c_str());
  }
  void write(const std::vector<ExportPiece> &pieces) {
    uint64_t at = 0;
    for (const ExportPiece &piece : pieces) {
      if (piece.kind == ExportPiece::Kind::Bytes)
        ASSERT_EQ(pwrite(descriptor, piece.text.data(), piece.size, static_cast<off_t>(at)),
                  static_cast<ssize_t>(piece.size));
      if (piece.kind == ExportPiece::Kind::Crc32)
        places.push_back({piece.begin, piece.size});
      at += piece.fileBytes();
    }
    ASSERT_EQ(ftruncate(descriptor, static_cast<off_t>(at)), 0);
  }

  std::string path;
  int descriptor = -1;
  std::vector<std::pair<uint64_t, uint64_t>> places; // of checksums
};

TEST_P(ZipFile, IsWhole) {
  uint64_t size = GetParam();
  write(layOutZip({{"first", {ExportPiece::bytes("hello")}},
                   {"second", {ExportPiece::bytes("ab"), ExportPiece::variable("v", size), ExportPiece::bytes("c")}},
                   {"third", {ExportPiece::bytes("behind it")}}}));
  // In the local header and in the directory.
  ASSERT_EQ(places.size(), 6u);
  for (size_t i : {0, 1, 2})
    EXPECT_EQ(places[i], places[i + 3]);
  EXPECT_EQ(places[1].second, size + 3);
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  ASSERT_NE(archive, nullptr) << code;
  ASSERT_EQ(zip_get_num_entries(archive, 0), 3);
  const char *names[] = {"first", "second", "third"};
  uint64_t sizes[] = {5, size + 3, 9};
  for (zip_uint64_t i = 0; i < 3; ++i) {
    zip_stat_t stat;
    ASSERT_EQ(zip_stat_index(archive, i, 0, &stat), 0);
    EXPECT_STREQ(stat.name, names[i]);
    EXPECT_EQ(stat.size, sizes[i]);
    EXPECT_EQ(stat.comp_size, sizes[i]);
    EXPECT_EQ(stat.comp_method, ZIP_CM_STORE);
    EXPECT_EQ(places[i].second, sizes[i]);
  }
  std::string contents(9, '\0');
  EXPECT_EQ(pread(descriptor, contents.data(), contents.size(), static_cast<off_t>(places[2].first)), 9);
  EXPECT_EQ(contents, "behind it") << "checksums are of the members' own bytes";
  zip_discard(archive);
}

// The last sizes that 32 bits hold, and the first that they do not.
INSTANTIATE_TEST_SUITE_P(Sizes, ZipFile,
                         testing::Values(0, 100, 0xfffffffbull, 0xfffffffcull, 0xfffffffdull, 0x100000000ull,
                                         5ull << 30));

} // namespace
} // namespace mtc::keras
