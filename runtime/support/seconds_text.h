// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace mtrun {

// Returns a text such as "600 seconds" or "0.5 seconds".
inline std::string secondsText(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%g seconds", seconds);
  return text;
}

} // namespace mtrun
