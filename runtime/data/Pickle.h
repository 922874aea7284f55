// SPDX-License-Identifier: Apache-2.0
//
// Reads the part of Python's pickle format that holds plain data: numbers, texts, lists, dictionaries, and NumPy arrays
// of bytes. Nothing of the file is ever run: a class other than NumPy's array and dtype is an error.
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
  int64_t integer = 0;                   // also of booleans
  std::string text = {};                 // texts and bytes; of a global "module name"
  const PickleValue *elements = nullptr; // of an array: the bytes, which other arrays may have too
  std::vector<PickleValue *> items = {}; // lists, tuples; of dictionaries key, value, key, value ...
  std::vector<int64_t> shape = {};       // arrays
};

// Values may share and contain one another in any way, so the pickle owns them all.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue *root = nullptr;
};

// `where` is for messages. MT_CORRUPT: no pickle, or one that ends early. MT_INVALID: something else is in it.
Status readPickle(std::span<const uint8_t> bytes, const std::string &where, Pickle &pickle);

// The value of a dictionary's key, a text or bytes; null: none.
const PickleValue *find(const PickleValue &dictionary, std::string_view key);

} // namespace mtrun
