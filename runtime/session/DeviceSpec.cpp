// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DeviceSpec.h"

#include <algorithm>
#include <charconv>

namespace mtrun {
namespace {

constexpr int maxThreads = 1024;

// A whole number from `least` that is all of `text`.
bool parseWhole(std::string_view text, int least, int &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least;
}

// A, A-B, A*K or A-B*K.
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

Status parseCudaSpec(std::string_view text, DeviceSpec &spec) {
  spec.kind = "cuda";
  std::string_view list = text.substr(std::min(text.size(), std::string_view("cuda:").size()));
  if (text == "cuda")
    list = "0";
  for (bool more = true; more;) {
    size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    if (!parseGpus(list.substr(0, comma), spec.gpus))
      return {MT_INVALID, "expected GPUs as cuda:0, cuda:0-3, cuda:0,2 or cuda:0*4, found " + std::string(text)};
    list = more ? list.substr(comma + 1) : list;
  }
  if (spec.gpus.size() > maxThreads)
    return {MT_INVALID, "expected at most " + std::to_string(maxThreads) + " devices, found " + std::string(text)};
  spec.devices = static_cast<int>(spec.gpus.size());
  return {};
}

// Of words that other tools have for devices.
std::string meant(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  std::string number(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (kind == "gpu" || kind == "GPU" || kind == "nvidia")
    return "; did you mean cuda:" + (number.empty() ? "0" : number) + "?";
  if (kind == "CPU")
    return "; did you mean cpu:" + (number.empty() ? "1" : number) + "?";
  return digits && !text.empty() ? "; did you mean cpu:" + std::string(text) + "?" : "";
}

} // namespace

Status parseDeviceSpec(std::string_view text, DeviceSpec &spec) {
  spec = {};
  if (text == "cuda" || text.starts_with("cuda:"))
    return parseCudaSpec(text, spec);
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  bool good = kind == "cpu" || kind == "null";
  if (good && colon != std::string_view::npos) {
    std::string_view counts = text.substr(colon + 1);
    size_t times = counts.find('x');
    good = parseWhole(counts.substr(0, times), 1, spec.devices) &&
           (times == std::string_view::npos || parseWhole(counts.substr(times + 1), 1, spec.threads));
  }
  if (!good)
    return {MT_INVALID, "expected devices as cpu:2 (two devices), cpu:2x4 (of four threads each), cuda:0, cuda:0-3, cuda:0,2 or "
                        "null:N, found " +
                            std::string(text) + meant(text)};
  if (spec.devices > maxThreads || spec.threads > maxThreads / spec.devices)
    return {MT_INVALID,
            "expected at most " + std::to_string(maxThreads) + " threads in all, found " + std::string(text)};
  spec.kind = kind;
  return {};
}

} // namespace mtrun
