// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/safetensors.h"
#include "Fixtures.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

static std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }

// A file with this header and data.
static std::string file(const std::string &json, const std::string &data) {
  std::string result;
  for (int i = 0; i < 8; ++i)
    result += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return result + json + data;
}

static std::string problemOf(const std::string &bytes) {
  std::vector<SafeTensor> tensors;
  return text(parseSafetensors(bytesOf(bytes), "f", tensors));
}

static std::string headerProblem(const std::string &json, size_t dataBytes = 0) {
  return problemOf(file(json, std::string(dataBytes, 'x')));
}

TEST(Safetensors, HeaderBytes) {
  std::string f32(8, 'f'), flags(3, 'b'), i64(8, 'i');
  std::vector<SafeTensor> tensors = {{"flag", MT_BOOL, {3}, bytesOf(flags)},
                                     {"b/w\"", MT_F32, {1, 2}, bytesOf(f32)},
                                     {"a", MT_F32, {2}, bytesOf(f32)},
                                     {"steps", MT_I64, {}, bytesOf(i64)}};
  std::string header = safetensorsHeader(tensors);
  EXPECT_EQ(header.size() % 8, 0u);
  std::string json = header.substr(8);
  EXPECT_EQ(json.substr(0, json.find_last_not_of(' ') + 1),
            "{\"steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
            "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
            "\"b/w\\\"\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[16,24]},"
            "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[24,27]}}");
}

TEST(Safetensors, RoundTrip) {
  TempFolder folder;
  std::string path = folder.path("v.safetensors"), f32(8, 'f'), flags(3, 'b');
  ASSERT_EQ(text(writeSafetensors(path, {{"flag", MT_BOOL, {3}, bytesOf(flags)}, {"w", MT_F32, {1, 2}, bytesOf(f32)}})),
            "0");
  std::vector<std::byte> read;
  std::vector<SafeTensor> tensors;
  ASSERT_EQ(text(readWholeFile(path, read)), "0");
  ASSERT_EQ(text(parseSafetensors(read, path, tensors)), "0");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(memcmp(tensors[0].bytes.data(), f32.data(), 8), 0);
  EXPECT_EQ(tensors[1].dtype, MT_BOOL);
  EXPECT_EQ(tensors[1].bytes.size(), 3u);
}

TEST(Safetensors, Accepts) {
  EXPECT_EQ(headerProblem("{}"), "0");
  EXPECT_EQ(headerProblem("{\"__metadata__\":{\"format\":\"pt\"}}  "), "0");
  EXPECT_EQ(headerProblem("{\"e\":{\"data_offsets\":[0,0],\"shape\":[0,5],\"dtype\":\"F32\"}}"), "0");
  std::vector<SafeTensor> tensors;
  std::string escaped =
      file("{\"\\u00e9\\ud83d\\ude00\\n\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x");
  ASSERT_EQ(text(parseSafetensors(bytesOf(escaped), "f", tensors)), "0");
  EXPECT_EQ(tensors[0].name, "\xc3\xa9\xf0\x9f\x98\x80\n");
}

TEST(Safetensors, Messages) {
  EXPECT_EQ(problemOf("abc"), "3: f: expected at least 8 bytes, found 3");
  EXPECT_EQ(problemOf(std::string(8, '\xff')),
            "3: f: expected a header of at most 0 bytes, found a length of 18446744073709551615");
  EXPECT_EQ(headerProblem(" {}"), "3: f: expected a header that starts with '{'");
  EXPECT_EQ(headerProblem("{\"a\":1}"), "3: f: header: expected an object as \"a\", found 1");
  EXPECT_EQ(headerProblem("{} x"), "3: f: header byte 4: expected JSON");
  EXPECT_EQ(headerProblem("{}", 1), "3: f: expected 0 bytes of data, found 1");
  EXPECT_EQ(headerProblem("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}"),
            "3: f: tensor \"a\": expected dtype, shape and data_offsets");
  auto one = [](const std::string &fields) { return headerProblem("{\"a\":{" + fields + "}}", 4); };
  EXPECT_EQ(one("\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]"),
            "3: f: tensor \"a\": expected dtype F32, F16, BF16, I32, I64, F64, U8 or BOOL, found \"F8_E4M3\"");
  EXPECT_EQ(one("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]"),
            "3: f: tensor \"a\": expected 4 bytes for its shape, found data_offsets 0 to 8");
  EXPECT_EQ(one("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"),
            "3: f: tensor \"a\": expected data from byte 0, found 4");
  EXPECT_EQ(one("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"),
            "3: f: tensor \"a\": ends at data byte 8, the file has 4");
  EXPECT_EQ(one("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"),
            "3: f: tensor \"a\": the shape has more than 2^64 bytes");
  EXPECT_EQ(headerProblem("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                          2),
            "3: f: tensor \"a\" is there twice");
}

// Headers from strangers: JSON that a library takes and the format has no room for.
TEST(Safetensors, HostileHeaders) {
  auto shape = [](const std::string &text) {
    return headerProblem("{\"a\":{\"dtype\":\"U8\",\"shape\":[" + text + "],\"data_offsets\":[0,1]}}", 1);
  };
  EXPECT_EQ(shape("1"), "0");
  std::string numbers = "3: f: tensor \"a\": expected whole numbers below 2^64 in shape, found ";
  EXPECT_EQ(shape("1.0"), numbers + "1.0");
  EXPECT_EQ(shape("1e0"), numbers + "1e0");
  EXPECT_EQ(shape("-1"), numbers + "-1");
  EXPECT_EQ(shape("18446744073709551616"), numbers + "18446744073709551616");
  EXPECT_EQ(shape("true"), numbers + "true");
  EXPECT_EQ(shape("null"), numbers + "null");
  EXPECT_EQ(shape("\"1\""), numbers + "a string");
  EXPECT_EQ(shape("9223372036854775808"),
            "3: f: tensor \"a\": expected dimensions below 2^63, found 9223372036854775808");
  EXPECT_EQ(shape(std::string(1 << 20, '[')), numbers + "an array"); // no depth of nesting costs memory or stack
  EXPECT_EQ(shape("{\"b\":1}"), numbers + "an object");
  std::string many = "1";
  for (int i = 0; i < 64; ++i)
    many += ",1";
  EXPECT_EQ(shape(many), "3: f: tensor \"a\": expected at most 64 numbers in shape");
  EXPECT_EQ(shape("01").substr(0, 18), "3: f: header byte ");
  EXPECT_EQ(headerProblem("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1),
            "3: f: tensor \"a\": expected two data_offsets, found 1");
  EXPECT_EQ(headerProblem("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1),
            "3: f: tensor \"a\": expected dtype, shape and data_offsets, once each, found \"dtype\"");
  EXPECT_EQ(headerProblem("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"),
            "3: f: header: expected different keys in __metadata__, found a second \"a\"");
  EXPECT_EQ(headerProblem("{\"__metadata__\":{},\"__metadata__\":{}}"),
            "3: f: header: expected one __metadata__, found two");
  EXPECT_EQ(headerProblem("{\"__metadata__\":{\"a\":1}}"),
            "3: f: header: expected a string as \"a\" of __metadata__, found 1");
  EXPECT_EQ(headerProblem(std::string("{}\0{}", 5)), "3: f: header byte 2: expected text, found a zero");
  EXPECT_EQ(headerProblem("{\"\xff\":{}}"), "3: f: header byte 3: expected JSON");  // no UTF-8
  EXPECT_EQ(headerProblem("{\"\\udc00\":{}}").substr(0, 18), "3: f: header byte "); // half of a pair
}

// Any truncation of a good file is refused, and no bytes whatever are a crash.
TEST(Safetensors, Truncations) {
  std::string good = file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}", "12345678");
  ASSERT_EQ(problemOf(good), "0");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(problemOf(good.substr(0, size)).substr(0, 2), "3:") << size;
  for (size_t at = 0; at < good.size() - 8; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      problemOf(bad);
    }
}

TEST(Safetensors, SessionRoundTrip) {
  TempFolder folder;
  std::string path = folder.path("v.safetensors");
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_session> session = nullSession(plan.get());
  float w[6] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  ASSERT_EQ(text(mtrun_set_variable(session.get(), "w", w, sizeof w)), "0");
  ASSERT_EQ(text(mtrun_save(session.get(), path.c_str())), "0");
  Owned<mtrun_session> other = nullSession(plan.get(), "null:2");
  ASSERT_EQ(text(mtrun_load(other.get(), path.c_str())), "0");
  ASSERT_EQ(text(mtrun_get_variable(other.get(), "w", back, sizeof back)), "0");
  EXPECT_EQ(memcmp(w, back, sizeof w), 0);
}

TEST(Safetensors, LoadListsDifferences) {
  TempFolder folder;
  std::string path = folder.path("v.safetensors"), bytes(8, 'x');
  ASSERT_EQ(text(writeSafetensors(path, {{"w", MT_F32, {2}, bytesOf(bytes)}, {"v", MT_I64, {}, bytesOf(bytes)}})), "0");
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_session> session = nullSession(plan.get());
  EXPECT_EQ(text(mtrun_load(session.get(), path.c_str())),
            "1: " + path + ": variable \"w\": expected f32 [2, 3], found f32 [2]\n" + path +
                ": expected variable \"flag\": bool [3], found none\n" + path +
                ": expected variable \"steps\": i64 [], found none\n" + path +
                ": the plan has no variable \"v\": i64 []");
  std::string missing = folder.path("none");
  EXPECT_EQ(text(mtrun_load(session.get(), missing.c_str())),
            "7: cannot open " + missing + ": No such file or directory");
}

TEST(Safetensors, UnwritablePath) {
  TempFolder folder;
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_session> session = nullSession(plan.get());
  std::string path = folder.path("none/v.safetensors");
  EXPECT_EQ(text(mtrun_save(session.get(), path.c_str())), "7: cannot create " + path + ": No such file or directory");
}

// By name and shape what fits; nothing of a file that has nothing.
TEST(Safetensors, LoadsWhatFits) {
  TempFolder folder;
  std::string path = folder.path("v.safetensors"), other = folder.path("o.safetensors"), bytes(24, '\0'), lines;
  ASSERT_EQ(
      text(writeSafetensors(path, {{"w", MT_F32, {2, 3}, bytesOf(bytes)}, {"more", MT_F32, {6}, bytesOf(bytes)}})),
      "0");
  ASSERT_EQ(text(writeSafetensors(other, {{"w", MT_F32, {6}, bytesOf(bytes)}})), "0");
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_session> session = nullSession(plan.get());
  float w[6] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  ASSERT_EQ(text(mtrun_set_variable(session.get(), "w", w, sizeof w)), "0");
  auto line = [](void *user, const char *text) { *static_cast<std::string *>(user) += std::string(text) + "\n"; };
  EXPECT_EQ(text(mtrun_load_matching(session.get(), other.c_str(), MTRUN_MATCH_ANY, line, &lines)),
            "1: " + other +
                ": no tensor has the name and the shape of a variable of the plan, it has w (f32 [2, 3] in the "
                "plan, f32 [6] in the file)");
  ASSERT_EQ(text(mtrun_load_matching(session.get(), path.c_str(), MTRUN_MATCH_ANY, line, &lines)), "0");
  EXPECT_EQ(lines, path + ": loaded 1 of 3 variables\n" + path + ": not in the file: flag, steps\n" + path +
                       ": not in the plan: more\n");
  ASSERT_EQ(text(mtrun_get_variable(session.get(), "w", back, sizeof back)), "0");
  EXPECT_EQ(back[5], 0);
}

TEST(Safetensors, LoadsNothingIntoAPlanWithoutVariables) {
  TempFolder folder;
  std::string path = folder.path("v.safetensors"), lines;
  ASSERT_EQ(text(writeSafetensors(path, {})), "0");
  Owned<mtrun_plan> plan = planWithoutVariables();
  Owned<mtrun_session> session = nullSession(plan.get());
  auto line = [](void *user, const char *text) { *static_cast<std::string *>(user) += std::string(text) + "\n"; };
  ASSERT_EQ(text(mtrun_load_matching(session.get(), path.c_str(), MTRUN_MATCH_ANY, line, &lines)), "0");
  EXPECT_EQ(lines, path + ": loaded 0 of 0 variables\n");
}

TEST(Safetensors, HalvesAreWidened) {
  // 1, the largest, the smallest and an infinite one of each kind.
  const uint16_t halves[] = {0x3c00, 0x7bff, 0x8001, 0xfc00}, brains[] = {0x3f80, 0x7f7f, 0x8001, 0xff80};
  std::vector<SafeTensor> tensors = {{"a", MT_F16, {4}, std::as_bytes(std::span(halves))},
                                     {"b", MT_BF16, {4}, std::as_bytes(std::span(brains))}};
  std::vector<std::vector<std::byte>> storage;
  widenHalves(tensors, storage);
  auto number = [&](size_t tensor, size_t i) {
    float value;
    std::memcpy(&value, &tensors[tensor].bytes[i * sizeof value], sizeof value);
    return value;
  };
  EXPECT_EQ(tensors[0].dtype, MT_F32);
  EXPECT_EQ(number(0, 0), 1.0F);
  EXPECT_EQ(number(0, 1), 65504.0F);
  EXPECT_EQ(number(0, 2), -0x1p-24F);
  EXPECT_EQ(number(0, 3), -INFINITY);
  EXPECT_EQ(number(1, 0), 1.0F);
  EXPECT_EQ(number(1, 1), 0x1.fep127F);
  EXPECT_EQ(number(1, 2), -0x1p-133F);
  EXPECT_EQ(number(1, 3), -INFINITY);
}
