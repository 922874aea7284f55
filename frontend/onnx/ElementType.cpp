// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/File.h"

#include <utility>

namespace mtc::onnx {

namespace {
struct TypeEntry {
  ElementType type;
  const char *name;
  int64_t bytes;
};
} // namespace

static constexpr TypeEntry types[] = {
    {ElementType::Float, "float32", 4},  {ElementType::Uint8, "uint8", 1},      {ElementType::Int8, "int8", 1},
    {ElementType::Uint16, "uint16", 2},  {ElementType::Int16, "int16", 2},      {ElementType::Int32, "int32", 4},
    {ElementType::Int64, "int64", 8},    {ElementType::Bool, "bool", 1},        {ElementType::Float16, "float16", 2},
    {ElementType::Double, "float64", 8}, {ElementType::Uint32, "uint32", 4},    {ElementType::Uint64, "uint64", 8},
    {ElementType::String, "string", 0},  {ElementType::Bfloat16, "bfloat16", 2}};
static constexpr std::pair<int32_t, const char *> others[] = {
    {14, "complex64"},      {15, "complex128"}, {17, "float8e4m3fn"}, {18, "float8e4m3fnuz"}, {19, "float8e5m2"},
    {20, "float8e5m2fnuz"}, {21, "uint4"},      {22, "int4"},         {23, "float4e2m1"},     {24, "float8e8m0"}};

static const TypeEntry *find(ElementType type) {
  for (const TypeEntry &entry : types)
    if (entry.type == type)
      return &entry;
  return nullptr;
}

std::string nameOf(ElementType type) {
  if (const TypeEntry *entry = find(type))
    return entry->name;
  for (auto [number, name] : others)
    if (static_cast<int32_t>(type) == number)
      return name;
  return "type " + std::to_string(static_cast<int32_t>(type));
}

int fewBits(ElementType type) {
  switch (type) {
  case ElementType::Int8:
    return 8;
  case ElementType::Uint8:
    return -8;
  case ElementType::Int16:
    return 16;
  case ElementType::Uint16:
    return -16;
  default:
    return 0;
  }
}

int64_t bytesOf(ElementType type) {
  const TypeEntry *entry = find(type);
  return entry ? entry->bytes : 0;
}

bool isFloat(ElementType type) {
  return type == ElementType::Float || type == ElementType::Double || type == ElementType::Float16 ||
         type == ElementType::Bfloat16;
}

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

bool isModel(std::string_view start) {
  constexpr char newestVersion = 32;
  constexpr std::string_view next = "\x12\x1a\x22\x28\x32\x3a\x42"; // the tags of the fields that may follow
  return start.size() > 3 && start[0] == 8 && start[1] > 0 && start[1] < newestVersion &&
         next.find(start[2]) != std::string_view::npos;
}

} // namespace mtc::onnx
