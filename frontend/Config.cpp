// SPDX-License-Identifier: Apache-2.0
#include "frontend/Config.h"

#include "runtime/support/suggest.h"

#include <cmath>

namespace mtc {

using llvm::StringRef;

static constexpr unsigned maxJsonDepth = 200;

static std::string placeOf(StringRef text, size_t at) {
  StringRef before = text.take_front(at);
  size_t newline = before.rfind('\n');
  size_t column = at - (newline == StringRef::npos ? 0 : newline + 1) + 1;
  return "line " + std::to_string(before.count('\n') + 1) + ", column " + std::to_string(column);
}

// Brackets nested too deep, outside strings; npos if none.
static size_t findTooDeep(StringRef text) {
  unsigned depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '[') && ++depth > maxJsonDepth)
      return i;
    else if (!quoted && (c == '}' || c == ']') && depth)
      --depth;
  }
  return StringRef::npos;
}

std::string parseJson(StringRef text, Json &value) {
  if (size_t at = findTooDeep(text); at != StringRef::npos)
    return placeOf(text, at) + ": expected brackets nested at most " + std::to_string(maxJsonDepth) +
           " deep, found more";
  try {
    value = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error &error) {
    size_t at = std::min(error.byte ? error.byte - 1 : 0, text.size());
    // Python writes these for numbers of constants; a word begins at most two characters before what the parser stops
    // at.
    StringRef word = text.substr(at > 1 ? at - 2 : 0, 12);
    if (word.contains("Infinity") || word.contains("NaN"))
      return placeOf(text, at) +
             ": expected finite numbers, found NaN or Infinity, as of a mask of -inf: use -1e9 in its place";
    return placeOf(text, at) + ": expected JSON, found " +
           (at == text.size() ? "the end of the text" : "a mistake in it");
  } catch (const Json::exception &) {
    return "expected JSON, found a number or a text that is none";
  }
  return {};
}

std::string describe(const Json &value) {
  constexpr size_t longest = 60;
  if (value.is_object()) {
    std::string name = textMember(value, "class_name");
    return name.empty() ? "an object" : "a " + name;
  }
  if (value.is_array())
    return "a list of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

const Json *member(const Json &value, StringRef key) {
  if (!value.is_object())
    return nullptr;
  auto found = value.find(key.str());
  return found == value.end() ? nullptr : &*found;
}

std::string textMember(const Json &value, StringRef key) {
  const Json *found = member(value, key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

Config::Config(const Json &value, Sink error) : object(&value), sink(std::move(error)) {
  static const Json empty = Json::object();
  if (!value.is_object()) {
    this->error("expected a config, found " + describe(value));
    object = &empty;
  }
}

void Config::error(const std::string &message) {
  ++errors;
  sink(message);
}

const Json *Config::find(StringRef key) {
  seen.insert(key.str());
  const Json *found = member(*object, key);
  return found && !found->is_null() ? found : nullptr;
}

int64_t Config::integer(StringRef key, std::optional<int64_t> fallback) {
  const Json *value = find(key);
  if (value && value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX))
    return value->get<int64_t>();
  if (value || !fallback)
    error("expected " + key.str() + " to be an integer, found " + (value ? describe(*value) : "none"));
  return fallback.value_or(1);
}

double Config::real(StringRef key, std::optional<double> fallback) {
  const Json *value = find(key);
  if (value && value->is_number() && std::isfinite(value->get<double>()))
    return value->get<double>();
  if (value || !fallback)
    error("expected " + key.str() + " to be a number, found " + (value ? describe(*value) : "none"));
  return fallback.value_or(1);
}

bool Config::boolean(StringRef key, std::optional<bool> fallback) {
  const Json *value = find(key);
  if (value && value->is_boolean())
    return value->get<bool>();
  if (value || !fallback)
    error("expected " + key.str() + " to be true or false, found " + (value ? describe(*value) : "none"));
  return fallback.value_or(false);
}

std::string Config::text(StringRef key, std::optional<std::string> fallback) {
  const Json *value = find(key);
  if (value && value->is_string())
    return value->get<std::string>();
  if (value || !fallback)
    error("expected " + key.str() + " to be text, found " + (value ? describe(*value) : "none"));
  return fallback.value_or("");
}

llvm::SmallVector<int64_t> Config::integers(StringRef key, int64_t count) {
  const Json *value = find(key);
  llvm::SmallVector<int64_t> result;
  auto isSize = [](const Json &item) {
    return item.is_number_integer() && (!item.is_number_unsigned() || item.get<uint64_t>() <= INT64_MAX);
  };
  if (value && isSize(*value) && count > 0)
    result.assign(static_cast<size_t>(count), value->get<int64_t>());
  else if (value && value->is_array() && (count < 0 || value->size() == static_cast<size_t>(count)) &&
           std::all_of(value->begin(), value->end(), isSize))
    for (const Json &item : *value)
      result.push_back(item.get<int64_t>());
  else {
    error("expected " + key.str() + " to be " +
          (count < 0 ? "a list of integers" : std::to_string(count) + " integers") + ", found " +
          (value ? describe(*value) : "none"));
    result.assign(static_cast<size_t>(std::max<int64_t>(count, 1)), 1);
  }
  return result;
}

void Config::ignore(llvm::ArrayRef<StringRef> keys) {
  for (StringRef key : keys)
    seen.insert(key.str());
}

// What does nearly the same as an option that is not supported, for its message.
static std::string insteadOf(StringRef key) {
  if (key.consume_back("_constraint"))
    return ": " + key.str() + "_regularizer keeps values small too";
  if (key == "gradient_accumulation_steps")
    return ": give all samples of an update as one batch (--batch), which --micro-batches computes in parts";
  return "";
}

void Config::expectAbsent(llvm::ArrayRef<StringRef> keys) {
  for (StringRef key : keys)
    if (const Json *value = find(key))
      error("expected no " + key.str() + ", found " + describe(*value) + ", which is not supported" + insteadOf(key));
}

void Config::expect(StringRef key, const Json &wanted) {
  const Json *value = find(key);
  if (value && *value != wanted)
    error("expected " + key.str() + " to be " + describe(wanted) + ", found " + describe(*value) +
          ", which is not supported");
}

void Config::finish() {
  for (const auto &[key, value] : object->items())
    if (!seen.count(key) && !value.is_null())
      error("expected only options that are supported, found " + key + " = " + describe(value) +
            mtrun::didYouMean(key, {seen.begin(), seen.end()}));
}

} // namespace mtc
