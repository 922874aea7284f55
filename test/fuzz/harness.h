// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

// Reads every byte, so that the sanitizer sees one that is not there. Without counters, which would tell the fuzzer of
// this loop and take most of its time.
__attribute__((no_sanitize("coverage"))) inline void readAll(std::span<const uint8_t> bytes) {
  volatile uint8_t sum = 0;
  uint8_t all = 0;
  for (uint8_t byte : bytes)
    all = static_cast<uint8_t>(all + byte);
  sum = all;
  (void)sum;
}
