// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Npy.h"

#include <gtest/gtest.h>
#include <vector>

static std::string dictionary(const std::string &header) {
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<uint8_t>(header[8]) + 256u * static_cast<uint8_t>(header[9]), header.size() - 10);
  EXPECT_EQ(header.back(), '\n');
  std::string text = header.substr(10, header.size() - 11);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

static std::string header(mt_dtype dtype, std::vector<int64_t> shape) {
  return dictionary(mtrun::npyHeader(dtype, shape));
}

TEST(Npy, Headers) {
  EXPECT_EQ(header(MT_F32, {3, 4}), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  EXPECT_EQ(header(MT_I64, {5}), "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }");
  EXPECT_EQ(header(MT_BOOL, {}), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
}
