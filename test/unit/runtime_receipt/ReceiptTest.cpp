// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/Merkle.h"
#include "runtime/receipt/RunOptions.h"

#include <gtest/gtest.h>

using namespace mtrun;
using Json = nlohmann::json;

namespace {

Json headLine() {
  return {{"chunk", 1048576}, {"class", "cpu"},          {"data", Json::object()},
          {"every", 5},       {"format", "mtc-receipt"}, {"plan", Json::object()},
          {"prev", ""},       {"run", {{"seed", 7}}},    {"variables", Json::array({Json::array({"w", 8})})},
          {"version", 1}};
}

const std::string zeros(64, '0');

Json recordLine(int64_t step) {
  Json line = {{"chunks", "00000000"}, {"step", step}, {"variables", zeros}};
  if (step > 0)
    line.update({{"epoch", 0}, {"position", step}, {"rows", zeros}, {"metrics", Json::object()}});
  return line;
}

std::string chained(std::vector<Json> lines) {
  std::string text, previous;
  for (Json &line : lines) {
    line["prev"] = previous;
    std::string one = canonical(line);
    previous = hashOfLine(one);
    text += one + "\n";
  }
  return text;
}

std::string parse(const std::string &text, bool cut = false) {
  Receipt receipt;
  Status status = parseReceipt(text, "r", cut, receipt);
  return status.ok() ? std::to_string(receipt.lines.size()) : status.message();
}

} // namespace

// The test vectors of Certificate Transparency's trees, as its implementations have them.
TEST(MerkleTest, RootsOfRfc6962) {
  const std::string inputs[] = {"",
                                std::string(1, '\0'),
                                "\x10",
                                "\x20\x21",
                                "\x30\x31",
                                "\x40\x41\x42\x43",
                                "\x50\x51\x52\x53\x54\x55\x56\x57",
                                "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"};
  const char *roots[] = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                         "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                         "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
                         "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
                         "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                         "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
                         "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
                         "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
                         "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
  std::vector<Digest> entries;
  EXPECT_EQ(hexadecimal(rootOf(entries)), roots[0]);
  for (size_t i = 0; i < std::size(inputs); ++i) {
    entries.push_back(entryDigest(inputs[i]));
    EXPECT_EQ(hexadecimal(rootOf(entries)), roots[i + 1]) << i + 1 << " entries";
  }
}

TEST(Sha256Test, PartsAndText) {
  Sha256 hash;
  hash.add("a", 1);
  hash.add("bc", 2);
  Digest digest = hash.finish(), parsed;
  EXPECT_EQ(digest, sha256("abc"));
  EXPECT_TRUE(parseHexadecimal(hexadecimal(digest), parsed));
  EXPECT_EQ(parsed, digest);
  for (const char *bad : {"", "00", "ZZ"})
    EXPECT_FALSE(parseHexadecimal(bad, parsed)) << bad;
  EXPECT_FALSE(parseHexadecimal(std::string(63, '0') + "G", parsed));
}

TEST(ReceiptTest, ReadsWhatIsWritten) {
  std::string text = chained({headLine(), recordLine(0), recordLine(5), recordLine(10)});
  EXPECT_EQ(parse(text), "3");
  Receipt receipt;
  ASSERT_TRUE(parseReceipt(text, "r", false, receipt).ok());
  EXPECT_EQ(receipt.find(5), 1);
  EXPECT_EQ(receipt.find(6), -1);
  EXPECT_EQ(receipt.find(15), -1);
  EXPECT_FALSE(receipt.ended());
}

TEST(ReceiptTest, EveryCutIsFound) {
  std::string text = chained({headLine(), recordLine(0), recordLine(5), recordLine(10)});
  for (size_t size = 0; size < text.size(); ++size) {
    std::string part = text.substr(0, size);
    bool whole = part.ends_with('\n') && std::count(part.begin(), part.end(), '\n') >= 2;
    EXPECT_EQ(parse(part).starts_with("r"), !whole) << size;
    // A run that was killed may go on where the file has two lines.
    bool goesOn = std::count(part.begin(), part.end(), '\n') >= 2;
    EXPECT_EQ(parse(part, true).starts_with("r"), !goesOn) << size;
  }
}

TEST(ReceiptTest, EveryFlippedBitIsFound) {
  std::string text = chained({headLine(), recordLine(0), recordLine(5), recordLine(10)});
  size_t last = text.rfind('\n', text.size() - 2); // nothing has the hash of the last line
  for (size_t bit = 0; bit < 8 * last; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(parse(flipped).starts_with("r")) << bit;
  }
}

TEST(ReceiptTest, OtherLinesAreRefused) {
  auto with = [](const Json &changed) {
    Json record = recordLine(5);
    record.update(changed);
    return parse(chained({headLine(), recordLine(0), record}));
  };
  EXPECT_EQ(with({{"step", 10}}), "r, line 3: expected the record of step 5, found one of step 10");
  EXPECT_EQ(with({{"step", -5}}), "r, line 3: expected a number of at least 0 for \"step\", found -5");
  EXPECT_EQ(with({{"step", 5.5}}), "r, line 3: expected a number of at least 0 for \"step\", found 5.5");
  EXPECT_EQ(with({{"extra", 1}}), "r, line 3: expected a line of version 1, found a member \"extra\"");
  EXPECT_EQ(with({{"rows", 1}}), "r, line 3: expected 64 hexadecimal digits for \"rows\", found 1");
  Json newer = headLine();
  newer["version"] = 2;
  EXPECT_EQ(parse(chained({newer})), "r, line 1: expected a receipt of version 1, found version 2");
  EXPECT_EQ(parse(std::string(1 << 20, '[') + "\n"), "r, line 1: expected at most 8 levels of brackets, found more");
}

TEST(RunOptionsTest, ReadsWhatIsWritten) {
  mtrun_loop_options options = mtrun_loop_options_init(), again = options;
  const double baseline = 0.1;
  options.shuffle_window = 12;
  options.no_shuffle = 1;
  options.plateau_factor = 0.3;
  options.early_baseline = &baseline;
  options.monitor = "val_loss:min";
  options.epochs = 3; // the end of a receipt has it
  Json run = runOptions(options);
  EXPECT_EQ(run.dump(), R"({"early_baseline":"0x1.999999999999ap-4","monitor":"val_loss:min","no_shuffle":1,)"
                        R"("plateau_factor":"0x1.3333333333333p-2","shuffle_window":12})");
  OptionTexts texts;
  ASSERT_TRUE(setRunOptions(run, again, texts).ok());
  EXPECT_EQ(runOptions(again), run);
  EXPECT_EQ(setRunOptions({{"speed", 1}}, again, texts).message(), "expected options of this version, found \"speed\"");
  for (const Json &bad : {Json{{"monitor", 3}}, Json{{"plateau_factor", 0.3}}, Json{{"plateau_factor", "x"}},
                          Json{{"no_shuffle", "yes"}}, Json{{"shuffle_window", 1.5}}})
    EXPECT_FALSE(setRunOptions(bad, again, texts).ok()) << bad;
}

TEST(ReceiptTest, DifferencesHaveNames) {
  Json variables = Json::array({Json::array({"a", 8}), Json::array({"b", (2 << 20) + 1}), Json::array({"c", 0})});
  Json one = {{"rows", "x"}, {"variables", "r"}, {"chunks", "00000000111111112222222233333333"}}, two = one;
  two["variables"] = "s";
  two["chunks"] = "00000000111111112222222233333334";
  EXPECT_EQ(recordDifference(variables, one, two),
            "variable b, chunk 2 (bytes 2097152 to 2097152); root of all variables: expected \"r\", found \"s\"");
  two["rows"] = "y";
  EXPECT_TRUE(recordDifference(variables, one, two).starts_with("the data of the steps since the record before; "));
}
