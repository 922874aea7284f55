// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Compare.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace mtrun;

namespace {

template <typename T> SafeTensor tensor(const char *name, mt_dtype dtype, std::vector<int64_t> shape, const T &values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

std::vector<std::string> compare(const std::vector<SafeTensor> &a, const std::vector<SafeTensor> &b) {
  std::vector<std::string> lines;
  compareTensors(a, b, lines);
  return lines;
}

using Lines = std::vector<std::string>;

} // namespace

TEST(CompareTest, FirstValueCountAndLargestDistance) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = a;
  EXPECT_EQ(compare({tensor("w", MT_F32, {2, 3}, a)}, {tensor("w", MT_F32, {2, 3}, b)}), Lines());
  b[4] = std::nextafter(b[4], 10.0f);
  b[5] = std::nextafter(std::nextafter(b[5], 0.0f), 0.0f);
  EXPECT_EQ(
      compare({tensor("w", MT_F32, {2, 3}, a)}, {tensor("w", MT_F32, {2, 3}, b)}),
      (Lines{"w [1, 1]: 5 and 5.00000048, a distance of 1 ulp; 2 of 6 values differ, the most by 2 ulps at [1, 2]",
             "1 of 1 tensors differ"}));
}

TEST(CompareTest, DistancesCrossZeroAndReachTheEnds) {
  constexpr float tiny = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::infinity();
  auto line = [](float x, float y) {
    std::vector<float> a = {x}, b = {y};
    return compare({tensor("w", MT_F32, {}, a)}, {tensor("w", MT_F32, {}, b)})[0];
  };
  EXPECT_TRUE(line(-tiny, tiny).find("a distance of 2 ulps") != std::string::npos) << line(-tiny, tiny);
  EXPECT_TRUE(line(-0.0f, 0.0f).find("-0 and 0, a distance of 0 ulps; 1 of 1") != std::string::npos) << line(-0.f, 0.f);
  EXPECT_TRUE(line(-most, most).find("a distance of 4278190080 ulps") != std::string::npos) << line(-most, most);
  std::vector<double> a = {-std::numeric_limits<double>::infinity()}, b = {-a[0]};
  EXPECT_EQ(compare({tensor("d", MT_F64, {1}, a)}, {tensor("d", MT_F64, {1}, b)})[0],
            "d [0]: -inf and inf, a distance of 18437736874454810624 ulps; 1 of 1 values differ, the most by "
            "18437736874454810624 ulps at [0]");
  std::vector<int64_t> low = {INT64_MIN}, high = {INT64_MAX};
  EXPECT_EQ(
      compare({tensor("i", MT_I64, {1}, low)}, {tensor("i", MT_I64, {1}, high)})[0],
      "i [0]: -9223372036854775808 and 9223372036854775807, a distance of 18446744073709551615 ulps; 1 of 1 values "
      "differ, the most by 18446744073709551615 ulps at [0]");
  std::vector<int32_t> minus = {-3}, plus = {4};
  EXPECT_TRUE(compare({tensor("i", MT_I32, {1}, minus)}, {tensor("i", MT_I32, {1}, plus)})[0].starts_with(
      "i [0]: -3 and 4, a distance of 7 ulps"));
}

TEST(CompareTest, NamesTypesAndShapes) {
  std::vector<float> a = {1, 2};
  std::vector<int32_t> b = {1, 2};
  EXPECT_EQ(compare({tensor("x", MT_F32, {2}, a), tensor("y", MT_F32, {2}, a)}, {tensor("x", MT_I32, {1, 2}, b)}),
            (Lines{"x: f32 [2] and i32 [1, 2]", "2 of 2 tensors differ"}));
  EXPECT_EQ(compare({}, {tensor("x", MT_F32, {2}, a)}), (Lines{"x: in the second file only", "1 of 1 tensors differ"}));
}
