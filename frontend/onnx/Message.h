// SPDX-License-Identifier: Apache-2.0
//
// Messages of Protocol Buffers, and the numbers of the fields that ONNX' messages have. protozero finds the fields;
// here each value is read only if it is stored as the schema says. Damage is an exception of protozero; what is well
// formed and refused is a Problem.
#ifndef FRONTEND_ONNX_MESSAGE_H
#define FRONTEND_ONNX_MESSAGE_H

#define PROTOZERO_USE_VIEW std::string_view
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtc::onnx {

struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a Problem where `count` is larger.
void limit(size_t count, size_t most, const char *what);

// Limits of shapes in a file.
constexpr size_t maxRank = 16;
constexpr int64_t maxDimension = int64_t{1} << 40;

// A message's field that is being read. What has another wire type than the schema says is damage.
using Field = protozero::pbf_reader;

inline void expect(const Field &field, protozero::pbf_wire_type type) {
  if (field.wire_type() != type)
    throw protozero::unknown_pbf_wire_type_exception();
}

inline int64_t integerOf(Field &field) {
  expect(field, protozero::pbf_wire_type::varint);
  return field.get_int64();
}

inline float floatOf(Field &field) {
  expect(field, protozero::pbf_wire_type::fixed32);
  return field.get_float();
}

// A text, bytes or a message.
inline std::string_view bytesOf(Field &field) {
  expect(field, protozero::pbf_wire_type::length_delimited);
  return field.get_view();
}

// Calls `take` for the fields of a message. It reads the value, or skips it.
template <typename Take> void forFields(std::string_view message, Take take) {
  Field field(message.data(), message.size());
  while (field.next())
    take(field);
}

// Calls `take` for each number of a repeated field, which may have one or many.
template <typename Take> void forIntegers(Field &field, Take take) {
  if (field.wire_type() != protozero::pbf_wire_type::length_delimited)
    return take(integerOf(field));
  for (int64_t value : field.get_packed_int64())
    take(value);
}

template <typename Take> void forFloats(Field &field, Take take) {
  if (field.wire_type() != protozero::pbf_wire_type::length_delimited)
    return take(floatOf(field));
  for (float value : field.get_packed_float())
    take(value);
}

template <typename Take> void forDoubles(Field &field, Take take) {
  if (field.wire_type() != protozero::pbf_wire_type::length_delimited) {
    expect(field, protozero::pbf_wire_type::fixed64);
    return take(field.get_double());
  }
  for (double value : field.get_packed_double())
    take(value);
}

// A text that is a name: UTF-8 without control characters, of at most 4,096 bytes.
std::string nameOf(Field &field, const char *what);

// The fields of the messages of onnx.proto (ONNX 1.12 to 1.17) that are read here.
namespace model {
enum : uint32_t { graph = 7, opsetImport = 8 };
}
namespace opset {
enum : uint32_t { domain = 1, version = 2 };
}
namespace graph {
enum : uint32_t { node = 1, name = 2, initializer = 5, input = 11, output = 12, sparseInitializer = 15 };
}
namespace node {
enum : uint32_t { input = 1, output = 2, name = 3, opType = 4, attribute = 5, domain = 7 };
}
namespace attribute {
enum : uint32_t { name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9, type = 20 };
}
namespace tensor {
enum : uint32_t {
  dims = 1,
  dataType = 2,
  segment = 3,
  floatData = 4,
  int32Data = 5,
  int64Data = 7,
  name = 8,
  rawData = 9,
  doubleData = 10,
  uint64Data = 11,
  externalData = 13,
  dataLocation = 14
};
}
namespace entry {
enum : uint32_t { key = 1, value = 2 };
}
namespace port {
enum : uint32_t { name = 1, type = 2 };
}
namespace type {
enum : uint32_t { tensor = 1 };
}
namespace tensorType {
enum : uint32_t { elementType = 1, shape = 2 };
}
namespace shape {
enum : uint32_t { dim = 1 };
}
namespace dim {
enum : uint32_t { value = 1, param = 2 };
}

} // namespace mtc::onnx

#endif
