// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Spec.h"
#include "runtime/data/SourceKind.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace mtrun {

static bool parseNumber(std::string_view text, int64_t &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

static bool parseReal(std::string_view text, double &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

// Parses "0.5" or "1/255".
static bool parseScale(std::string_view text, double &scale, double &divisor) {
  size_t slash = text.find('/');
  divisor = 1;
  if (!parseReal(text.substr(0, slash), scale))
    return false;
  if (slash != std::string_view::npos && (!parseReal(text.substr(slash + 1), divisor) || divisor == 0))
    return false;
  return true;
}

// Parses "0.5" or "0.485:0.456:0.406".
static bool parseList(std::string_view text, std::vector<double> &list) {
  list.clear();
  while (true) {
    size_t colon = text.find(':');
    list.emplace_back();
    if (!parseReal(text.substr(0, colon), list.back()))
      return false;
    if (colon == std::string_view::npos)
      return true;
    text.remove_prefix(colon + 1);
  }
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

// Parses "3:2.5+7:0.5".
static bool parseClassWeights(std::string_view value, std::vector<std::pair<int64_t, float>> &weights) {
  while (true) {
    size_t plus = value.find('+');
    std::string_view item = value.substr(0, plus);
    size_t colon = item.find(':');
    int64_t label = 0;
    if (colon == std::string_view::npos || !parseNumber(item.substr(0, colon), label))
      return false;
    double weight = 0;
    if (!parseReal(item.substr(colon + 1), weight) || weight < 0 || !std::isfinite(static_cast<float>(weight)))
      return false;
    weights.emplace_back(label, static_cast<float>(weight));
    if (plus == std::string_view::npos)
      return true;
    value.remove_prefix(plus + 1);
  }
}

// Sets the scaling of a mode of keras.applications' preprocess_input.
static bool preprocess(std::string_view mode, DataSpec &spec) {
  if (mode == "tf") {
    spec.scale = 1;
    spec.divisor = 127.5;
    spec.mean = {1};
    return true;
  }
  if (mode == "torch") {
    spec.scale = 1;
    spec.divisor = 255;
    spec.mean = {0.485, 0.456, 0.406};
    spec.deviation = {0.229, 0.224, 0.225};
    return true;
  }
  if (mode == "caffe") {
    spec.scale = 1;
    spec.mean = {103.939, 116.779, 123.68}; // blue, green, red
    spec.reversed = true;
    return true;
  }
  return false;
}

static Status parseScaling(std::string_view key, std::string_view value, DataSpec &spec, const std::string &found,
                           bool &known) {
  known = true;
  if (key == "scale") {
    spec.scaled = true;
    double scale = 0;
    if (!parseScale(value, scale, spec.divisor))
      return {MT_INVALID, "expected scale=X or scale=A/B, " + found};
    spec.scale = scale;
    return {};
  }
  if (key == "mean" || key == "std") {
    spec.scaled = true;
    std::vector<double> &list = key == "mean" ? spec.mean : spec.deviation;
    if (!parseList(value, list) || (key == "std" && std::find(list.begin(), list.end(), 0.0) != list.end()))
      return {MT_INVALID, "expected " + std::string(key) + "=X, or a number per channel as X:Y:Z, " +
                              (key == "std" ? "none of them 0, " : "") + found};
    return {};
  }
  spec.scaled |= key == "preprocess";
  if (key == "preprocess")
    return preprocess(value, spec)
               ? Status()
               : Status(MT_INVALID, "expected preprocess=caffe, preprocess=torch or preprocess=tf, " + found +
                                        didYouMean(value, {"caffe", "torch", "tf"}));
  known = false;
  return {};
}

static bool parseSide(std::string_view text, uint32_t &side, int64_t least) {
  int64_t value = 0;
  if (!parseNumber(text, value) || value < least || value > 65500)
    return false;
  side = static_cast<uint32_t>(value);
  return true;
}

// Parses "yes" or "no".
static Status parseFlag(std::string_view key, std::string_view value, bool &flag, const std::string &found) {
  flag = value == "yes";
  std::string name(key);
  return flag || value == "no" ? Status()
                               : Status(MT_INVALID, "expected " + name + "=yes or " + name + "=no, " + found);
}

// Finds `value` in `words`.
template <size_t N> static bool parseWord(std::string_view value, const std::string_view (&words)[N], size_t &index) {
  index = static_cast<size_t>(std::find(words, words + N, value) - words);
  return index < N;
}

// Parses the keys for pictures.
static Status parsePictures(std::string_view key, std::string_view value, DataSpec &spec, const std::string &found,
                            bool &known) {
  known = true;
  size_t index = 0;
  if (key == "size") {
    size_t times = value.find('x');
    return times != std::string_view::npos && parseSide(value.substr(0, times), spec.height, 1) &&
                   parseSide(value.substr(times + 1), spec.width, 1)
               ? Status()
               : Status(MT_INVALID, "expected size=HxW with sides of 1 to 65500, " + found);
  }
  if (key == "crop")
    return parseSide(value, spec.crop, 0) ? Status()
                                          : Status(MT_INVALID, "expected crop=P of 0 to 65500 pixels, " + found);
  if (key == "flip") {
    if (!parseWord(value, {"horizontal", "vertical", "both"}, index))
      return {MT_INVALID, "expected flip=horizontal, flip=vertical or flip=both, " + found +
                              didYouMean(value, {"horizontal", "vertical", "both"})};
    spec.flipAcross = index != 1;
    spec.flipDown = index != 0;
    return {};
  }
  if (key == "check") {
    if (!parseWord(value, {"quick", "full", "none"}, index))
      return {MT_INVALID, "expected check=quick, check=full or check=none, " + found +
                              didYouMean(value, {"quick", "full", "none"})};
    spec.check = static_cast<DataSpec::Check>(index);
    return {};
  }
  if (key == "upright")
    return parseFlag(key, value, spec.upright, found);
  if (key == "cache") {
    spec.cache = value;
    return !value.empty() ? Status() : Status(MT_INVALID, "expected cache=memory or cache=FILE, " + found);
  }
  if (key == "threads")
    return parseNumber(value, spec.threads) && spec.threads >= 1 && spec.threads <= 256
               ? Status()
               : Status(MT_INVALID, "expected threads=N of 1 to 256, " + found);
  known = false;
  return {};
}

static Status parseRaw(std::string_view value, DataSpec &spec, const std::string &found) {
  for (Stored type : {Stored::U8, Stored::I8, Stored::U16, Stored::I16, Stored::I32, Stored::U32, Stored::I64,
                      Stored::F32, Stored::F64})
    if (value == storedName(type))
      return spec.raw = type, Status();
  return {MT_INVALID, "expected raw= one of u8, i8, u16, i16, i32, u32, i64, f32 and f64, " + found};
}

std::string *ColumnKeys::find(std::string_view key) {
  for (auto [name, value] : {std::pair("standardize", &standardize),
                             {"categories", &categories},
                             {"hash", &hash},
                             {"buckets", &buckets},
                             {"quantiles", &quantiles},
                             {"dates", &dates},
                             {"index", &index},
                             {"missing", &missing}})
    if (key == name)
      return value;
  return nullptr;
}

bool ColumnKeys::any() const {
  for (const std::string *value : {&standardize, &categories, &hash, &buckets, &quantiles, &dates, &index, &missing})
    if (!value->empty())
      return true;
  return false;
}

// Parses keys that only some kinds accept; SourceKind::keys lists them.
static Status parseOwnKey(std::string_view key, std::string_view value, DataSpec &spec, const std::string &found) {
  bool known = false;
  if (Status s = parsePictures(key, value, spec, found, known); !s.ok() || known)
    return s;
  if (key == "raw")
    return parseRaw(value, spec, found);
  if (key == "split") {
    spec.test = value == "test";
    return spec.test || value == "train" ? Status()
                                         : Status(MT_INVALID, "expected split=train or split=test, " + found +
                                                                  didYouMean(value, {"train", "test"}));
  }
  if (key == "length" || key == "stride") {
    int64_t &number = key == "length" ? spec.length : spec.stride;
    return parseNumber(value, number) && number > 0
               ? Status()
               : Status(MT_INVALID, "expected " + std::string(key == "length" ? "length=T with T" : "stride=N with N") +
                                        " >= 1, " + found);
  }
  if (key == "header")
    return parseFlag(key, value, spec.header.emplace(), found);
  if (std::string *column = spec.columns.find(key)) {
    *column = value;
    return !value.empty() ? Status() : Status(MT_INVALID, "expected a value, " + found);
  }
  (key == "x" ? spec.input : key == "skip" ? spec.skip : spec.target) = value; // y, label
  return {};
}

constexpr std::string_view commonKeys = "range=, classes=, class-weight=, scale=, mean=, std=";

// Returns the error for an unknown key, with the nearest known key, including keys that the message does not list.
static Status unknownKey(std::string_view key, const DataSpec &spec, const std::string &found) {
  std::string own(spec.source ? spec.source->keys : ""), all = own + (own.empty() ? "" : ", ");
  all += commonKeys;
  std::vector<std::string> known = {"preprocess", "strict", "nan", "ids", "damaged", "group"};
  for (size_t at = 0; at < all.size(); at = all.find('=', at) + 3) // "=, "
    known.push_back(all.substr(at, all.find('=', at) - at));
  return {MT_INVALID, "expected " + all + " or preprocess=, " + found + didYouMean(key, known)};
}

static Status parseKey(std::string_view key, std::string_view value, DataSpec &spec) {
  std::string found = "found \"" + std::string(key) + "=" + std::string(value) + "\"";
  bool known = false;
  if (Status s = parseScaling(key, value, spec, found, known); !s.ok() || known)
    return s;
  if (key == "strict") // accepted by every source, so that a command can set it
    return parseFlag(key, value, spec.strict, found);
  if (key == "nan" || key == "ids" || key == "damaged") {
    std::string_view words[] = {key == "damaged" ? "skip"
                                : key == "nan"   ? "no"
                                                 : "checked",
                                key == "damaged" ? "keep"
                                : key == "nan"   ? "yes"
                                                 : "unchecked"};
    (key == "nan" ? spec.allowNan : key == "ids" ? spec.uncheckedIds : spec.keepDamaged) = value == words[1];
    std::string name(key);
    return value == words[0] || value == words[1]
               ? Status()
               : Status(MT_INVALID, "expected " + name + "=" + std::string(words[0]) + " or " + name + "=" +
                                        std::string(words[1]) + ", " + found);
  }
  if (key == "group") {
    spec.groupByLength = value == "length";
    return spec.groupByLength ? Status() : Status(MT_INVALID, "expected group=length, " + found);
  }
  if (key == "range")
    return parseRange(value, spec);
  if (key == "classes") {
    int64_t classes = 0;
    if (value == "any")
      return spec.anyLabel = true, Status();
    if (!parseNumber(value, classes) || classes < 1)
      return {MT_INVALID, "expected classes=any, or classes=N with N >= 1, " + found};
    spec.classes = classes;
    return {};
  }
  if (key == "class-weight")
    return parseClassWeights(value, spec.classWeights)
               ? Status()
               : Status(MT_INVALID, "expected class-weight=CLASS:WEIGHT[+CLASS:WEIGHT...], " + found);
  if (spec.source && spec.source->takes(key))
    return parseOwnKey(key, value, spec, found);
  return unknownKey(key, spec, found);
}

namespace {

// A part of a specification: KEY=VALUE, or a path with an empty key.
struct Part {
  std::string key, value;
};

} // namespace

// Reads a quoted value; `rest` is after the opening quote, and then after the closing quote.
static bool unquote(std::string_view &rest, std::string &value) {
  for (;;) {
    size_t end = rest.find('"');
    if (end == std::string_view::npos)
      return false;
    value += rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (!rest.starts_with('"'))
      return true;
    value += '"';
    rest.remove_prefix(1);
  }
}

// Removes the first part from `rest`. `more`: another part follows. `keyed`: an equals sign ends a key.
static Status takePart(std::string_view &rest, bool keyed, Part &part, bool &more) {
  part = {};
  std::string_view whole = rest;
  size_t stop = rest.find_first_of(keyed ? ",=" : ",");
  if (stop != std::string_view::npos && rest[stop] == '=') {
    part.key = rest.substr(0, stop);
    rest.remove_prefix(stop + 1);
  }
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    if (!unquote(rest, part.value))
      return {MT_INVALID, "expected a closing quote, found \"" + std::string(whole) + "\""};
    if (!rest.empty() && rest[0] != ',')
      return {MT_INVALID, "expected a comma after the closing quote, found \"" + std::string(rest) + "\""};
  } else {
    size_t comma = std::min(rest.find(','), rest.size());
    part.value = rest.substr(0, comma);
    rest.remove_prefix(comma);
  }
  more = !rest.empty();
  rest.remove_prefix(more);
  return {};
}

// Returns the error for an unknown kind. A path without a kind gets a suggestion by its extension: "digits.csv".
static Status unknownKind(const std::string &text, bool named) {
  std::string kinds, meant;
  std::vector<std::string> known;
  for (const SourceKind *kind : sourceKinds()) {
    std::string name(kind->name);
    kinds += (kinds.empty() ? "" : kind == sourceKinds().back() ? " or " : ", ") + name + ":";
    known.push_back(name + ":");
    if (!named && text.ends_with("." + name))
      meant = "; did you mean " + name + ":" + text + "?";
  }
  if (named)
    meant = didYouMean(text.substr(0, text.find(':') + 1), known);
  return {MT_INVALID, "data: expected " + kinds + " and a path, found \"" + text + "\"" + meant};
}

Status parseDataSpec(const std::string &text, DataSpec &spec) {
  spec = {};
  spec.text = text;
  size_t colon = text.find(':');
  spec.kind = text.substr(0, colon);
  spec.source = findSourceKind(spec.kind);
  if (colon == std::string::npos || !spec.source)
    return unknownKind(text, colon != std::string::npos);
  std::string_view rest = std::string_view(text).substr(colon + 1);
  for (bool more = true; more;) {
    Part part;
    if (Status s = takePart(rest, !spec.paths.empty(), part, more); !s.ok())
      return std::move(s).in("data: ");
    if (!part.key.empty()) {
      if (Status s = parseKey(part.key, part.value, spec); !s.ok())
        return std::move(s).in("data: ");
    } else if (spec.paths.size() == spec.source->paths) {
      return {MT_INVALID, "data: expected key=value, found \"" + part.value + "\" in \"" + text +
                              "\"; a path that has a comma is written in double quotes"};
    } else if (part.value.empty()) {
      return {MT_INVALID, "data: expected a path after \"" + spec.kind + ":\", found \"" + text + "\""};
    } else {
      spec.paths.push_back(std::move(part.value));
    }
  }
  if (spec.source->divides && !spec.scale) {
    spec.scale = 1;
    spec.divisor = 255;
    spec.byDefault = !spec.scaled;
  }
  return {};
}

Status parseDataKeys(const std::string &text, DataSpec &spec) {
  std::string_view rest = text;
  for (bool more = !text.empty(); more;) {
    Part part;
    if (Status s = takePart(rest, true, part, more); !s.ok())
      return std::move(s).in("data: ");
    if (part.key.empty())
      return {MT_INVALID, "data: expected key=value, found \"" + part.value + "\" in \"" + text + "\""};
    if (Status s = parseKey(part.key, part.value, spec); !s.ok())
      return std::move(s).in("data: ");
  }
  return {};
}

} // namespace mtrun
