// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/json_text.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace mtrun {

std::string jsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string jsonNumber(double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : "null";
}

std::string &JsonDocument::line(std::string_view key) {
  if (closing_.empty())
    return text_;
  text_ += text_.ends_with('{') || text_.ends_with('[') ? "\n" : ",\n";
  text_.append(closing_.size(), ' ');
  if (closing_.ends_with('}'))
    text_ += jsonString(key) + ": ";
  return text_;
}

void JsonDocument::begin(char bracket, std::string_view key) {
  line(key) += bracket;
  closing_ += bracket == '{' ? '}' : ']';
}

void JsonDocument::end() {
  char bracket = closing_.back();
  closing_.pop_back();
  if (!text_.ends_with('{') && !text_.ends_with('['))
    text_.append(1, '\n').append(closing_.size(), ' ');
  text_ += bracket;
}

std::string JsonDocument::finish() && {
  end();
  return std::move(text_);
}

} // namespace mtrun
