// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/column_rules.h"
#include "runtime/support/json_text.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace mtrun {
namespace {

constexpr const char *kindNames[] = {"number", "date", "category", "hash", "buckets"};
constexpr const char *format = "mtc columns 1";

// Reads the members of one column; each may occur for some kinds only.
class Members {
public:
  Members(const nlohmann::json &object, ColumnRule &rule) : object_(object), rule_(rule) {}
  Status read();

private:
  Status number(const char *key, double &value) const;
  Status texts();
  Status bounds();
  Status fault(const std::string &problem) const {
    return {MT_INVALID, "column \"" + printable(rule_.name) + "\": " + problem};
  }

  const nlohmann::json &object_;
  ColumnRule &rule_;
};

} // namespace

const char *columnKindName(ColumnKind kind) { return kindNames[static_cast<int>(kind)]; }

uint64_t ColumnRule::choices() const {
  switch (kind) {
  case ColumnKind::Category:
    return values.size() + 1;
  case ColumnKind::Hash:
    return static_cast<uint64_t>(bins);
  case ColumnKind::Buckets:
    return bounds.size() + 1;
  case ColumnKind::Number:
  case ColumnKind::Date:
    return 0;
  }
  return 0;
}

uint64_t ColumnRules::width() const {
  uint64_t width = 0;
  for (const ColumnRule &rule : inputs)
    width += rule.width();
  return width;
}

Status Members::number(const char *key, double &value) const {
  auto found = object_.find(key);
  if (found == object_.end())
    return {};
  if (!found->is_number() || !std::isfinite(found->get<double>()))
    return fault(std::string("expected \"") + key + "\" to be a finite number");
  value = found->get<double>();
  return {};
}

Status Members::texts() {
  auto found = object_.find("values");
  if (found == object_.end() || !found->is_array() || found->size() > maxCategories)
    return fault("expected \"values\", a list of at most " + std::to_string(maxCategories) + " texts");
  std::set<std::string_view> seen;
  for (const nlohmann::json &value : *found) {
    if (!value.is_string())
      return fault("expected \"values\" of texts, found another type");
    if (!seen.insert(value.get_ref<const std::string &>()).second)
      return fault("expected categories that differ, found a second \"" + printable(value.get<std::string>()) + "\"");
    rule_.values.push_back(value.get<std::string>());
  }
  return {};
}

Status Members::bounds() {
  auto found = object_.find("bounds");
  if (found == object_.end() || !found->is_array() || found->empty() || found->size() > maxCategories)
    return fault("expected \"bounds\", a list of 1 to " + std::to_string(maxCategories) + " numbers");
  for (const nlohmann::json &bound : *found) {
    double value = bound.is_number() ? bound.get<double>() : NAN;
    if (!std::isfinite(value) || (!rule_.bounds.empty() && value <= rule_.bounds.back()))
      return fault("expected \"bounds\" to be ascending finite numbers");
    rule_.bounds.push_back(value);
  }
  return {};
}

Status Members::read() {
  auto name = object_.find("name"), kind = object_.find("kind");
  if (name == object_.end() || !name->is_string() || kind == object_.end() || !kind->is_string())
    return {MT_INVALID, "expected each column to have the texts \"name\" and \"kind\""};
  rule_.name = name->get<std::string>();
  auto found = std::find(std::begin(kindNames), std::end(kindNames), kind->get<std::string>());
  if (found == std::end(kindNames))
    return fault("expected a kind of number, date, category, hash or buckets, found \"" +
                 printable(kind->get<std::string>()) + "\"");
  rule_.kind = static_cast<ColumnKind>(found - std::begin(kindNames));
  if (rule_.kind == ColumnKind::Number || rule_.kind == ColumnKind::Date) {
    if (Status s = number("mean", rule_.mean); !s.ok())
      return s;
    if (Status s = number("deviation", rule_.deviation); !s.ok())
      return s;
    if (!(rule_.deviation > 0))
      return fault("expected a \"deviation\" above 0");
  }
  if (object_.contains("missing"))
    if (Status s = number("missing", rule_.missing.emplace()); !s.ok())
      return s;
  for (auto [key, flag] : {std::pair("index", &rule_.index), {"empty", &rule_.emptyIsCategory}})
    if (auto at = object_.find(key); at != object_.end()) {
      if (!at->is_boolean())
        return fault(std::string("expected \"") + key + "\" to be true or false");
      *flag = at->get<bool>();
    }
  if (rule_.kind == ColumnKind::Hash) {
    auto bins = object_.find("bins");
    if (bins == object_.end() || !bins->is_number_integer() || bins->get<int64_t>() < 1 ||
        bins->get<int64_t>() > static_cast<int64_t>(maxChoices))
      return fault("expected \"bins\" of 1 to " + std::to_string(maxChoices));
    rule_.bins = bins->get<int64_t>();
  }
  if (rule_.kind == ColumnKind::Category)
    return texts();
  return rule_.kind == ColumnKind::Buckets ? bounds() : Status();
}

Status parseColumnRules(std::string_view text, ColumnRules &rules) {
  rules = {};
  if (text.size() > maxColumnRulesBytes)
    return {MT_INVALID,
            "expected at most " + std::to_string(maxColumnRulesBytes) + " bytes, found " + std::to_string(text.size())};
  // A few levels are enough; deeper ones would only cost stack.
  bool deep = false;
  auto shallow = [&deep](int depth, nlohmann::json::parse_event_t, nlohmann::json &) { return !(deep |= depth > 4); };
  nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  auto member = [&](const char *key) { return json.is_object() && json.contains(key) ? json[key] : nlohmann::json(); };
  if (deep || member("format") != format)
    return {MT_INVALID, std::string("expected a columns file of the format \"") + format +
                            "\", which mtrun data --save-columns writes"};
  nlohmann::json inputs = member("inputs"), targets = member("targets");
  if (!inputs.is_array() || inputs.empty() || (!targets.is_null() && !targets.is_array()))
    return {MT_INVALID, "expected \"inputs\" and \"targets\", lists of columns"};
  std::set<std::string> names;
  auto isNew = [&](const std::string &name) {
    return isUtf8(name) && names.insert(name).second
               ? Status()
               : Status(MT_INVALID,
                        "expected names of columns in UTF-8 that differ, found \"" + printable(name) + "\"");
  };
  for (const nlohmann::json &object : inputs) {
    if (!object.is_object())
      return {MT_INVALID, "expected \"inputs\" to be a list of objects"};
    if (Status s = Members(object, rules.inputs.emplace_back()).read(); !s.ok())
      return s;
    if (Status s = isNew(rules.inputs.back().name); !s.ok())
      return s;
    if (rules.width() > maxChoices)
      return {MT_INVALID, "expected at most " + std::to_string(maxChoices) + " numbers of a sample, found more"};
  }
  for (const nlohmann::json &target : targets) {
    if (!target.is_string())
      return {MT_INVALID, "expected \"targets\" to be a list of names"};
    if (Status s = isNew(rules.targets.emplace_back(target.get<std::string>())); !s.ok())
      return s;
  }
  return {};
}

// Returns a list of JSON, with an item of `values` as `text` writes it.
template <typename Values, typename Text> static std::string listText(const Values &values, Text text) {
  std::string list;
  for (const auto &value : values)
    list += (list.empty() ? "" : ", ") + text(value);
  return "[" + list + "]";
}

static std::string ruleText(const ColumnRule &rule) {
  std::string text = "{\"name\": " + jsonString(rule.name) + ", \"kind\": " + jsonString(columnKindName(rule.kind));
  if (rule.mean != 0 || rule.deviation != 1)
    text += ", \"mean\": " + jsonNumber(rule.mean) + ", \"deviation\": " + jsonNumber(rule.deviation);
  if (rule.missing)
    text += ", \"missing\": " + jsonNumber(*rule.missing);
  if (rule.emptyIsCategory)
    text += ", \"empty\": true";
  if (rule.index)
    text += ", \"index\": true";
  if (rule.kind == ColumnKind::Category)
    text += ", \"values\": " + listText(rule.values, jsonString);
  if (rule.kind == ColumnKind::Buckets)
    text += ", \"bounds\": " + listText(rule.bounds, jsonNumber);
  if (rule.kind == ColumnKind::Hash)
    text += ", \"bins\": " + std::to_string(rule.bins);
  return text + "}";
}

std::string columnRulesText(const ColumnRules &rules) {
  std::string inputs;
  for (const ColumnRule &rule : rules.inputs)
    inputs += (inputs.empty() ? "  " : ",\n  ") + ruleText(rule);
  return "{\"format\": " + jsonString(format) + ",\n \"inputs\": [\n" + inputs +
         "],\n \"targets\": " + listText(rules.targets, jsonString) + "}\n";
}

} // namespace mtrun
