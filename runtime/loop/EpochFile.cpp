// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/EpochFile.h"
#include "runtime/checkpoint/Variables.h"
#include "runtime/loop/Best.h"
#include "runtime/loop/Loop.h"
#include "runtime/session/Export.h"
#include "runtime/support/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace mtrun {

namespace {

// A field between braces: NAME, NAME:04d, NAME:.2f.
struct Braces {
  std::string name;
  int digits = -1; // digits after the point, or the width of the epoch
  bool valid = true;
};

} // namespace

static Braces parseField(const std::string &text, bool &epoch) {
  size_t colon = text.find(':');
  Braces field = {text.substr(0, colon), -1, true};
  epoch = field.name == "epoch";
  if (colon == std::string::npos)
    return field;
  std::string format = text.substr(colon + 1);
  char first = epoch ? '0' : '.', last = epoch ? 'd' : 'f';
  field.valid = format.size() == 3 && format[0] == first && format[2] == last && format[1] >= '0' && format[1] <= '9';
  field.digits = field.valid ? format[1] - '0' : -1;
  return field;
}

static std::string number(int64_t epoch, int digits) {
  char text[40];
  snprintf(text, sizeof text, "%0*lld", std::max(digits, 1), static_cast<long long>(epoch));
  return text;
}

static std::string number(double value, int digits) {
  char text[400]; // room for the longest double and nine digits
  auto end = digits < 0 ? std::to_chars(text, text + sizeof text, value)
                        : std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return std::string(text, end.ptr);
}

Status EpochFile::open(Session &session, const std::string &pattern, const std::vector<const char *> &names,
                       bool weightsOnly) {
  session_ = &session;
  pattern_ = pattern;
  weightsOnly_ = weightsOnly;
  names_.assign(names.begin(), names.end());
  std::string known = "epoch";
  for (const std::string &name : names_)
    known += ", " + name;
  for (size_t at = 0; (at = pattern.find('{', at)) != std::string::npos;) {
    size_t end = pattern.find('}', at);
    if (end == std::string::npos)
      return {MT_INVALID, "expected a } for every { of " + pattern + ", found none"};
    bool epoch = false;
    Braces field = parseField(pattern.substr(at + 1, end - at - 1), epoch);
    if (!field.valid || (!epoch && std::find(names_.begin(), names_.end(), field.name) == names_.end()))
      return {MT_INVALID, "expected one of " + known + " between braces, as {epoch:02d} or {" +
                              (names_.empty() ? "loss" : names_[0]) + ":.2f}, found " +
                              pattern.substr(at, end - at + 1)};
    at = end + 1;
  }
  if (weightsOnly && !pattern.ends_with(".safetensors") && !pattern.ends_with(".weights.h5"))
    return {MT_INVALID,
            "weights alone are written as .safetensors or .weights.h5, a model with all that training needs "
            "as .keras: expected a name that ends with one of the first two, found " +
                pattern};
  return checkSave(session.plan(), pattern);
}

std::string EpochFile::path(int64_t epoch, std::span<const double> values) const {
  std::string path;
  for (size_t at = 0; at < pattern_.size();) {
    if (pattern_[at] != '{') {
      path += pattern_[at++];
      continue;
    }
    size_t end = pattern_.find('}', at);
    bool isEpoch = false;
    Braces field = parseField(pattern_.substr(at + 1, end - at - 1), isEpoch);
    auto index = static_cast<size_t>(std::find(names_.begin(), names_.end(), field.name) - names_.begin());
    path += isEpoch ? number(epoch, field.digits) : number(values[index], field.digits);
    at = end + 1;
  }
  return path;
}

// Writes only the model's variables.
static Status writeWeights(const Session &session, const std::string &path) {
  std::vector<SafeTensor> tensors;
  // copies, because the bytes from a device are valid only until the next variable is read
  std::vector<std::vector<std::byte>> values;
  for (uint32_t index : modelVariables(session)) {
    const auto &variable = *session.plan().tables().variables()->Get(index);
    std::span<const std::byte> bytes = session.variable(index);
    values.emplace_back(bytes.begin(), bytes.end());
    std::vector<int64_t> shape;
    if (variable.shape())
      shape.assign(variable.shape()->begin(), variable.shape()->end());
    tensors.push_back(
        {variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), std::move(shape), values.back()});
  }
  if (const Status &health = session.health(); !health.ok())
    return health;
  return writeSafetensors(path, std::move(tensors));
}

Status EpochFile::write(int64_t epoch, std::span<const double> values) const {
  std::string name = path(epoch, values);
  if (weightsOnly_ && name.ends_with(".safetensors"))
    return writeWeights(*session_, name);
  return saveVariables(*session_, name);
}

} // namespace mtrun
