// SPDX-License-Identifier: Apache-2.0
//
// Reads the values of a field as numbers, for any type of the file.
#pragma once

#include "runtime/data/Table.h"

#include <cstring>

namespace mtrun {

template <typename T> T load(const uint8_t *bytes, uint64_t index) {
  T value;
  memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Calls body(i, value) for each value; floats as double, integers as their stored type.
template <typename Body> void forEach(Stored type, const uint8_t *from, uint64_t count, Body &&body) {
  auto loop = [&]<typename T>(T) {
    for (uint64_t i = 0; i < count; ++i)
      body(i, load<T>(from, i));
  };
  switch (type) {
  case Stored::U8:
  case Stored::Bool:
    return loop(uint8_t());
  case Stored::I8:
    return loop(int8_t());
  case Stored::U16:
    return loop(uint16_t());
  case Stored::I16:
    return loop(int16_t());
  case Stored::I32:
    return loop(int32_t());
  case Stored::U32:
    return loop(uint32_t());
  case Stored::I64:
    return loop(int64_t());
  case Stored::F32:
    return loop(float());
  case Stored::F64:
    return loop(double());
  case Stored::F16:
    for (uint64_t i = 0; i < count; ++i)
      body(i, halfValue(load<uint16_t>(from, i)));
  }
}

} // namespace mtrun
