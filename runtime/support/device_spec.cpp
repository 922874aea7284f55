// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/device_spec.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace mtrun {
namespace {

constexpr int maxThreads = 1024;

// Parses all of `text` as a whole number that is at least `least`.
bool parseWhole(std::string_view text, int least, int &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least;
}

// Parses A, A-B, A*K or A-B*K.
bool parseGpus(std::string_view text, std::vector<int> &gpus) {
  size_t times = text.find('*');
  int copies = 1, first = 0, last = 0;
  if (times != std::string_view::npos && !parseWhole(text.substr(times + 1), 1, copies))
    return false;
  std::string_view range = text.substr(0, times);
  size_t dash = range.find('-');
  if (!parseWhole(range.substr(0, dash), 0, first))
    return false;
  last = first;
  if (dash != std::string_view::npos && !parseWhole(range.substr(dash + 1), first, last))
    return false;
  if (last - first >= maxThreads || copies > maxThreads || gpus.size() > maxThreads)
    return false;
  for (int gpu = first; gpu <= last; ++gpu)
    gpus.insert(gpus.end(), static_cast<size_t>(copies), gpu);
  return true;
}

// Parses `list`, the text after the colon.
Status parseGpuList(std::string_view text, std::string_view list, DeviceSpec &spec) {
  for (bool more = true; more;) {
    size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    if (!parseGpus(list.substr(0, comma), spec.gpus))
      return {MT_INVALID, "expected GPUs as " + spec.kind + ":0, " + spec.kind + ":0-3, " + spec.kind + ":0,2 or " +
                              spec.kind + ":0*4, found " + std::string(text)};
    list = more ? list.substr(comma + 1) : list;
  }
  if (spec.gpus.size() > maxThreads)
    return {MT_INVALID, "expected at most " + std::to_string(maxThreads) + " devices, found " + std::string(text)};
  spec.devices = static_cast<int>(spec.gpus.size());
  return {};
}

// Returns a suggestion for device names of other tools and for misspelled kinds; "" if there is none.
std::string meant(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  std::string number(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (kind == "gpu" || kind == "GPU" || kind == "nvidia")
    return "; did you mean cuda:" + (number.empty() ? "0" : number) + "?";
  if (kind == "CPU")
    return "; did you mean cpu:" + (number.empty() ? "1" : number) + "?";
  if (digits && !text.empty())
    return "; did you mean cpu:" + std::string(text) + "?";
  std::vector<std::string> kinds;
  for (const DeviceKind &known : deviceKinds)
    kinds.emplace_back(known.name);
  std::string nearest = deviceKind(kind) ? "" : nearestWord(kind, kinds);
  return nearest.empty() ? "" : "; did you mean " + nearest + std::string(text.substr(kind.size())) + "?";
}

} // namespace

const DeviceKind *deviceKind(std::string_view name) {
  auto found = std::find_if(std::begin(deviceKinds), std::end(deviceKinds),
                            [&](const DeviceKind &kind) { return kind.name == name; });
  return found == std::end(deviceKinds) ? nullptr : found;
}

const DeviceKind *kindOfDevices(std::string_view devices) { return deviceKind(devices.substr(0, devices.find(':'))); }

std::string deviceKindNames(bool withCode) {
  std::vector<std::string_view> names;
  for (const DeviceKind &kind : deviceKinds)
    if (kind.hasCode || !withCode)
      names.push_back(kind.name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ").append(names[i]);
  return text;
}

std::string firstGpus(const DeviceKind &kind, int64_t count) {
  return std::string(kind.name) + (count == 1 ? ":0" : ":0-" + std::to_string(count - 1));
}

bool DeviceSpec::onGpus() const {
  const DeviceKind *known = deviceKind(kind);
  return known && known->gpu;
}

Status parseDeviceSpec(std::string_view text, DeviceSpec &spec) {
  spec = {};
  const DeviceKind *kind = kindOfDevices(text);
  const size_t colon = text.find(':');
  const bool named = colon != std::string_view::npos;
  if (kind)
    spec.kind = kind->name;
  if (kind && kind->gpu)
    return parseGpuList(text, named ? text.substr(colon + 1) : "0", spec);
  bool good = kind != nullptr;
  if (good && named) {
    std::string_view counts = text.substr(colon + 1);
    size_t times = counts.find('x');
    good = parseWhole(counts.substr(0, times), 1, spec.devices) &&
           (times == std::string_view::npos || parseWhole(counts.substr(times + 1), 1, spec.threads));
  }
  if (!good)
    return {MT_INVALID,
            "expected devices as cpu:2 (two devices), cpu:2x4 (of four threads each), cuda:0, cuda:0-3, cuda:0,2 or "
            "null:N, found " +
                std::string(text) + meant(text)};
  if (spec.devices > maxThreads || spec.threads > maxThreads / spec.devices)
    return {MT_INVALID,
            "expected at most " + std::to_string(maxThreads) + " threads in all, found " + std::string(text)};
  return {};
}

} // namespace mtrun
