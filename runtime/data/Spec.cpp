// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Spec.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace mtrun {

static bool parseNumber(std::string_view text, int64_t &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

static Status parseRange(std::string_view value, DataSpec &spec) {
  size_t colon = value.find(':');
  bool good = colon != std::string_view::npos;
  std::string_view begin = value.substr(0, colon), end = good ? value.substr(colon + 1) : "";
  good = good && (begin.empty() || parseNumber(begin, spec.begin)) && (end.empty() || parseNumber(end, spec.end));
  if (!good || (spec.end >= 0 && spec.end <= spec.begin))
    return {MT_INVALID, "expected range=BEGIN:END with BEGIN < END, found \"range=" + std::string(value) + "\""};
  return {};
}

// "3:2.5+7:0.5"
static bool parseClassWeights(std::string_view value, std::vector<std::pair<int64_t, float>> &weights) {
  while (true) {
    size_t plus = value.find('+');
    std::string_view item = value.substr(0, plus);
    size_t colon = item.find(':');
    int64_t label = 0;
    if (colon == std::string_view::npos || !parseNumber(item.substr(0, colon), label) || label > 255)
      return false;
    float weight = 0;
    std::string_view number = item.substr(colon + 1);
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
    if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(weight) || weight < 0)
      return false;
    weights.emplace_back(label, weight);
    if (plus == std::string_view::npos)
      return true;
    value.remove_prefix(plus + 1);
  }
}

static Status parseKey(std::string_view key, std::string_view value, DataSpec &spec) {
  std::string found = "found \"" + std::string(key) + "=" + std::string(value) + "\"";
  if (key == "split") {
    if (value != "train" && value != "test")
      return {MT_INVALID, "expected split=train or split=test, " + found};
    spec.test = value == "test";
    return {};
  }
  if (key == "range")
    return parseRange(value, spec);
  if (key == "scale") {
    if (value != "1" && value != "1/255")
      return {MT_INVALID, "expected scale=1 or scale=1/255, " + found};
    spec.scale = value != "1";
    return {};
  }
  if (key == "classes") {
    int64_t classes = 0;
    if (!parseNumber(value, classes) || classes < 1)
      return {MT_INVALID, "expected classes=N with N >= 1, " + found};
    spec.classes = classes;
    return {};
  }
  if (key == "class-weight") {
    if (!parseClassWeights(value, spec.classWeights))
      return {MT_INVALID, "expected class-weight=CLASS:WEIGHT[+CLASS:WEIGHT...], " + found};
    return {};
  }
  return {MT_INVALID, "expected split=, range=, scale=, classes= or class-weight=, " + found};
}

Status parseDataSpec(const std::string &text, DataSpec &spec) {
  constexpr std::string_view form = "mnist:DIR[,split=train|test][,range=BEGIN:END][,scale=1]";
  spec = {};
  std::string_view rest = text;
  if (!rest.starts_with("mnist:"))
    return {MT_INVALID, "data: expected \"" + std::string(form) + "\", found \"" + text + "\""};
  rest.remove_prefix(6);
  size_t comma = rest.find(',');
  spec.folder = rest.substr(0, comma);
  if (spec.folder.empty())
    return {MT_INVALID, "data: expected a folder after \"mnist:\", found \"" + text + "\""};
  while (comma != std::string_view::npos) {
    rest.remove_prefix(comma + 1);
    comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return {MT_INVALID, "data: expected key=value, found \"" + std::string(item) + "\" in \"" + text + "\""};
    if (Status s = parseKey(item.substr(0, equals), item.substr(equals + 1), spec); !s.ok())
      return std::move(s).in("data: ");
  }
  return {};
}

} // namespace mtrun
