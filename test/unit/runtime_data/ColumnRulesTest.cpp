// SPDX-License-Identifier: Apache-2.0
//
// Columns files: rules from training rows, and the numbers that cells become.
#include "Tables.h"

#include "runtime/data/CsvColumns.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/support/column_rules.h"

using namespace mtrun;

namespace {

constexpr const char *houses = "id,area,city,sold,price\n"
                               "1,80,Oslo,2024-01-15,30\n"
                               "2,120,Bergen,2023-06-30 12:00:00,45\n"
                               "3,NA,Oslo,1969-12-31T06:00Z,21\n"
                               "4,100,Molde,2024-03-01,33\n";

class ColumnRulesTest : public fixtures::Tables {
protected:
  // Makes rules of the file d.csv; "0", or the error.
  std::string fit(const std::string &text, const std::string &keys) {
    fixtures::writeFile(folder.path("d.csv"), text);
    DataSpec spec;
    std::vector<std::string> notes;
    rules = {};
    std::string result = fixtures::text(parseDataSpec("csv:" + folder.path("d.csv") + keys, spec));
    if (result == "0")
      result = fixtures::text(fitCsv(spec, rules, notes));
    for (size_t found; (found = result.find(folder.path() + "/")) != std::string::npos;)
      result.erase(found, folder.path().size() + 1);
    return result;
  }
  // Reads a file by the rules, as a plan that has them does.
  std::string encode(const std::string &text, const std::string &keys = "", int inputs = 1) {
    fixtures::writeFile(folder.path("e.csv"), text);
    DataSpec spec;
    table = {};
    std::string result = fixtures::text(parseDataSpec("csv:" + folder.path("e.csv") + keys, spec));
    spec.rules = std::make_shared<ColumnRules>(rules);
    for (int i = 0; i < inputs; ++i)
      spec.wanted.push_back({"x" + std::to_string(i), MTRUN_INPUT});
    if (result == "0")
      result = fixtures::text(openTable(spec, table));
    for (size_t found; (found = result.find(folder.path() + "/")) != std::string::npos;)
      result.erase(found, folder.path().size() + 1);
    return result;
  }
  std::vector<float> row(uint64_t sample, size_t field = 0) const {
    std::vector<float> values(table.fields[field].shape[0]);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = at<float>(field, sample, i);
    return values;
  }
  ColumnRules rules;
};

} // namespace

TEST_F(ColumnRulesTest, EncodesAsTheTrainingRows) {
  ASSERT_EQ(fit(houses, ",skip=id,dates=sold,standardize=area,missing=mean"), "0");
  ASSERT_EQ(rules.inputs.size(), 3u);
  EXPECT_EQ(rules.inputs[0].mean, 100);
  EXPECT_EQ(rules.inputs[1].values, (std::vector<std::string>{"Oslo", "Molde", "Bergen"})); // the order of Keras
  EXPECT_EQ(rules.targets, std::vector<std::string>{"price"});
  // Columns in another order, others beside them, no target, a category that no training row has.
  ASSERT_EQ(encode("city,more,sold,area\nOslo,x,1970-01-02,100\nRoma,y,1970-01-01 18:00,\n"), "0");
  ASSERT_EQ(table.fields.size(), 1u);
  EXPECT_EQ(row(0), (std::vector<float>{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(row(1), (std::vector<float>{0, 1, 0, 0, 0, 0.75f}));
  // Rules survive their text.
  ColumnRules again;
  ASSERT_TRUE(parseColumnRules(columnRulesText(rules), again).ok());
  EXPECT_EQ(columnRulesText(again), columnRulesText(rules));
  EXPECT_EQ(again.width(), 6u);
}

TEST_F(ColumnRulesTest, BucketsHashesAndIndices) {
  ASSERT_EQ(fit(houses, ",skip=id+sold,buckets=area:90:110,hash=city:8,missing=0"), "0");
  ASSERT_EQ(encode(houses), "0");
  ASSERT_EQ(table.fields.size(), 2u);
  EXPECT_EQ(table.fields[0].shape[0], 11u);
  std::vector<float> first(11, 0);
  first[0] = first[3 + fingerprint("Oslo") % 8] = 1;
  EXPECT_EQ(row(0), first);
  EXPECT_EQ(row(3)[1], 1); // 100 is in the bucket from 90 on
  EXPECT_EQ(row(2)[0], 1); // a missing cell is 0
  ASSERT_EQ(fit(houses, ",x=city+id,quantiles=id:2,index=city"), "0");
  EXPECT_EQ(rules.inputs[1].bounds, std::vector<double>{3});
  ASSERT_EQ(encode(houses, "", 2), "0"); // an input for each column
  ASSERT_EQ(table.fields.size(), 3u);
  EXPECT_EQ(table.fields[0].name, "city");
  EXPECT_EQ(row(1), std::vector<float>{3});
  EXPECT_EQ(row(2, 1), (std::vector<float>{0, 1}));
  ASSERT_EQ(fit("n,y\n9,0\n10,1\n", ",categories=n"), "0");
  EXPECT_EQ(rules.inputs[0].values, (std::vector<std::string>{"10", "9"})); // as numbers
}

TEST_F(ColumnRulesTest, FingerprintsAreThoseOfTensorFlow) { // tf.strings.to_hash_bucket_fast, 1000003 buckets
  for (auto [text, bucket] : {std::pair(std::string(), 377723u),
                              {"a", 291400u},
                              {"Oslo", 357047u},
                              {std::string(20, 'x'), 268677u},
                              {std::string(50, 'y'), 847376u},
                              {std::string(200, 'z'), 958584u}})
    EXPECT_EQ(fingerprint(text) % 1000003, bucket) << text;
}

TEST_F(ColumnRulesTest, SaysWhatIsWrong) {
  EXPECT_EQ(
      fit(houses, ",skip=id,dates=sold"),
      "1: d.csv, line 4: expected a number for area, found \"NA\"; missing=mean puts the mean of the training rows "
      "there");
  EXPECT_EQ(fit(houses, ",skip=id,dates=city,missing=mean"),
            "1: d.csv, line 2: expected a date as 2024-05-31 for city, found \"Oslo\"");
  EXPECT_EQ(fit(houses, ",skip=id,dates=sold,range=0:2,standardize=city"),
            "1: d.csv: expected standardize= columns of numbers or dates, found city");
  EXPECT_EQ(fit("a,y\n1,0\nx,1\n", ""),
            "1: d.csv, line 3: expected a number for a, found \"x\"; categories=a takes any "
            "cells, skip=a leaves the column out");
  EXPECT_EQ(fit("a,y\nx,0\n,1\n", ""), "1: d.csv, line 3: expected a text for a, found an empty cell; missing=mean "
                                       "makes the empty cell a category");
  EXPECT_EQ(fit(houses, ",skip=id,hash=city"), "1: d.csv: expected hash= as NAME:NUMBER, found city");
  EXPECT_EQ(fit(houses, ",skip=id,hash=price:3"), "1: d.csv: expected hash= columns of the input, found price");
  EXPECT_EQ(fit(houses, ",skip=id,buckets=area:2:1"), "1: d.csv: expected buckets=NAME:A:B with ascending bounds");
  EXPECT_EQ(fit(houses, ",skip=id,quantiles=area:1"), "1: d.csv: expected quantiles=NAME:N with N of 2 to 100000");
  EXPECT_EQ(fit(houses, ",skip=id,categories=city,hash=city:4"),
            "1: d.csv: expected one kind for city, found hash= and category");
  EXPECT_EQ(fit(houses, ",skip=id,missing=none"), "1: d.csv: expected missing=mean or missing=NUMBER, found none");
  ASSERT_EQ(fit(houses, ",skip=id,dates=sold,range=0:2"), "0");
  EXPECT_EQ(encode("area,city\n1,Oslo\n"),
            "1: e.csv: expected the columns of the plan's columns file, found none named "
            "\"sold\" in area, city");
  EXPECT_EQ(encode(houses), "1: e.csv, line 4: expected a number for area, found \"NA\"; missing=mean puts the mean of "
                            "the training rows there");
  EXPECT_EQ(encode("area,city,sold\n1,,2024-01-01\n"),
            "1: e.csv, line 2: expected a text for city, found an empty cell");
  EXPECT_EQ(encode("area,city,sold\n1,Oslo,2024-13-01\n"),
            "1: e.csv, line 2: expected a date as 2024-05-31 for sold, found \"2024-13-01\"");
  EXPECT_TRUE(encode(houses, ",y=price").starts_with("1: e.csv: expected no x=, y=, skip=, scale= and no key"));
}

TEST_F(ColumnRulesTest, RefusesWrongFiles) {
  auto of = [](const std::string &inputs) {
    ColumnRules rules;
    return fixtures::text(parseColumnRules("{\"format\": \"mtc columns 1\", \"inputs\": [" + inputs + "]}", rules));
  };
  ColumnRules none;
  std::string format =
      "1: expected a columns file of the format \"mtc columns 1\", which mtrun data --save-columns writes";
  for (const char *text :
       {"", "[]", "{\"format\": \"mtc columns 2\"}", "{\"format\": \"mtc columns 1\",", "[[[[[[[[]]]]]]]]"})
    EXPECT_EQ(fixtures::text(parseColumnRules(text, none)), format);
  EXPECT_EQ(of(""), "1: expected \"inputs\" and \"targets\", lists of columns");
  EXPECT_EQ(of("{\"name\": \"a\"}"), "1: expected each column to have the texts \"name\" and \"kind\"");
  EXPECT_EQ(of("{\"name\": \"a\", \"kind\": \"b\"}"),
            "1: column \"a\": expected a kind of number, date, category, hash or buckets, found \"b\"");
  std::string number = "{\"name\": \"a\", \"kind\": \"number\"";
  EXPECT_EQ(of(number + ", \"deviation\": 0}"), "1: column \"a\": expected a \"deviation\" above 0");
  EXPECT_EQ(of(number + ", \"mean\": \"x\"}"), "1: column \"a\": expected \"mean\" to be a finite number");
  EXPECT_EQ(of(number + "}, " + number + "}"), "1: expected names of columns in UTF-8 that differ, found \"a\"");
  EXPECT_EQ(of("{\"name\": \"a\", \"kind\": \"hash\", \"bins\": 0}"),
            "1: column \"a\": expected \"bins\" of 1 to 16777216");
  EXPECT_EQ(of("{\"name\": \"a\", \"kind\": \"buckets\", \"bounds\": [2, 1]}"),
            "1: column \"a\": expected \"bounds\" to be ascending finite numbers");
  EXPECT_EQ(of("{\"name\": \"a\", \"kind\": \"category\", \"values\": [\"x\", \"x\"]}"),
            "1: column \"a\": expected categories that differ, found a second \"x\"");
  EXPECT_EQ(of("{\"name\": \"a\", \"kind\": \"hash\", \"bins\": 16777216}, {\"name\": \"b\", \"kind\": \"number\"}"),
            "1: expected at most 16777216 numbers of a sample, found more");
}
