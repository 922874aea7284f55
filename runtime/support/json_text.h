// SPDX-License-Identifier: Apache-2.0
//
// JSON as text, for output that is written piece by piece: headers of tensor files, traces, histories, log lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

// Returns `text` as a JSON string with quotes. `text` may be any bytes; invalid UTF-8 becomes U+FFFD.
std::string jsonString(std::string_view text);
// Returns the text that reads back as the same double; null if the value is not finite, because JSON has no such
// number.
std::string jsonNumber(double value);

// Writes a document of objects and arrays. Each member has its own line, indented by one space per level. Members of an
// array have no key. Running out of memory throws std::bad_alloc; nlohmann::json would terminate the process, because
// its destructor allocates.
class JsonDocument {
public:
  JsonDocument() { begin('{'); }

  void beginObject(std::string_view key = {}) { begin('{', key); }
  void beginArray(std::string_view key) { begin('[', key); }
  void end();
  void add(std::string_view key, std::string_view text) { line(key) += jsonString(text); }
  void add(std::string_view key, int64_t number) { line(key) += std::to_string(number); }
  void add(std::string_view key, bool value) { line(key) += value ? "true" : "false"; }
  void add(std::string_view key, const char *text) = delete; // would convert to bool

  // Returns the text. All levels except the first must have been ended.
  std::string finish() &&;

private:
  void begin(char bracket, std::string_view key = {});
  std::string &line(std::string_view key);

  std::string text_, closing_; // closing_: the closing brackets of the open levels, innermost last
};

} // namespace mtrun
