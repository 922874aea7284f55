// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/html.h"
#include "tools/mtrun/Chart.h"
#include "tools/mtrun/ReportPage.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace mtrun_tool;

namespace {

// The points of the first curve of a drawing.
std::vector<std::pair<double, double>> pointsOf(const std::string &html) {
  std::vector<std::pair<double, double>> points;
  size_t at = html.find("points=\"") + 8, end = html.find('"', at);
  for (double x, y; at < end; at = html.find(' ', at) + 1) {
    if (sscanf(html.c_str() + at, "%lf,%lf", &x, &y) != 2)
      break;
    points.push_back({x, y});
  }
  return points;
}

std::string draw(const std::vector<double> &values, bool fromZero = false, int better = 0) {
  return drawChart({"title", "", {{"curve", values, better}}, fromZero}, 1, {});
}

TEST(Report, DrawsEveryPointWhereThereAreFew) {
  auto points = pointsOf(draw({3, 1, 2}));
  ASSERT_EQ(points.size(), 3u);
  EXPECT_LT(points[0].first, points[1].first);
  EXPECT_GT(points[1].second, points[2].second); // SVG counts downwards: 1 is below 2
  EXPECT_LT(points[0].second, points[2].second);
}

TEST(Report, LeavesOutWhatIsNotFinite) {
  std::string html = draw({1, NAN, INFINITY, 3});
  EXPECT_EQ(pointsOf(html).size(), 2u);
  EXPECT_NE(html.find("none in 2 epochs"), std::string::npos) << html;
  for (const std::vector<double> &odd : {std::vector<double>{NAN}, {}, {7}, {0}, {-2}, {0, 0}, {1e308, -1e308}}) {
    std::string drawn = draw(odd);
    EXPECT_EQ(drawn.find("nan"), std::string::npos) << drawn;
    EXPECT_EQ(drawn.find("inf"), std::string::npos) << drawn;
  }
}

TEST(Report, KeepsTheExtremesOfLongCurves) {
  std::vector<double> values(100000, 1);
  values[77777] = 5;
  values[88888] = -3;
  auto points = pointsOf(draw(values));
  EXPECT_LE(points.size(), 400u);
  auto [top, bottom] = std::minmax_element(points.begin(), points.end(),
                                           [](const auto &a, const auto &b) { return a.second < b.second; });
  EXPECT_LT(top->second, points[0].second - 50);
  EXPECT_GT(bottom->second, points[0].second + 50);
}

TEST(Report, SaysWhereAnAxisIsLogarithmic) {
  EXPECT_NE(draw({100, 0.5}).find("(logarithmic)"), std::string::npos);
  EXPECT_EQ(draw({40, 0.5}).find("(logarithmic)"), std::string::npos);
  EXPECT_EQ(draw({100, 0.5, 0}).find("(logarithmic)"), std::string::npos);
  EXPECT_EQ(draw({100, 0.5}, /*fromZero=*/true).find("(logarithmic)"), std::string::npos);
}

TEST(Report, NamesTheBestValue) {
  EXPECT_NE(draw({1, 3, 2}, false, 1).find("<b>2</b>, best 3 in epoch 2"), std::string::npos);
  EXPECT_NE(draw({3, 1, 2}, false, -1).find("<b>2</b>, best 1 in epoch 2"), std::string::npos);
  EXPECT_EQ(draw({3, 2, 1}, false, -1).find("best"), std::string::npos); // the last one is
}

TEST(Report, PrintsNumbersForPeople) {
  EXPECT_EQ(shownNumber(0.123456), "0.1235");
  EXPECT_EQ(shownNumber(12345.6), "12,346");
  EXPECT_EQ(shownNumber(-1234567), "-1,234,567");
  EXPECT_EQ(shownNumber(-123), "-123");
  EXPECT_EQ(shownNumber(1e-5), "1e-05");
}

TEST(Report, ReadsCsvAsItIsWritten) {
  auto records = parseCsv("epoch,\"a,\"\"b\"\"\nc\",d\n1,2,3\n2,torn");
  ASSERT_EQ(records.size(), 2u); // the last line has no end
  EXPECT_EQ(records[0], (std::vector<std::string>{"epoch", "a,\"b\"\nc", "d"}));
  EXPECT_EQ(records[1], (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Report, ReadsTheTimesOfEpochsThatAreDone) {
  std::string path = testing::TempDir() + "timing.csv";
  EpochTime first = {1, "2026-01-02T03:04:05Z", 10, 640, 2.5, 2, 0.5, "cuda:0,2"}, second = first;
  second.epoch = 2;
  EXPECT_EQ(writeTiming(path, {first}), "");
  EXPECT_EQ(appendTiming(path, second), "");
  std::ofstream(path, std::ios::app) << "3,2026"; // a writer that was killed
  EXPECT_EQ(readTiming(path, 1).size(), 1u);
  std::vector<EpochTime> read = readTiming(path, 9);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].epoch, 2);
  EXPECT_EQ(read[1].samples, 640);
  EXPECT_EQ(read[1].waited, 0.5);
  EXPECT_EQ(read[1].devices, "cuda:0,2");
  EXPECT_TRUE(readTiming(path + ".none", 9).empty());
  EXPECT_NE(writeTiming("/proc/none/timing.csv", {first}), "");
}

TEST(Report, ShowsTheLastEpochsOfALongRun) {
  ReportFacts facts;
  facts.model = "m";
  facts.metrics = {{"loss"}, {std::vector<double>(5000, 1)}, 1};
  facts.better = {-1};
  std::string page = reportPage(facts);
  EXPECT_NE(page.find("All numbers of the last 200 epochs"), std::string::npos);
  EXPECT_LT(page.size(), 200'000u);
  EXPECT_EQ(page.find("<td class=\"n\">4800</td>"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"n\">4801</td>"), std::string::npos);
}

TEST(Report, EscapesAnyBytes) {
  EXPECT_EQ(mtrun::htmlText("<a href='x'>\"&\xff\x01é"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\xef\xbf\xbd\xef\xbf\xbdé");
  std::string html = drawChart({"<b>", "&", {{"<i>", {1}, 0}}, false}, 1, {});
  EXPECT_EQ(html.find("<i>"), std::string::npos);
  EXPECT_NE(html.find("&lt;i&gt;, epoch 1"), std::string::npos);
}

} // namespace
