// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/History.h"
#include "runtime/support/atomic_file.h"
#include "runtime/support/json_text.h"

#include <cmath>
#include <cstdio>

namespace mtrun {

static std::string number(double value, const char *notFinite) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  // Find the shortest text that reads back as the same value.
  for (int digits = 6; digits < 17 && std::isfinite(value); ++digits) {
    char shorter[40];
    snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (strtod(shorter, nullptr) == value)
      return shorter;
  }
  return std::isfinite(value) ? text : notFinite ? notFinite : std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Status writeHistoryJson(const std::string &path, const History &history) {
  size_t columns = history.names.size(), epochs = columns ? history.rows.size() / columns : 0;
  std::string text = "{\"epoch\": [";
  for (size_t e = 0; e < epochs; ++e)
    text += (e ? ", " : "") + std::to_string(history.firstEpoch + static_cast<int64_t>(e));
  text += "]";
  for (size_t i = 0; i < columns; ++i) {
    text += ",\n " + jsonString(history.names[i]) + ": [";
    for (size_t e = 0; e < epochs; ++e)
      text += (e ? ", " : "") + number(history.rows[e * columns + i], "null");
    text += "]";
  }
  return writeAtomically(path, text + "}\n");
}

// Returns a field of CSV.
static std::string field(std::string name) {
  if (name.find_first_of("=+-@") == 0)
    name.insert(0, 1, '\'');
  if (name.find_first_of("\",\n\r") == std::string::npos)
    return name;
  for (size_t at = 0; (at = name.find('"', at)) != std::string::npos; at += 2)
    name.insert(at, 1, '"');
  return '"' + name + '"';
}

Status writeHistoryCsv(const std::string &path, const History &history) {
  std::string text = "epoch";
  for (const std::string &name : history.names)
    text += "," + field(name);
  for (size_t i = 0; i < history.rows.size(); ++i) {
    if (i % history.names.size() == 0)
      text += "\n" + std::to_string(history.firstEpoch + static_cast<int64_t>(i / history.names.size()));
    text += "," + number(history.rows[i], nullptr);
  }
  return writeAtomically(path, text + "\n");
}

} // namespace mtrun
