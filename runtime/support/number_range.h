// SPDX-License-Identifier: Apache-2.0
//
// Range checks for class labels and ids of any type, and their text for messages.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <type_traits>

namespace mtrun {

// Returns true if `value` is in [`least`, `most`]. A float is truncated to an integer before the comparison; NaN is
// never in range.
template <typename T> bool isWithin(T value, int64_t least, int64_t most) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value) > static_cast<double>(least) - 1 &&
           static_cast<double>(value) < static_cast<double>(most) + 1;
  else
    return static_cast<int64_t>(value) >= least && static_cast<int64_t>(value) <= most;
}

// Returns the shortest text that reads back as `value`.
template <typename T> std::string numberText(T value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

} // namespace mtrun
