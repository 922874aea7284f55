// SPDX-License-Identifier: Apache-2.0
//
// Values of JSON as text, for what is written piece by piece: headers of tensors, traces, histories, lines of a log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

// With quotes. `text` may be any bytes: what is no UTF-8 becomes U+FFFD.
std::string jsonString(std::string_view text);
// Reads back as the same double; null where it is not finite, which JSON has no number for.
std::string jsonNumber(double value);

// A document of objects and arrays, member by member: each on a line of its own, indented by a space per level. Members
// of an array have no key. Out of memory is std::bad_alloc here; a tree of nlohmann's ends the process then, as its
// destructor allocates.
class JsonDocument {
public:
  JsonDocument() { begin('{'); }

  void beginObject(std::string_view key = {}) { begin('{', key); }
  void beginArray(std::string_view key) { begin('[', key); }
  void end();
  void add(std::string_view key, std::string_view text) { line(key) += jsonString(text); }
  void add(std::string_view key, int64_t number) { line(key) += std::to_string(number); }
  void add(std::string_view key, bool value) { line(key) += value ? "true" : "false"; }
  void add(std::string_view key, const char *text) = delete; // would be a bool

  // The text, once every level but the first was ended.
  std::string finish() &&;

private:
  void begin(char bracket, std::string_view key = {});
  std::string &line(std::string_view key);

  std::string text_, closing_; // of the levels that are open, the innermost last
};

} // namespace mtrun
