// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device/Tracer.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace mtrun {

// Measures the duration of each part of a session's start.
struct StartTimes {
  int64_t last = nanoseconds();
  std::string text;

  void add(const char *part) {
    int64_t now = nanoseconds();
    char line[80];
    snprintf(line, sizeof line, "%s%s %.1f ms", text.empty() ? "" : ", ", part, static_cast<double>(now - last) / 1e6);
    text += line;
    last = now;
  }
};

} // namespace mtrun
