// SPDX-License-Identifier: Apache-2.0
//
// Tests of what data sources hold, without a model.
#pragma once

#include "Fixtures.h"
#include "runtime/data/Table.h"

#include <gtest/gtest.h>

namespace fixtures {

class Tables : public testing::Test {
protected:
  // The status of opening "KIND:" and a path in the folder; what was read is in `table`.
  std::string open(const std::string &kind, const std::string &rest) {
    table = {};
    mtrun::DataSpec spec;
    std::string result = text(mtrun::parseDataSpec(kind + ":" + folder.path(rest), spec));
    if (result == "0")
      result = text(mtrun::openTable(spec, table));
    for (size_t at; (at = result.find(folder.path() + "/")) != std::string::npos;)
      result.erase(at, folder.path().size() + 1);
    return result;
  }
  template <typename T> T at(size_t field, uint64_t sample, uint64_t element = 0) const {
    const mtrun::Field &f = table.fields[field];
    return reinterpret_cast<const T *>(f.bytes.get() + sample * f.stride)[element];
  }
  TempFolder folder;
  mtrun::Table table;
};

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

} // namespace fixtures
