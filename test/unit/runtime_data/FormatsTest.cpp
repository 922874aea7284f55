// SPDX-License-Identifier: Apache-2.0
//
// What people have: spreadsheets, texts, the pickles of CIFAR.
#include "Tables.h"
#include "runtime/data/Pickle.h"

using namespace fixtures;
using namespace mtrun;
using namespace std::string_literals;

TEST_F(Tables, Csv) {
  writeFile(folder.path("d.csv"), "a, kind,b\r\n1,0,2.5\n\n3,1,-4e1\n");
  ASSERT_EQ(open("csv", "d.csv,label=kind"), "0");
  EXPECT_EQ(table.fields[0].shape, std::vector<uint64_t>{2});
  EXPECT_EQ(at<double>(0, 1, 1), -40);
  EXPECT_EQ(table.fields[1].name, "kind");
  EXPECT_EQ(at<int64_t>(1, 1), 1);
  ASSERT_EQ(open("csv", "d.csv"), "0");
  EXPECT_EQ(table.fields[1].type, Stored::F64); // b is not whole
  EXPECT_EQ(open("csv", "d.csv,label=c"), "1: d.csv: expected y= columns of a, kind, b, found c");
  EXPECT_EQ(open("csv", "d.csv,y=knid"), "1: d.csv: expected y= columns of a, kind, b, found knid; did you mean kind?");
  writeFile(folder.path("d.csv"), "1,2\n3,x\n");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected a number for 1, found \"x\"");
  writeFile(folder.path("d.csv"), "1,2\n3\n");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected 2 values, found 1");
  writeFile(folder.path("d.csv"), "");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv: expected lines of at least 2 values, found none");
  writeFile(folder.path("d.csv"), "a,b\n1,\n");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected a number for b, found an empty cell");
  EXPECT_EQ(open("csv", "none.csv"), "7: cannot open none.csv or none.csv.gz: No such file or directory");
}

// A spreadsheet's file: quotes around everything, commas and line ends in them, an id, names for labels.
TEST_F(Tables, CsvOfASpreadsheet) {
  writeFile(folder.path("d.csv"), "\xEF\xBB\xBF\"id\",\"width, cm\",\"the \"\"height\"\"\",\"kind\"\r\n"
                                  "\"a-1\",\"1.5\",\"2\",\"versicolor\"\r\n"
                                  "\"b\n2\",\"3\",\"-4\",\"setosa\"\r\n");
  ASSERT_EQ(open("csv", "d.csv,skip=id"), "0");
  EXPECT_EQ(table.fields[0].shape, std::vector<uint64_t>{2});
  EXPECT_EQ(at<double>(0, 0, 0), 1.5);
  EXPECT_EQ(at<double>(0, 1, 1), -4);
  EXPECT_EQ(table.classes, (std::vector<std::string>{"setosa", "versicolor"}));
  EXPECT_EQ(at<int64_t>(1, 0), 1);
  EXPECT_EQ(at<int64_t>(1, 1), 0);
  ASSERT_EQ(open("csv", "d.csv,x=\"the \"\"height\"\"\",y=\"width, cm\""), "0");
  EXPECT_EQ(table.fields[0].shape, std::vector<uint64_t>{1});
  EXPECT_EQ(at<double>(0, 1, 0), -4);
  EXPECT_EQ(at<double>(1, 0), 1.5);
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected a number for id, found \"a-1\"; skip=id leaves the "
                                  "column out, a columns file (mtrun data --save-columns) encodes it");
  writeFile(folder.path("d.csv"), "a,b\n\"1,2\n");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected a closing quote, found the end of the file");
  writeFile(folder.path("d.csv"), "a,b\n\"1\"2,3\n");
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected the end of a cell after its closing quote, found \"2\"");
}

TEST_F(Tables, CsvLineEndsAndEncodings) {
  writeFile(folder.path("d.csv"), "a;b\r1;\"x\ry\"\r\r2;z\r"); // of spreadsheets on the first Macs
  ASSERT_EQ(open("csv", "d.csv"), "0");
  EXPECT_EQ(at<double>(0, 1, 0), 2);
  EXPECT_EQ(table.classes, (std::vector<std::string>{"x\ry", "z"}));
  writeFile(folder.path("d.csv"), "a,b\n0,1\r2,3\n"); // of both kinds
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected 2 values, found 3");
  writeFile(folder.path("d.csv"), "a,b\n0\r2,3\n");
  EXPECT_EQ(open("csv", "d.csv,header=yes"),
            "1: d.csv, line 2: expected a number for a, found \"0\\r2\"; skip=a leaves the column out, a columns file "
            "(mtrun data --save-columns) encodes it");
  writeFile(folder.path("d.csv"), std::string("a\0,\0b\0\n\0", 8));
  std::string utf8 = "expected a text in UTF-8, found UTF-16; spreadsheets write \"CSV UTF-8\" too";
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv: " + utf8);
  writeFile(folder.path("d.csv"), std::string("\0a\0,\0b\0\n", 8));
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv: " + utf8);
  writeFile(folder.path("d.csv"), std::string("a,b\n1,\0\n", 8));
  EXPECT_EQ(open("csv", "d.csv"), "1: d.csv, line 2: expected a text, found a byte of 0");
}

TEST_F(Tables, CsvColumns) {
  writeFile(folder.path("d.csv"), "a,b,c,d\n1,2,3,4\n5,6,7,8\n");
  ASSERT_EQ(open("csv", "d.csv,x=c+a,y=b+d"), "0"); // in the order of x=
  EXPECT_EQ(at<double>(0, 1, 0), 7);
  EXPECT_EQ(at<double>(0, 1, 1), 5);
  EXPECT_EQ(table.fields[1].shape, std::vector<uint64_t>{2});
  EXPECT_EQ(at<int64_t>(1, 1, 1), 8);
  EXPECT_EQ(open("csv", "d.csv,x=a+b,y=b"), "1: d.csv: expected an input or a target, found b as both");
  EXPECT_EQ(open("csv", "d.csv,header=maybe"), "1: data: expected header=yes or header=no, found \"header=maybe\"");
  // What a data frame writes: an index without a name.
  writeFile(folder.path("d.csv"), ",a,b\n0,1.5,0\n1,2.5,1\n");
  ASSERT_EQ(open("csv", "d.csv"), "0");
  EXPECT_EQ(table.fields[0].shape, std::vector<uint64_t>{1});
  EXPECT_EQ(table.notes.size(), 1u);
  // Names as labels and no header; German numbers.
  writeFile(folder.path("d.csv"), "0,5;cat\n1;dog\n");
  ASSERT_EQ(open("csv", "d.csv"), "0");
  EXPECT_EQ(table.fields[0].samples, 2u);
  EXPECT_EQ(at<double>(0, 0), 0.5);
  EXPECT_EQ(at<int64_t>(1, 1), 1);
  // Any length and any flipped byte: a table or a message.
  std::string whole = "\"a\",b\n\"1\",\"x\"\"y\"\n2,z\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    writeFile(folder.path("cut.csv"), whole.substr(0, size));
    (void)open("csv", "cut.csv");
    std::string damaged = whole;
    damaged[size] = static_cast<char>(~damaged[size]);
    writeFile(folder.path("cut.csv"), damaged);
    (void)open("csv", "cut.csv");
  }
}

TEST_F(Tables, PathsWithCommas) {
  writeFile(folder.path("a,b.csv"), "1,2\n3,4\n");
  DataSpec spec;
  ASSERT_EQ(text(parseDataSpec("csv:\"" + folder.path("a,b.csv") + "\",range=0:1", spec)), "0");
  EXPECT_EQ(spec.paths[0], folder.path("a,b.csv"));
  EXPECT_EQ(spec.end, 1);
  EXPECT_EQ(text(openTable(spec, table)), "0");
  EXPECT_EQ(text(parseDataSpec("csv:a,b.csv", spec)),
            "1: data: expected key=value, found \"b.csv\" in \"csv:a,b.csv\"; a path that has a comma is written in "
            "double quotes");
  EXPECT_EQ(text(parseDataSpec("csv:\"a", spec)), "1: data: expected a closing quote, found \"\"a\"");
}

TEST_F(Tables, Text) {
  writeFile(folder.path("t.txt"), "h\xC3\xA9llo");
  ASSERT_EQ(open("text", "t.txt,length=5"), "0");
  EXPECT_EQ(at<uint8_t>(0, 0, 1), 0xC3); // bytes
  DataSpec spec;
  ASSERT_EQ(text(parseDataSpec("text:" + folder.path("t.txt"), spec)), "0");
  spec.length = 4;
  spec.vocabulary = {"h", "l", "o", "\xC3\xA9"};
  ASSERT_EQ(text(openTable(spec, table)), "0");
  EXPECT_EQ(table.fields[0].samples, 1u);
  EXPECT_EQ(at<uint8_t>(0, 0, 1), 3);
  EXPECT_EQ(at<uint8_t>(1, 0, 3), 2); // the next one of each
  spec.vocabulary.pop_back();
  EXPECT_EQ(text(openTable(spec, table)), "1: " + folder.path("t.txt") +
                                              ", line 1: expected one of the 3 characters of the plan's vocabulary, "
                                              "found \"\xC3\xA9\"");
  writeFile(folder.path("t.txt"), "hh\n\xFFh");
  spec.vocabulary.push_back("\n");
  EXPECT_EQ(text(openTable(spec, table)), "1: " + folder.path("t.txt") +
                                              ", line 2: expected one of the 4 characters of the plan's vocabulary, "
                                              "found byte 255");
  // A text in place of tokens.
  writeFile(folder.path("t.txt"), "To be, or not to be");
  EXPECT_EQ(open("tokens", "t.txt,length=2"),
            "3: t.txt: expected tokens of 2 bytes, found 19 bytes; t.txt: looks like a text, and is read as tokens of "
            "16 bits; text:t.txt reads its characters");
  writeFile(folder.path("t.txt"), "To be, or not to be.");
  ASSERT_EQ(open("tokens", "t.txt,length=2"), "0");
  ASSERT_EQ(table.notes.size(), 1u);
}

namespace {

std::string shortText(const std::string &text) { return "U" + std::string(1, static_cast<char>(text.size())) + text; }

// As Python 2 wrote CIFAR-10: protocol 2, texts of bytes, indices of the memo from 1.
std::string batch(const std::string &labels, const std::string &pictures) {
  std::string file =
      "\x80\x02}q\x01(" + shortText("batch_label") + "q\x02" + shortText("training batch 1 of 5") + "q\x03";
  file += shortText("labels") + "q\x04]q\x05(";
  for (char label : labels)
    file += std::string("K") + label;
  file += "e" + shortText("data") + "q\x06" + "cnumpy.core.multiarray\n_reconstruct\nq\x07(cnumpy\nndarray\nq\x08K";
  file += std::string("\0\x85U\1bt", 6) + "Rq\x09(K\x01K" + static_cast<char>(labels.size()) + "M";
  file += std::string("\0\x0c\x86", 3) + "cnumpy\ndtype\nq\x0a(U\x02u1K" + std::string("\0K\1", 3) +
          "tRq\x0b(K\x03U\x01|NNNJ";
  file += "\xff\xff\xff\xffJ\xff\xff\xff\xffK" + std::string("\0", 1) + "tb\x89T" + little(pictures.size(), 4);
  return file + pictures + "tbu.";
}

std::string picture(char red, char green, char blue) {
  return std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

} // namespace

TEST_F(Tables, CifarPickles) {
  std::filesystem::create_directory(folder.path("cifar-10-batches-py"));
  std::string whole = batch(std::string("\3\7", 2), picture('r', 'g', 'b') + picture('x', 'y', 'z'));
  writeFile(folder.path("cifar-10-batches-py/test_batch"), whole);
  ASSERT_EQ(open("cifar10", "cifar-10-batches-py,split=test"), "0");
  EXPECT_EQ(table.fields[0].samples, 2u);
  EXPECT_EQ(at<uint8_t>(0, 1, 1), 'y'); // channels last
  EXPECT_EQ(at<uint8_t>(1, 1), 7);
  // The folder that the archive was unpacked in does too.
  writeFile(folder.path("cifar-10-batches-py/batches.meta"), "\x80\x02}q\x01" + shortText("label_names") + "](" +
                                                                 shortText("airplane") + shortText("automobile") +
                                                                 "es.");
  ASSERT_EQ(open("cifar10", ",split=test"), "0");
  EXPECT_EQ(table.classes, (std::vector<std::string>{"airplane", "automobile"}));
  // Any length and any flipped byte of the frame: a table or a message.
  for (size_t size = 0; size < whole.size(); size += size < 250 || size + 50 > whole.size() ? 1 : 200) {
    writeFile(folder.path("cifar-10-batches-py/test_batch"), whole.substr(0, size));
    EXPECT_NE(open("cifar10", "cifar-10-batches-py,split=test"), "0") << size;
    std::string damaged = whole;
    damaged[size] = static_cast<char>(~damaged[size]);
    writeFile(folder.path("cifar-10-batches-py/test_batch"), damaged);
    (void)open("cifar10", "cifar-10-batches-py,split=test");
  }
}

TEST(Pickle, HostileFiles) {
  auto problem = [](const std::string &file) {
    Pickle pickle;
    return text(readPickle({reinterpret_cast<const uint8_t *>(file.data()), file.size()}, "f", pickle));
  };
  EXPECT_EQ(problem("cos\nsystem\n(U\x02lstR."),
            "1: f: expected plain data and arrays of bytes, found a call of os system");
  EXPECT_EQ(problem("\x80\x09."), "3: f: damaged pickle: expected a protocol of at most 5 at byte 2");
  EXPECT_EQ(problem("(T\xff\xff\xff\xff"),
            "3: f: damaged pickle: expected a text of 4294967295 bytes, found the end at "
            "byte 6");
  EXPECT_EQ(problem("]q\1h\1a."), "0");                              // a list that holds itself
  EXPECT_EQ(problem("N" + std::string(1 << 20, '\x85') + "."), "0"); // very deep
  EXPECT_EQ(problem("h\5."), "3: f: damaged pickle: expected a value that was remembered, found index 5 at byte 2");
  // A text in the memo, which each of many arrays has, is there once.
  const std::string large(1 << 20, 'x');
  std::string arrays = "]T" + little(large.size(), 4) + large + "q\0acnumpy.core.multiarray\n_reconstruct\nq\1a"s +
                       "cnumpy\ndtype\nU\2u1\x85Rq\2a(K\1J"s + little(large.size(), 4) + "\x85h\2K\0h\0tq\3a"s;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i)
    arrays += "h\1)Rh\3ba";
  EXPECT_EQ(problem(arrays + "."), "0");
  // One that is encoded, or is a name, again and again has no end.
  std::string encoded = "c_codecs\nencode\nq\0T"s + little(large.size(), 4) + large + "q\1"s;
  for (int i = 0; i < 3; ++i)
    encoded += "h\0h\1N\x86R"s;
  EXPECT_NE(problem(encoded + ".").find("expected texts that are encoded once"), std::string::npos);
  EXPECT_NE(problem("T" + little(large.size(), 4) + large + "q\0h\0\x93."s).find("expected a name"), std::string::npos);
  EXPECT_EQ(problem(""), "3: f: damaged pickle: expected more, found its end at byte 0");
}
