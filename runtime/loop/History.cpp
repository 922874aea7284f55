// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/History.h"
#include "runtime/abi/atomic_file.h"

#include <cmath>
#include <cstdio>

namespace mtrun {

static std::string number(double value, const char *notFinite) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", value);
  // The shortest that reads back the same.
  for (int digits = 6; digits < 17 && std::isfinite(value); ++digits) {
    char shorter[40];
    snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (strtod(shorter, nullptr) == value)
      return shorter;
  }
  return std::isfinite(value) ? text : notFinite ? notFinite : std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static Status replace(const std::string &path, const std::string &text) {
  AtomicFile file;
  if (Status s = file.open(path); !s.ok())
    return s;
  if (Status s = file.write(text.data(), text.size()); !s.ok())
    return s;
  return file.commit();
}

Status writeHistoryJson(const std::string &path, const std::vector<std::string> &names, std::span<const double> rows) {
  size_t epochs = names.empty() ? 0 : rows.size() / names.size();
  std::string text = "{\"epoch\": [";
  for (size_t e = 0; e < epochs; ++e)
    text += (e ? ", " : "") + std::to_string(e + 1);
  text += "]";
  for (size_t i = 0; i < names.size(); ++i) {
    text += ",\n \"" + names[i] + "\": [";
    for (size_t e = 0; e < epochs; ++e)
      text += (e ? ", " : "") + number(rows[e * names.size() + i], "null");
    text += "]";
  }
  return replace(path, text + "}\n");
}

Status writeHistoryCsv(const std::string &path, const std::vector<std::string> &names, std::span<const double> rows) {
  std::string text = "epoch";
  for (const std::string &name : names)
    text += "," + name;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % names.size() == 0)
      text += "\n" + std::to_string(i / names.size() + 1);
    text += "," + number(rows[i], nullptr);
  }
  return replace(path, text + "\n");
}

} // namespace mtrun
