// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/json_text.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace mtrun {

std::string jsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string jsonNumber(double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : "null";
}

} // namespace mtrun
