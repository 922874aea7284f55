// SPDX-License-Identifier: Apache-2.0
//
// Reads the part of Python's pickle format that has plain data: numbers, texts, lists, dictionaries, and NumPy arrays
// of bytes. The reader never runs code of the file: a class other than NumPy's array and dtype is an error.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct PickleValue {
  enum Kind { None, Integer, Text, List, Tuple, Dictionary, Global, Array } kind = None;
  int64_t integer = 0;                   // integers and booleans
  std::string text = {};                 // texts and bytes; for a global "module name"
  const PickleValue *elements = nullptr; // the bytes of an array, which several arrays may share
  std::vector<PickleValue *> items = {}; // elements of lists and tuples; for dictionaries key, value, key, value ...
  std::vector<int64_t> shape = {};       // shape of an array
};

// Values may reference each other in any way, so the pickle owns all of them.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue *root = nullptr;
};

// Parses a pickle. `where` begins messages. MT_CORRUPT: the bytes are not a pickle or end early. MT_INVALID: the pickle
// has unsupported objects.
Status readPickle(std::span<const uint8_t> bytes, const std::string &where, Pickle &pickle);

// Returns the value of a key (a text or bytes) of a dictionary; null if there is none.
const PickleValue *find(const PickleValue &dictionary, std::string_view key);

} // namespace mtrun
