// SPDX-License-Identifier: Apache-2.0
//
// Whether a number of any type is a class or an id that a model can take, and how a message writes it.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <type_traits>

namespace mtrun {

// Whether `value` is from `least` to `most`. A float counts as the integer that is left without its fraction; NaN never
// is.
template <typename T> bool isWithin(T value, int64_t least, int64_t most) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value) > static_cast<double>(least) - 1 &&
           static_cast<double>(value) < static_cast<double>(most) + 1;
  else
    return static_cast<int64_t>(value) >= least && static_cast<int64_t>(value) <= most;
}

// The shortest text that reads back as `value`.
template <typename T> std::string numberText(T value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

} // namespace mtrun
