// SPDX-License-Identifier: Apache-2.0
#include "Tables.h"
#include "runtime/data/Npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

using namespace fixtures;
using namespace mtrun;

namespace {

// A zip archive; `deflated` members are compressed.
std::string zip(const std::vector<std::pair<std::string, std::string>> &members, bool deflated) {
  std::string file, directory;
  for (const auto &[name, bytes] : members) {
    std::string packed = bytes;
    if (deflated) {
      uLongf size = compressBound(bytes.size());
      packed.resize(size);
      compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(bytes.data()),
               bytes.size());
      packed = packed.substr(2, size - 6); // without zlib's header and checksum
    }
    std::string sizes = little(0, 4) + little(packed.size(), 4) + little(bytes.size(), 4) + little(name.size(), 2);
    std::string method = little(deflated ? 8 : 0, 2) + little(0, 4);
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 2) + method + sizes + little(0, 2) +
                 little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(file.size(), 4) + name;
    file += "PK\3\4" + little(20, 2) + little(0, 2) + method + sizes + little(0, 2) + name + packed;
  }
  return file + directory + "PK\5\6" + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) +
         little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
}

std::string npy(mt_dtype dtype, std::vector<int64_t> shape, const std::string &bytes) {
  return npyHeader(dtype, shape) + bytes;
}

} // namespace

TEST_F(Tables, Cifar) {
  std::string record(1, 3), hundred = std::string(1, 9) + std::string(1, 77);
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 1024; ++p)
      record += static_cast<char>(c * 80 + p % 80);
  hundred += record.substr(1);
  for (int i = 1; i <= 5; ++i)
    writeFile(folder.path("data_batch_" + std::to_string(i) + ".bin"), record);
  writeGzip(folder.path("test_batch.bin.gz"), record + record + record);
  writeFile(folder.path("train.bin"), hundred);
  ASSERT_EQ(open("cifar10", ""), "0");
  EXPECT_EQ(table.fields[0].samples, 5u);
  EXPECT_EQ(table.fields[0].shape, (std::vector<uint64_t>{32, 32, 3}));
  EXPECT_EQ(at<uint8_t>(0, 4, 3 * 5 + 2), 165); // pixel 5, blue
  EXPECT_EQ(at<uint8_t>(1, 4), 3);
  ASSERT_EQ(open("cifar10", ",split=test"), "0");
  EXPECT_EQ(table.fields[0].samples, 3u);
  ASSERT_EQ(open("cifar10", "/test_batch.bin"), "0");
  EXPECT_EQ(table.fields[0].samples, 3u);
  ASSERT_EQ(open("cifar100", ""), "0");
  EXPECT_EQ(at<uint8_t>(1, 0), 77); // the fine label
  writeFile(folder.path("train.bin"), hundred + "x");
  EXPECT_EQ(open("cifar100", ""), "3: train.bin: expected records of 3074 bytes, found 3075 bytes");
}

TEST_F(Tables, Npy) {
  writeFile(folder.path("x.npy"), npy(MT_F32, {2, 3}, std::string(24, '\0')));
  writeFile(folder.path("y.npy"), npy(MT_I64, {2}, little(5, 8) + little(6, 8)));
  ASSERT_EQ(open("npy", "x.npy," + folder.path("y.npy")), "0");
  EXPECT_EQ(table.fields[0].type, Stored::F32);
  EXPECT_EQ(table.fields[0].shape, std::vector<uint64_t>{3});
  EXPECT_EQ(at<int64_t>(1, 1), 6);
  writeFile(folder.path("y.npy"), npy(MT_I64, {3}, std::string(24, '\0')));
  EXPECT_EQ(open("npy", "x.npy," + folder.path("y.npy")), "1: x.npy has 2 samples, y.npy has 3");
  std::string whole = npy(MT_U8, {4}, "abcd");
  for (size_t size = 0; size < whole.size(); ++size) {
    writeFile(folder.path("cut.npy"), whole.substr(0, size));
    EXPECT_TRUE(open("npy", "cut.npy").starts_with("3: cut.npy: ")) << size;
  }
  std::string objects = whole, fortran = whole;
  objects.replace(objects.find("|u1"), 3, "|O8");
  fortran.replace(fortran.find("False"), 5, "True ");
  writeFile(folder.path("o.npy"), objects);
  writeFile(folder.path("f.npy"), fortran);
  EXPECT_EQ(open("npy", "o.npy"),
            "1: o.npy: expected numbers, found '|O8', Python objects: save them as numbers, or as a CSV file, whose "
            "column of names is read as classes");
  EXPECT_EQ(open("npy", "f.npy"), "1: f.npy: expected an array in C order, found fortran_order True and shape (4,)");
}

TEST_F(Tables, NpyOfUnsigned) {
  std::string file = npy(MT_I64, {2}, little(7, 8) + little(INT64_MAX, 8));
  file.replace(file.find("<i8"), 3, "<u8");
  writeFile(folder.path("u.npy"), file);
  ASSERT_EQ(open("npy", "u.npy," + folder.path("u.npy")), "0");
  EXPECT_EQ(at<int64_t>(1, 0), 7);
  EXPECT_EQ(at<int64_t>(1, 1), INT64_MAX);
  file.back() = '\x80';
  writeFile(folder.path("u.npy"), file);
  EXPECT_EQ(open("npy", "u.npy"), "1: u.npy: expected numbers below 2^63, found 9295429630892703743");
  const std::pair<const char *, const char *> others[] = {
      {"<U4", ", found '<U4', texts: save them as numbers, or as a CSV file, whose column of names is read as classes"},
      {"<c8", ", found '<c8', complex numbers: save their parts as two arrays"},
      {">f8", " in little-endian order, found '>f8': save array.astype(array.dtype.newbyteorder('<'))"},
      {"<V8", " of 1, 2, 4 or 8 bytes, such as '<f4' and '|u1', found '<V8'"}};
  for (auto [descr, message] : others) {
    std::string other = file;
    other.replace(other.find("<u8"), 3, descr);
    writeFile(folder.path("u.npy"), other);
    EXPECT_EQ(open("npy", "u.npy"), std::string("1: u.npy: expected numbers") + message);
  }
}

TEST_F(Tables, Npz) {
  std::string image = npy(MT_U8, {2, 3}, "abcdef"), label = npy(MT_I32, {2}, little(1, 4) + little(0, 4));
  for (bool deflated : {false, true}) {
    writeFile(folder.path("d.npz"), zip({{"image.npy", image}, {"label.npy", label}}, deflated));
    ASSERT_EQ(open("npz", "d.npz"), "0");
    ASSERT_EQ(table.fields.size(), 2u);
    EXPECT_EQ(table.fields[0].name, "image");
    EXPECT_TRUE(table.fields[0].named);
    EXPECT_EQ(at<uint8_t>(0, 1, 2), 'f');
    EXPECT_EQ(at<int32_t>(1, 0), 1);
  }
  ASSERT_EQ(open("npz", "d.npz,x=image,y=label"), "0");
  EXPECT_EQ(table.fields[1].role, MTRUN_TARGET);
  EXPECT_EQ(open("npz", "d.npz,x=picture"), "1: d.npz: expected array picture, found image, label");
  // Any length and any flipped byte: a table or a message, and nothing read outside the file.
  std::string whole = readFile(folder.path("d.npz"));
  for (size_t size = 0; size < whole.size(); ++size) {
    writeFile(folder.path("cut.npz"), whole.substr(0, size));
    EXPECT_NE(open("npz", "cut.npz"), "0") << size;
    std::string damaged = whole;
    damaged[size] = static_cast<char>(~damaged[size]);
    writeFile(folder.path("cut.npz"), damaged);
    (void)open("npz", "cut.npz");
  }
}

TEST_F(Tables, Tokens) {
  std::string tokens;
  for (uint64_t i = 0; i < 10; ++i)
    tokens += little(100 + i, 2);
  writeFile(folder.path("t.bin"), tokens);
  ASSERT_EQ(open("tokens", "t.bin,length=4"), "0");
  EXPECT_EQ(table.fields[0].samples, 2u);
  EXPECT_EQ(at<uint16_t>(0, 1, 0), 104);
  EXPECT_EQ(at<uint16_t>(1, 1, 3), 108); // the next one of each
  ASSERT_EQ(open("tokens", "t.bin,length=4,stride=2"), "0");
  EXPECT_EQ(table.fields[0].samples, 3u); // 0, 2, 4: the one at 6 would need token 10
  EXPECT_EQ(at<uint16_t>(0, 2, 0), 104);
  EXPECT_EQ(at<uint16_t>(1, 2, 3), 108);
  ASSERT_EQ(open("tokens", "t.bin,length=4,stride=9223372036854775807"), "0");
  EXPECT_EQ(table.fields[0].samples, 1u);
  std::string header = little(20240520, 4) + little(1, 4) + little(10, 4) + std::string(1012, '\0');
  writeFile(folder.path("l.bin"), header + tokens);
  ASSERT_EQ(open("tokens", "l.bin,length=9"), "0");
  EXPECT_EQ(at<uint16_t>(1, 0, 8), 109);
  writeFile(folder.path("l.bin"), header + tokens + "xx");
  EXPECT_EQ(open("tokens", "l.bin,length=9"),
            "3: l.bin: expected version 1 and 10 tokens of 2 bytes, found version 1 and 22 bytes");
  EXPECT_EQ(open("tokens", "t.bin"), "1: data: expected length=T, the tokens of a sample, found none");
  EXPECT_EQ(open("tokens", "t.bin,length=10"), "1: t.bin: expected at least 11 tokens, found 10");
  writeFile(folder.path("t.bin"), "\1yz");
  EXPECT_EQ(open("tokens", "t.bin,length=1"), "3: t.bin: expected tokens of 2 bytes, found 3 bytes");
}
