// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Idx.h"
#include "Fixtures.h"

#include <gtest/gtest.h>

using namespace fixtures;
using mtrun::IdxArray;
using mtrun::readIdx;

namespace {

class Idx : public testing::Test {
protected:
  // The outcome of reading a file with these bytes, its path shown as FILE.
  std::string read(const std::string &bytes, int rank) {
    writeFile(path, bytes);
    return outcome(rank);
  }
  std::string outcome(int rank) {
    std::string result = text(readIdx(path, rank, array));
    for (size_t at; (at = result.find(path)) != std::string::npos;)
      result.replace(at, path.size(), "FILE");
    return result;
  }

  TempFolder folder;
  std::string path = folder.path("images");
  IdxArray array;
};

} // namespace

TEST_F(Idx, PlainAndGzip) {
  EXPECT_EQ(read(idx({2, 1, 3}, "abcdef"), 3), "0");
  EXPECT_EQ(array.dims, (std::vector<uint64_t>{2, 1, 3}));
  EXPECT_EQ(std::string(array.bytes.get(), array.bytes.get() + array.size), "abcdef");
  std::filesystem::remove(path);
  writeGzip(path + ".gz", idx({2, 1, 3}, "ghijkl"));
  EXPECT_EQ(outcome(3), "0");
  EXPECT_EQ(std::string(array.bytes.get(), array.bytes.get() + array.size), "ghijkl");
}

TEST_F(Idx, Empty) {
  EXPECT_EQ(read(idx({0}, ""), 1), "0");
  EXPECT_EQ(array.size, 0u);
}

TEST_F(Idx, Missing) { EXPECT_EQ(outcome(1), "7: cannot open FILE or FILE.gz: No such file or directory"); }

TEST_F(Idx, NotAFile) {
  std::filesystem::create_directory(path);
  EXPECT_EQ(outcome(1), "7: cannot read FILE: it is not a regular file");
}

TEST_F(Idx, Short) {
  EXPECT_EQ(read("", 1), "3: FILE: expected an IDX header of 8 bytes, found 0 bytes");
  EXPECT_EQ(read(idx({4}, "abcd").substr(0, 7), 1), "3: FILE: expected an IDX header of 8 bytes, found 7 bytes");
  EXPECT_EQ(read(idx({4}, "abc"), 1), "3: FILE: expected 4 bytes of elements (4), found 3");
  EXPECT_EQ(read(idx({4}, "abcde"), 1), "3: FILE: expected 4 bytes of elements (4), found more");
}

TEST_F(Idx, Magic) {
  EXPECT_EQ(read(idx({4}, "abcd"), 3), "3: FILE: expected an IDX header of 16 bytes, found 12 bytes");
  EXPECT_EQ(read(idx({4}, "abcdefgh"), 3), "3: FILE: expected the IDX magic 0x00000803 (u8, rank 3), found 0x00000801");
  EXPECT_EQ(read("not an idx file", 1), "3: FILE: expected the IDX magic 0x00000801 (u8, rank 1), found 0x6e6f7420");
}

TEST_F(Idx, PromisesMoreThanTheFileHolds) {
  EXPECT_EQ(read(idx({0xffffffff, 0xffffffff, 0xffffffff}, "abc"), 3),
            "3: FILE: the header says 4294967295x4294967295x4294967295 bytes, more than a file of 19 bytes can hold");
  EXPECT_EQ(read(idx({1000}, "abc"), 1), "3: FILE: the header says 1000 bytes, more than a file of 11 bytes can hold");
  std::filesystem::remove(path);
  writeGzip(path + ".gz", idx({1u << 30}, "abc"));
  EXPECT_NE(outcome(1).find("3: FILE.gz: the header says 1073741824 bytes, more than a file of "), std::string::npos);
}

TEST_F(Idx, DamagedGzip) {
  std::string elements;
  for (int i = 0; i < 600; ++i)
    elements += static_cast<char>(i * i >> 3);
  writeGzip(path + ".gz", idx({600}, elements));
  std::string good = readFile(path + ".gz");
  ASSERT_EQ(outcome(1), "0");
  // Every truncation and every flipped byte of the stream ends in an error or in the same bytes.
  for (size_t size = 0; size < good.size(); ++size) {
    writeFile(path + ".gz", good.substr(0, size));
    EXPECT_EQ(outcome(1).substr(0, 2), "3:") << size;
  }
  for (size_t at = 10; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    writeFile(path + ".gz", bad);
    std::string result = outcome(1);
    EXPECT_TRUE(result.starts_with("3:") || std::string(array.bytes.get(), array.bytes.get() + array.size) == elements)
        << at;
  }
}
