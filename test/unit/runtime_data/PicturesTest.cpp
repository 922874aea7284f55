// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Pictures.h"
#include "Fixtures.h"
#include "Records.h"
#include "runtime/data/Resize.h"
#include "runtime/data/Table.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

class PictureFiles : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name : {"a", "b"})
      std::filesystem::create_directory(folder.path(name));
    writeFile(folder.path("a/1.png"), png(2, 1, 2, std::string("\1\2\3\4\5\6", 6)));
    writeFile(folder.path("a/0.PNG"), png(2, 2, 0, "\x10\x20\x30\x40"));
    writeFile(folder.path("b/2.png"), png(1, 2, 2, "abcdef"));
    writeFile(folder.path("b/notes.txt"), "not a picture");
  }
  std::string open(const std::string &text) {
    spec = {};
    table = {};
    std::string result = fixtures::text(parseDataSpec(text, spec));
    if (result == "0")
      result = fixtures::text(openTable(spec, table));
    for (size_t at; (at = result.find(folder.path())) != std::string::npos;)
      result.replace(at, folder.path().size(), "D");
    return result;
  }
  // Sample `index` in this size.
  std::vector<float> read(int64_t index, PictureShape shape, Draw draw = {}) {
    Pictures sized = *table.fields[0].pictures;
    EXPECT_EQ(fixtures::text(sized.size(shape, spec)), "0");
    std::vector<float> values(size_t(shape.height) * shape.width * shape.channels);
    EXPECT_EQ(fixtures::text(sized.read(index, draw, values.data())), "0");
    return values;
  }
  TempFolder folder;
  DataSpec spec;
  Table table;
};

using Floats = std::vector<float>;

} // namespace

TEST_F(PictureFiles, FoldersAreClasses) {
  ASSERT_EQ(open("images:" + folder.path()), "0");
  EXPECT_EQ(table.classes, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table.fields[0].samples, 3u);
  EXPECT_EQ(table.fields[0].pictures->nameOf(0), folder.path("a/0.PNG"));
  EXPECT_EQ(reinterpret_cast<const int64_t *>(table.fields[1].bytes.get())[2], 1);
  EXPECT_EQ(read(0, {2, 2, 1}), (Floats{16, 32, 48, 64}));
  EXPECT_EQ(read(0, {2, 2, 3}), (Floats{16, 16, 16, 32, 32, 32, 48, 48, 48, 64, 64, 64}));
  EXPECT_EQ(read(1, {1, 2, 3}), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read(1, {1, 2, 1}), (Floats{2, 5})); // luminance
  // As tf.image.resize: centres of pixels at halves.
  EXPECT_EQ(read(0, {1, 1, 1}), Floats{40});
  EXPECT_EQ(read(0, {2, 4, 1}), (Floats{16, 20, 28, 32, 48, 52, 60, 64}));
}

TEST_F(PictureFiles, Lists) {
  writeFile(folder.path("l.csv"), "file,label\r\na/1.png,7\nb/2.png,-3\n");
  ASSERT_EQ(open("images:" + folder.path("l.csv")), "0");
  EXPECT_EQ(reinterpret_cast<const int64_t *>(table.fields[1].bytes.get())[1], -3);
  writeFile(folder.path("l.csv"), "a/1.png,dog\nb/2.png,cat\n");
  ASSERT_EQ(open("images:" + folder.path("l.csv")), "0");
  EXPECT_EQ(table.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(reinterpret_cast<const int64_t *>(table.fields[1].bytes.get())[0], 1);
  writeFile(folder.path("l.csv"), "file;label\na/1.png;dog\nb/2.png;cat\n"); // of spreadsheets with decimal commas
  ASSERT_EQ(open("images:" + folder.path("l.csv")), "0");
  EXPECT_EQ(table.classes, (std::vector<std::string>{"cat", "dog"}));
  writeFile(folder.path("l.csv"), "a/1.png\nb/2.png\n");
  ASSERT_EQ(open("images:" + folder.path("l.csv")), "0");
  EXPECT_EQ(table.fields.size(), 1u);
  writeFile(folder.path("l.csv"), "a/1.png,1\nb/2.png\n");
  EXPECT_EQ(open("images:" + folder.path("l.csv")), "1: D/l.csv, line 2: expected FILE,LABEL, found \"b/2.png\"");
}

TEST_F(PictureFiles, ALinkToAFolderAbove) {
  std::filesystem::create_directory_symlink(folder.path("b"), folder.path("a/more"));
  ASSERT_EQ(open("images:" + folder.path()), "0");
  EXPECT_EQ(table.fields[0].samples, 4u);
  std::filesystem::create_directory_symlink("..", folder.path("a/up"));
  EXPECT_EQ(open("images:" + folder.path()), "7: cannot read D/a/up: it is a link to a folder that holds it");
}

TEST_F(PictureFiles, DamagedOnesAreLeftOut) {
  std::string whole = readFile(folder.path("a/1.png"));
  writeFile(folder.path("a/3.png"), whole.substr(0, whole.size() - 20));
  writeFile(folder.path("b/4.jpg"), "GIF89a");
  writeFile(folder.path("b/5.jpg"), "");
  ASSERT_EQ(open("images:" + folder.path()), "0");
  EXPECT_EQ(table.fields[0].samples, 3u);
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(
      table.notes[0].ends_with(": 3 of 6 pictures are damaged and left out; the first: " + folder.path("a/3.png") +
                               ": expected a complete PNG picture, found no end of image"))
      << table.notes[0];
  EXPECT_EQ(open("images:" + folder.path() + ",strict=yes"),
            "3: D/a/3.png: expected a complete PNG picture, found no end of image");
  for (const char *name : {"a/0.PNG", "a/1.png", "b/2.png", "a/3.png"})
    std::filesystem::remove(folder.path(name));
  EXPECT_EQ(open("images:" + folder.path()), "3: D: 2 of 2 pictures are damaged and left out; the first: D/b/4.jpg: "
                                             "expected a JPEG or PNG picture, found bytes 47 49 46 38 39 61");
  EXPECT_EQ(open("images:" + folder.path("a")),
            "1: D/a: expected .jpg, .jpeg or .png files, in a folder for each class, found none");
}

TEST_F(PictureFiles, EmptyClasses) {
  std::filesystem::create_directory(folder.path("aa"));
  ASSERT_EQ(open("images:" + folder.path()), "0");
  EXPECT_EQ(table.classes.size(), 3u);
  EXPECT_EQ(table.notes.at(0),
            folder.path() + ": expected pictures of each of 3 classes, found none of 1: aa; it keeps its label");
  EXPECT_EQ(open("images:" + folder.path() + ",strict=yes"),
            "1: D: expected pictures of each of 3 classes, found none of 1: aa");
}

TEST_F(PictureFiles, AFileThatGoesInTheMiddle) {
  ASSERT_EQ(open("images:" + folder.path()), "0");
  Pictures sized = *table.fields[0].pictures;
  ASSERT_EQ(text(sized.size({1, 1, 1}, spec)), "0");
  float value = 0;
  std::filesystem::remove(folder.path("a/1.png"));
  EXPECT_EQ(text(sized.read(1, {}, &value)),
            "7: cannot open " + folder.path("a/1.png") + ": No such file or directory");
}

TEST_F(PictureFiles, HostileSizes) {
  std::string huge = png(2, 1, 2, "\1\2\3\4\5\6");
  huge.replace(16, 8, std::string("\0\0\xff\0\0\0\xff\0", 8)); // 65280 x 65280
  huge.replace(29, 4, crcOf(huge.substr(12, 17)));
  writeFile(folder.path("a/1.png"), huge);
  EXPECT_EQ(open("images:" + folder.path() + ",strict=yes"),
            "1: D/a/1.png: expected at most 100000000 pixels and sides of 65500, found 65280 x 65280");
}

TEST_F(PictureFiles, DrawsDependOnSeedPassAndSample) {
  ASSERT_EQ(open("images:" + folder.path() + ",flip=horizontal"), "0");
  Floats plain = read(0, {2, 2, 1}), flipped = {32, 16, 64, 48};
  int flips = 0;
  for (int64_t pass = 0; pass < 200; ++pass) {
    Floats got = read(0, {2, 2, 1}, {true, 5, pass});
    EXPECT_TRUE(got == plain || got == flipped);
    EXPECT_EQ(got, read(0, {2, 2, 1}, {true, 5, pass}));
    flips += got == flipped;
  }
  EXPECT_GT(flips, 60);
  EXPECT_LT(flips, 140);
  EXPECT_EQ(read(0, {2, 2, 1}, {false, 5, 3}), plain); // not in evaluation
  // A window of a picture that is 2 pixels larger.
  ASSERT_EQ(open("images:" + folder.path() + ",crop=2"), "0");
  std::vector<Floats> windows;
  Floats large(16);
  resizeBilinear(reinterpret_cast<const uint8_t *>("\x10\x20\x30\x40"), 2, 2, 1, large.data(), 4, 4);
  for (int top = 0; top < 3; ++top)
    for (int left = 0; left < 3; ++left) {
      const float *at = large.data() + top * 4 + left;
      windows.push_back({at[0], at[1], at[4], at[5]});
    }
  std::vector<bool> seen(9);
  for (int64_t pass = 0; pass < 200; ++pass) {
    auto found = std::find(windows.begin(), windows.end(), read(0, {2, 2, 1}, {true, 5, pass}));
    ASSERT_NE(found, windows.end());
    seen[static_cast<size_t>(found - windows.begin())] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 9);
  EXPECT_EQ(read(0, {2, 2, 1}), windows[4]); // the middle
}

TEST_F(PictureFiles, Caches) {
  for (std::string where : {std::string("memory"), folder.path("cache")}) {
    ASSERT_EQ(open("images:" + folder.path() + ",cache=" + where), "0");
    Pictures sized = *table.fields[0].pictures;
    ASSERT_EQ(text(sized.size({2, 2, 1}, spec)), "0");
    Floats first(4), again(4);
    ASSERT_EQ(text(sized.read(0, {}, first.data())), "0");
    std::filesystem::rename(folder.path("a/0.PNG"), folder.path("gone"));
    ASSERT_EQ(text(sized.read(0, {}, again.data())), "0");
    EXPECT_EQ(first, again);
    std::filesystem::rename(folder.path("gone"), folder.path("a/0.PNG"));
    Pictures other = *table.fields[0].pictures;
    if (where != "memory")
      EXPECT_EQ(text(other.size({2, 2, 1}, spec)),
                "7: cannot use the cache " + where + ": another run or source uses it; expected a file for each");
  }
  // The next run finds the samples; a damaged one is made again.
  std::string bytes = readFile(folder.path("cache"));
  EXPECT_EQ(bytes.size(), 64 + 64 + 3 * 16u);
  for (bool damage : {false, true}) {
    if (damage)
      bytes[128] ^= 1;
    writeFile(folder.path("cache"), bytes);
    ASSERT_EQ(open("images:" + folder.path() + ",cache=" + folder.path("cache")), "0");
    EXPECT_EQ(read(0, {2, 2, 1}), (Floats{16, 32, 48, 64}));
  }
  writeFile(folder.path("cache"), "my thesis");
  ASSERT_EQ(open("images:" + folder.path() + ",cache=" + folder.path("cache")), "0");
  Pictures sized = *table.fields[0].pictures;
  EXPECT_EQ(text(sized.size({2, 2, 1}, spec)),
            "1: cache: expected a new file or a cache of pictures, found something else in " + folder.path("cache"));
  EXPECT_EQ(readFile(folder.path("cache")), "my thesis");
}

// The made JPEGs, whatever they are: decoded, each the same however often; cut and damaged ones said to be so.
TEST_F(PictureFiles, Jpegs) {
  std::string made = std::string(MTC_BINARY_DIR) + "/test/pictures/make-pictures " + folder.path("m") + " 40 2";
  ASSERT_EQ(system(made.c_str()), 0);
  ASSERT_EQ(open("images:" + folder.path("m/train")), "0");
  ASSERT_EQ(table.fields[0].samples, 40u);
  const PictureSurvey seen = table.fields[0].pictures->seen;
  EXPECT_EQ(seen.grey, 4u);
  EXPECT_EQ(seen.cmyk, 2u);
  std::vector<Floats> pictures;
  for (int64_t i = 0; i < 40; ++i)
    pictures.push_back(read(i, {8, 8, 3}));
  ASSERT_EQ(open("tfrecord:" + folder.path("m/*.tfrecord")), "0");
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_EQ(read(i, {8, 8, 3}), pictures[static_cast<size_t>(i)]) << i;
  ASSERT_EQ(open("images:" + folder.path("m/train") + ",upright=no"), "0");
  int turned = 0;
  for (int64_t i = 0; i < 40; ++i)
    turned += read(i, {8, 8, 3}) != pictures[static_cast<size_t>(i)];
  EXPECT_EQ(turned, 5);
  // The 35th has orientation 6, a quarter turn: what is up was stored at the left.
  ASSERT_TRUE(table.fields[0].pictures->nameOf(38).ends_with("up/000034.jpg"));
  Floats stored = read(38, {8, 8, 3});
  for (size_t y = 0; y < 8; ++y)
    for (size_t x = 0; x < 24; ++x)
      EXPECT_NEAR(pictures[38][y * 24 + x], stored[(7 - x / 3) * 24 + y * 3 + x % 3], 1e-3);
  std::string whole = readFile(folder.path("m/train/across/000000.jpg"));
  for (size_t size = 0; size < whole.size(); size += whole.size() / 50) {
    writeFile(folder.path("m/train/across/000000.jpg"), whole.substr(0, size));
    EXPECT_TRUE(
        open("images:" + folder.path("m/train") + ",strict=yes").starts_with("3: D/m/train/across/000000.jpg: "))
        << size;
  }
}

// Of one or two rows of blocks, so that the first line's decoder is at the end of the file; and the same ones cut.
TEST_F(PictureFiles, FlatJpegs) {
  std::string made = std::string(MTC_BINARY_DIR) + "/test/pictures/make-pictures " + folder.path("s") + " 60 0 3";
  ASSERT_EQ(system(made.c_str()), 0);
  ASSERT_EQ(open("images:" + folder.path("s/train") + ",strict=yes"), "0");
  ASSERT_EQ(table.fields[0].samples, 60u);
  for (int i = 0; i < 60; i += 5) {
    std::string path = table.fields[0].pictures->nameOf(static_cast<size_t>(i)), whole = readFile(path);
    writeFile(path, whole.substr(0, whole.size() - 2));
    EXPECT_TRUE(open("images:" + folder.path("s/train") + ",strict=yes").starts_with("3: ")) << path;
    writeFile(path, whole);
    ASSERT_EQ(open("images:" + folder.path("s/train") + ",strict=yes"), "0");
  }
}

TEST_F(PictureFiles, CountsWhatIsDecoded) {
  ASSERT_EQ(open("images:" + folder.path()), "0");
  ReadCount count;
  Draw draw;
  draw.count = &count;
  read(0, {2, 2, 1}, draw);
  read(2, {2, 2, 1}, draw);
  EXPECT_EQ(count.pictures, 2);
  EXPECT_EQ(count.bytes, static_cast<int64_t>(std::filesystem::file_size(folder.path("a/0.PNG")) +
                                              std::filesystem::file_size(folder.path("b/2.png"))));
}
