// SPDX-License-Identifier: Apache-2.0
#include "Fixtures.h"
#include "Records.h"
#include "runtime/data/Pictures.h"
#include "runtime/data/Records.h"
#include "runtime/data/Table.h"
#include "runtime/support/crc32c.h"

#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

class TfRecords : public testing::Test {
protected:
  std::string open(const std::string &rest) {
    DataSpec spec;
    table = {};
    std::string result = text(parseDataSpec("tfrecord:" + folder.path(rest), spec));
    if (result == "0")
      result = text(openTable(spec, table));
    for (size_t at; (at = result.find(folder.path() + "/")) != std::string::npos;)
      result.erase(at, folder.path().size() + 1);
    return result;
  }
  const Field *find(const std::string &name) const {
    for (const Field &field : table.fields)
      if (field.name == name)
        return &field;
    return nullptr;
  }
  TempFolder folder;
  Table table;
};

} // namespace

TEST(Crc32c, Vectors) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(maskedCrc32c("\x1a\x11"
                         "CRC test, one two",
                         19),
            0x5794d08au);
}

TEST_F(TfRecords, Features) {
  std::string one = record(example({feature("x", Floats{1, 2}), feature("label", Ints{3}),
                                    feature("raw", Strings{"abcd"}), feature("name", Strings{"cat"})}));
  std::string two = record(example({feature("x", Floats{3, 4}), feature("label", Ints{-1}),
                                    feature("raw", Strings{"efgh"}), feature("name", Strings{"horse"})}));
  writeFile(folder.path("b.tfrecord"), two);
  writeGzip(folder.path("a.tfrecord"), one);
  ASSERT_EQ(open("*.tfrecord"), "0");
  EXPECT_EQ(table.fields[0].samples, 2u);
  EXPECT_EQ(reinterpret_cast<const float *>(find("x")->bytes.get())[2], 3);
  EXPECT_EQ(reinterpret_cast<const int64_t *>(find("label")->bytes.get())[1], -1);
  EXPECT_EQ(find("label")->role, MTRUN_TARGET);
  EXPECT_EQ(find("raw")->bytes.get()[4], 'e');
  EXPECT_FALSE(find("name"));
  EXPECT_EQ(table.notes.at(0),
            folder.path("*.tfrecord") +
                ": feature \"name\" is left out: it has 5 values, expected 3 as in the first record");
  ASSERT_EQ(open("*.tfrecord,x=raw,y=label,raw=u16"), "0");
  EXPECT_EQ(table.fields.size(), 2u);
  EXPECT_EQ(find("raw")->type, Stored::U16);
  EXPECT_EQ(open("*.tfrecord,x=name"),
            "1: b.tfrecord, record 0 at byte 0: feature \"name\" has 5 values, expected 3 as in "
            "the first record");
  EXPECT_EQ(open("*.tfrecord,x=y"), "1: *.tfrecord: expected a feature \"y\", found x, label, raw, name");
  EXPECT_EQ(open("*.none"), "7: expected files that match *.none, found none");
}

TEST_F(TfRecords, LabelsOfText) {
  std::string file;
  for (auto [word, number] : {std::pair("cat", 1), {"cow", 0}})
    file += record(example({feature("x", Floats{1, 2}), feature("label", Strings{word}), feature("id", Ints{number})}));
  writeFile(folder.path("t"), file);
  std::string trouble = "has the text \"cat\", expected the number of a class, an integer";
  ASSERT_EQ(open("t"), "0");
  EXPECT_FALSE(find("label"));
  EXPECT_EQ(table.notes.at(0), folder.path("t") + ": feature \"label\" is left out: it " + trouble);
  EXPECT_EQ(open("t,x=x,y=label"), "1: t, record 0 at byte 0: feature \"label\" " + trouble);
  EXPECT_EQ(open("t,x=x,y=id"), "0");
  ASSERT_EQ(open("t,x=x,y=label,raw=u8"), "0");
  EXPECT_EQ(find("label")->bytes.get()[1], 'a');
}

TEST_F(TfRecords, PicturesAndWhatIsLeftOut) {
  std::string good = png(1, 1, 0, "\7"), bad = good;
  bad[bad.size() - 14] ^= 1;
  std::string file;
  for (auto [bytes, label] : {std::pair(good, 1), {bad, 2}, {good, 3}})
    file += record(example({feature("image", Strings{bytes}), feature("label", Ints{label})}));
  writeFile(folder.path("p"), file);
  ASSERT_EQ(open("p"), "0");
  ASSERT_EQ(find("image")->samples, 2u);
  EXPECT_TRUE(find("image")->pictures);
  EXPECT_EQ(reinterpret_cast<const int64_t *>(find("label")->bytes.get())[1], 3);
  EXPECT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(open("p,strict=yes").starts_with("3: p, byte ")) << open("p,strict=yes");
}

TEST_F(TfRecords, Damage) {
  writeFile(folder.path("z.tfrecord"), "\x78\x9c" + std::string(30, 'x')); // as Python's zlib begins
  EXPECT_EQ(open("z.tfrecord"), "1: z.tfrecord: expected records that are not compressed, or by GZIP, found ZLIB");
  std::string whole = record(example({feature("x", Floats{1, 2})}));
  for (size_t size = 1; size < whole.size(); ++size) {
    writeFile(folder.path("cut"), whole.substr(0, size));
    EXPECT_TRUE(open("cut").starts_with("3: cut, record 0 at byte 0: expected ")) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 16;
    writeFile(folder.path("cut"), damaged);
    EXPECT_TRUE(open("cut").starts_with("3: cut, record 0 at byte 0: the checksum of its ")) << at << open("cut");
  }
  writeFile(folder.path("e"), "");
  EXPECT_EQ(open("e"), "1: e: expected records, found none");
  writeFile(folder.path("n"), record("\x0a\x05zz"));
  EXPECT_EQ(open("n"), "3: n, record 0 at byte 0: expected a tf.train.Example, found 4 other bytes");
  // Unpacked numbers, as old writers have them, and a name that is there twice.
  std::vector<Feature> features;
  std::string old("\x0a\x16\x0a\x09\x0a\x01x\x12\x04\x1a\x02\x08\x05\x0a\x09\x0a\x01x\x12\x04\x1a\x02\x08\x07", 24);
  ASSERT_EQ(text(parseExample({reinterpret_cast<const uint8_t *>(old.data()), old.size()}, features)), "0");
  ASSERT_EQ(features.size(), 1u);
  EXPECT_EQ(features[0].ints, Ints{7});
}
