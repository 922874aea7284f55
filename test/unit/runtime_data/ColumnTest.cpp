// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Column.h"
#include "Fixtures.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

template <typename T> Field makeField(Stored type, std::vector<T> values, std::vector<uint64_t> shape) {
  Field field;
  field.name = field.where = "f";
  field.type = type;
  field.shape = std::move(shape);
  field.stride = field.elements() * sizeof(T);
  field.samples = values.size() / field.elements();
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  memcpy(bytes.data(), values.data(), bytes.size());
  field.bytes = share(std::move(bytes));
  return field;
}

DataSpec specOf(const std::string &keys) {
  DataSpec spec;
  EXPECT_EQ(text(parseDataSpec("npy:x" + keys, spec)), "0");
  return spec;
}

// All samples of the field, as an entry of this type and shape takes them.
template <typename T>
std::vector<T> gathered(const Field &field, mt_dtype dtype, std::vector<int64_t> shape, const std::string &keys,
                        mtrun_role role = MTRUN_INPUT) {
  shape.insert(shape.begin(), -1);
  mtrun_tensor_info entry = {"e", dtype, static_cast<int32_t>(shape.size()), shape.data(), role, 0, 0, 0};
  Column column;
  EXPECT_EQ(text(column.open(field, entry, specOf(keys))), "0");
  std::vector<T> out(column.elements * field.samples);
  for (int64_t i = 0; i < static_cast<int64_t>(field.samples); ++i)
    column.gather(&i, 1, out.data() + static_cast<size_t>(i) * column.elements);
  return out;
}

using Floats = std::vector<float>;

} // namespace

TEST(Column, AsStored) {
  Field bytes = makeField<uint8_t>(Stored::U8, {0, 7, 255, 1}, {2});
  EXPECT_EQ(gathered<float>(bytes, MT_F32, {2}, ""), (Floats{0, 7, 255, 1}));
  EXPECT_EQ(gathered<int32_t>(bytes, MT_I32, {2}, ""), (std::vector<int32_t>{0, 7, 255, 1}));
  EXPECT_EQ(gathered<uint8_t>(bytes, MT_U8, {2}, ""), (std::vector<uint8_t>{0, 7, 255, 1}));
  EXPECT_EQ(gathered<uint8_t>(bytes, MT_BOOL, {2}, ""), (std::vector<uint8_t>{0, 1, 1, 1}));
  Field doubles = makeField<double>(Stored::F64, {0.1, -2}, {1});
  EXPECT_EQ(gathered<float>(doubles, MT_F32, {1}, ""), (Floats{0.1f, -2}));
  Field wide = makeField<int64_t>(Stored::I64, {-3, 9}, {});
  EXPECT_EQ(gathered<int32_t>(wide, MT_I32, {}, ""), (std::vector<int32_t>{-3, 9}));
  Field tokens = makeField<uint16_t>(Stored::U16, {50256, 1}, {});
  EXPECT_EQ(gathered<int32_t>(tokens, MT_I32, {}, ""), (std::vector<int32_t>{50256, 1}));
}

TEST(Column, Scaled) {
  Field bytes = makeField<uint8_t>(Stored::U8, {0, 51, 255}, {1});
  EXPECT_EQ(gathered<float>(bytes, MT_F32, {1}, ",scale=1/255"), (Floats{0, 51.0f / 255.0f, 1}));
  EXPECT_EQ(gathered<float>(bytes, MT_F32, {1}, ",preprocess=tf"), (Floats{-1, float(51 / 127.5 - 1), 1}));
  Field picture = makeField<uint8_t>(Stored::U8, {10, 20, 30, 40, 50, 60}, {2, 3});
  EXPECT_EQ(gathered<float>(picture, MT_F32, {2, 3}, ",mean=1:2:3,std=1:2:1"), (Floats{9, 9, 27, 39, 24, 57}));
  // Blue, green, red.
  EXPECT_EQ(gathered<float>(picture, MT_F32, {2, 3}, ",preprocess=caffe"),
            (Floats{float(30 - 103.939), float(20 - 116.779), float(10 - 123.68), float(60 - 103.939),
                    float(50 - 116.779), float(40 - 123.68)}));
  Field floats = makeField<float>(Stored::F32, {1, 2, 3, 4}, {2});
  EXPECT_EQ(gathered<float>(floats, MT_F32, {2}, ",scale=0.5,mean=1"), (Floats{-0.5f, 0, 0.5f, 1}));
  // Targets are never scaled.
  EXPECT_EQ(gathered<float>(floats, MT_F32, {2}, ",scale=0.5,mean=1", MTRUN_TARGET), (Floats{1, 2, 3, 4}));
}

// Stored types went different ways, and values behind groups of three were lost.
TEST(Column, Reversed) {
  std::vector<uint8_t> bytes = {10, 20, 30, 40, 50, 60};
  Field u8 = makeField<uint8_t>(Stored::U8, bytes, {2, 3});
  Field f32 = makeField<float>(Stored::F32, std::vector<float>(bytes.begin(), bytes.end()), {2, 3});
  Field i64 = makeField<int64_t>(Stored::I64, std::vector<int64_t>(bytes.begin(), bytes.end()), {2, 3});
  Floats one = {29, 19, 9, 59, 49, 39};
  for (const Field &field : {u8, f32, i64})
    EXPECT_EQ(gathered<float>(field, MT_F32, {2, 3}, ",preprocess=caffe,mean=1"), one);
  int64_t shape[2] = {-1, 4};
  mtrun_tensor_info entry = {"e", MT_F32, 2, shape, MTRUN_INPUT, 0, 0, -1};
  Column column;
  EXPECT_EQ(
      text(column.open(makeField<uint8_t>(Stored::U8, {1, 2, 3, 4}, {4}), entry, specOf(",preprocess=caffe,mean=1"))),
      "1: data: preprocess=caffe takes red, green and blue to blue, green and red: expected 3 channels on the "
      "last axis of input \"e\": f32 [?, 4], found 4");
}

TEST(Column, SixteenBits) {
  Field halves = makeField<uint16_t>(Stored::F16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00}, {});
  Floats values = gathered<float>(halves, MT_F32, {}, "");
  EXPECT_EQ(values, (Floats{1, -2, 0x1p-24f, 65504, 0, INFINITY}));
  EXPECT_TRUE(std::signbit(values[4]));
}

TEST(Column, NamesWhatIsNotFinite) {
  int64_t shape[2] = {-1, 300};
  mtrun_tensor_info entry = {"e", MT_F32, 2, shape, MTRUN_INPUT, 0, 0, -1};
  std::vector<float> values(300, 1);
  Column column;
  ASSERT_EQ(text(column.open(makeField<float>(Stored::F32, values, {300}), entry, specOf(""))), "0");
  ASSERT_TRUE(column.mayBeNan());
  EXPECT_EQ(text(column.checkFinite(values.data(), 7)), "0");
  values[299] = -INFINITY;
  EXPECT_EQ(text(column.checkFinite(values.data(), 7)),
            "1: f: expected finite values of \"e\", found minus infinity in sample 7, element 299 of 300; --allow-nan "
            "(nan=yes) lets it pass");
  values[5] = NAN;
  EXPECT_EQ(text(column.checkFinite(values.data(), 7)),
            "1: f: expected finite values of \"e\", found not a number in sample 7, element 5 of 300; --allow-nan "
            "(nan=yes) lets it pass");
}

TEST(Column, ShapesOfEqualCount) {
  Field bytes = makeField<uint8_t>(Stored::U8, {1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(gathered<float>(bytes, MT_F32, {6}, ""), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(Column, Messages) {
  int64_t shape[3] = {-1, 2, 3};
  mtrun_tensor_info entry = {"e", MT_I32, 3, shape, MTRUN_INPUT, 0, 0, 0};
  Column column;
  EXPECT_EQ(text(column.open(makeField<float>(Stored::F32, {1, 2, 3, 4, 5, 6}, {6}), entry, specOf(""))),
            "1: f: samples of f32 [6] do not fit input \"e\": i32 [?, 2, 3]");
  entry.dtype = MT_F32;
  EXPECT_EQ(text(column.open(makeField<uint8_t>(Stored::U8, {1, 2, 3, 4, 5}, {5}), entry, specOf(""))),
            "1: f: samples of u8 [5] do not fit input \"e\": f32 [?, 2, 3]");
  EXPECT_EQ(text(column.open(makeField<uint8_t>(Stored::U8, {1, 2, 3, 4, 5, 6}, {6}), entry, specOf(",mean=1:2"))),
            "1: data: expected mean and std of 1 or 3 channels for input \"e\": f32 [?, 2, 3], found 2");
}

TEST(Column, OneHot) {
  Field labels = makeField<uint8_t>(Stored::U8, {2, 0}, {});
  EXPECT_EQ(gathered<float>(labels, MT_F32, {3}, "", MTRUN_TARGET), (Floats{0, 0, 1, 1, 0, 0}));
  // A number a sample is a number, not a class.
  EXPECT_EQ(gathered<float>(labels, MT_F32, {1}, "", MTRUN_TARGET), (Floats{2, 0}));
}
