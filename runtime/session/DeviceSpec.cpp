// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DeviceSpec.h"

#include <charconv>

namespace mtrun {
namespace {

constexpr int maxThreads = 1024;

// A whole number from 1 that is all of `text`.
bool parseCount(std::string_view text, int &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1;
}

} // namespace

Status parseDeviceSpec(std::string_view text, DeviceSpec &spec) {
  spec = {};
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  bool good = kind == "cpu" || kind == "null";
  if (good && colon != std::string_view::npos) {
    std::string_view counts = text.substr(colon + 1);
    size_t times = counts.find('x');
    good = parseCount(counts.substr(0, times), spec.devices) &&
           (times == std::string_view::npos || parseCount(counts.substr(times + 1), spec.threads));
  }
  if (!good)
    return {MT_INVALID, "expected devices as cpu, cpu:N, cpu:NxT or null:N, found " + std::string(text)};
  if (spec.devices > maxThreads || spec.threads > maxThreads / spec.devices)
    return {MT_INVALID,
            "expected at most " + std::to_string(maxThreads) + " threads in all, found " + std::string(text)};
  spec.kind = kind;
  return {};
}

} // namespace mtrun
