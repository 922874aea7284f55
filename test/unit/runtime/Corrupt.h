// SPDX-License-Identifier: Apache-2.0
//
// What a plan file with a fault is refused with.
#pragma once

#include "runtime/plan/Plan.h"

#include "gtest/gtest.h"

#include <memory>
#include <string>
#include <vector>

namespace mtrun::test {

// MT_CORRUPT, and a text with `message` in it.
inline void expectCorrupt(const Status &status, const std::string &message) {
  EXPECT_EQ(status.code(), MT_CORRUPT) << message;
  EXPECT_NE(status.message().find(message), std::string::npos)
      << "expected: " << message << "\nfound:    " << status.message();
}

// The same of a file's bytes.
inline void expectCorrupt(const std::vector<uint8_t> &bytes, const std::string &message) {
  std::unique_ptr<Plan> plan;
  expectCorrupt(Plan::loadMemory(bytes.data(), bytes.size(), plan), message);
}

} // namespace mtrun::test
