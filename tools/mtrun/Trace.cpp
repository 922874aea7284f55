// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Trace.h"
#include "tools/mtrun/Messages.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace mtrun_tool {

constexpr int64_t tracedSteps = 10;
constexpr size_t shownKernels = 12;

TraceRange parseTrace(const std::string &text, int64_t skipped, int64_t steps) {
  int64_t first = skipped + 1;
  if (steps > 0 && steps < skipped + tracedSteps) // the last steps
    first = std::clamp<int64_t>(steps - tracedSteps + 1, 1, first);
  TraceRange range = {text, first, first + tracedSteps - 1};
  size_t colon = text.rfind(':');
  long long from = 0, to = 0;
  int end = 0;
  if (colon != std::string::npos && sscanf(text.c_str() + colon, ":%lld-%lld%n", &from, &to, &end) == 2 &&
      colon + static_cast<size_t>(end) == text.size())
    range = {text.substr(0, colon), from, to};
  return text.empty() ? TraceRange() : range;
}

std::string tracePath(const Arguments &arguments) { return parseTrace(arguments.trace, 0, 0).path; }

void startTrace(const Run &run, const Arguments &arguments, int64_t skipped, int64_t steps) {
  TraceRange range = parseTrace(arguments.trace, skipped, steps);
  if (range.path.empty() && !arguments.profile)
    return;
  if (!range.path.empty() && (range.first < 1 || range.last < range.first))
    throw Failure{MT_INVALID, "--trace: expected FILE or FILE:FIRST-LAST with steps from 1, found " + arguments.trace};
  if (!range.path.empty() && steps > 0 && range.first > steps)
    throw Failure{MT_INVALID, "--trace: expected steps among the " + std::to_string(steps) + " of this run, found " +
                                  std::to_string(range.first) + " to " + std::to_string(range.last)};
  mtrun_trace_options options = mtrun_trace_options_init();
  options.first = range.first;
  options.last = range.last;
  options.profile = arguments.profile;
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  if (!range.path.empty() && info.peak_flops == 0) { // otherwise the driver reports the peak
    Peak peak = measurePeak(info.devices * info.threads_per_device, info.peak_bytes);
    options.peak_flops = peak.flops;
    options.peak_bandwidth = peak.bytes;
  }
  check(mtrun_trace_start(run.session.get(), &options));
}

namespace {

// A row of a table: the sum over a layer, a kind or a kernel.
struct Group {
  double us = 0, floorUs = 0, flops = 0, bytes = 0; // us: mean over threads
};

class Table {
public:
  Table(const mtrun_profile &profile, const Peak &peak) : profile_(profile), peak_(peak) {}

  double floorUs(const ProfileLine &line) const {
    double compute = peak_.flops > 0 ? line.flops / peak_.flops : 0,
           move = peak_.bytes > 0 ? line.bytes / peak_.bytes : 0;
    return std::max(compute, move) * 1e6;
  }

  void add(const std::string &key, const ProfileLine &line) {
    Group &group = groups_[key];
    group.us += line.computeUs / profile_.threads;
    group.floorUs += floorUs(line);
    group.flops += line.flops;
    group.bytes += line.bytes;
  }
  // Adds time without a lower bound.
  void add(const std::string &key, double us) { groups_[key].us += us / profile_.threads; }

  std::string print(const char *title, size_t most) const {
    std::vector<std::pair<std::string, Group>> rows(groups_.begin(), groups_.end());
    std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
      return a.second.us != b.second.us ? a.second.us > b.second.us : a.first < b.first;
    });
    rows.resize(std::min(rows.size(), most));
    size_t width = std::string(title).size();
    for (const auto &[name, group] : rows)
      width = std::max(width, name.size());
    char text[512];
    snprintf(text, sizeof text, "\n%-*s     time     us/step   GFLOP/s     GB/s  of floor\n", static_cast<int>(width),
             title);
    std::string table = text;
    for (const auto &[name, group] : rows) {
      snprintf(text, sizeof text, "  %6.1f %% %11.1f", profile_.step_us > 0 ? 100 * group.us / profile_.step_us : 0,
               group.us);
      std::string row = text;
      if (group.us > 0 && (group.flops > 0 || group.bytes > 0)) {
        snprintf(text, sizeof text, " %9.1f %8.1f %7.0f %%", group.flops / group.us / 1e3, group.bytes / group.us / 1e3,
                 100 * group.floorUs / group.us);
        row += text;
      }
      table += name + std::string(width - name.size(), ' ') + row + "\n";
    }
    return table;
  }

private:
  const mtrun_profile &profile_;
  const Peak &peak_;
  std::map<std::string, Group> groups_;
};

} // namespace

std::string formatProfile(const mtrun_profile &profile, const std::vector<ProfileLine> &lines, const Peak &peak,
                          int64_t block) {
  Table layers(profile, peak), kinds(profile, peak), kernels(profile, peak);
  double transfer = 0, wait = 0, floor = 0;
  for (const ProfileLine &line : lines) {
    transfer += line.transferUs;
    wait += line.waitUs;
    if (line.computeUs == 0)
      continue; // an all-reduce that moves no data
    layers.add(line.kind == "all_reduce" ? "(all-reduces)" : line.layer.empty() ? "(no layer)" : line.layer, line);
    kinds.add(line.kind, line);
    kernels.add(line.name, line);
    floor += kinds.floorUs(line);
  }
  for (Table *table : {&layers, &kinds}) {
    if (transfer > 0)
      table->add("(transfers)", transfer);
    table->add("(waits between kernels)", wait);
    table->add("(idle before and after)", profile.idle_us);
  }
  char text[512];
  snprintf(text, sizeof text,
           "profile of %lld steps, %.1f samples each: %.1f us per step on %d %s%s, %.1f us between steps\n",
           static_cast<long long>(profile.steps),
           static_cast<double>(profile.samples) / static_cast<double>(profile.steps), profile.step_us, profile.threads,
           block ? "thread" : "device", profile.threads == 1 ? "" : "s", profile.between_us);
  std::string head = text;
  snprintf(text, sizeof text, " in a block of %.1f MiB", static_cast<double>(block) / 0x1p20);
  std::string where = block ? text : "";
  snprintf(text, sizeof text, "%s %.1f GFLOP/s, and %.1f GB/s%s; the floor of a step is %.1f us, %.0f %%\n",
           block ? "measured peak" : "peak from the driver:", peak.flops / 1e9, peak.bytes / 1e9, where.c_str(), floor,
           profile.step_us > 0 ? 100 * floor / profile.step_us : 0);
  return head + text + layers.print("layer", SIZE_MAX) + kinds.print("kind", SIZE_MAX) +
         kernels.print("kernel, the longest", shownKernels);
}

void finishTrace(const Run &run, const Arguments &arguments) {
  std::string path = tracePath(arguments);
  if (path.empty())
    return;
  mt_status *status = mtrun_trace_write(run.session.get(), path.c_str());
  if (mt_status_code(status) != MT_INVALID)
    return check(status);
  fprintf(stderr, "mtrun: warning: no trace: %s\n", mt_status_message(status)); // the run ended before these steps
  mt_status_free(status);
}

std::string finishProfile(const Run &run, const Arguments &arguments) {
  mtrun_profile profile;
  if (!arguments.profile)
    return "";
  if (mt_status *status = mtrun_profile_get(run.session.get(), &profile)) {
    std::string text = std::string("no profile: ") + mt_status_message(status) + "\n";
    mt_status_free(status);
    return text;
  }
  std::vector<ProfileLine> lines;
  for (int32_t i = 0; i < profile.entries; ++i) {
    mtrun_profile_entry entry;
    check(mtrun_profile_get_entry(run.session.get(), i, &entry));
    lines.push_back({entry.layer, entry.kind, entry.name, entry.compute_us, entry.transfer_us, entry.wait_us,
                     entry.flops, entry.bytes});
  }
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  if (info.peak_flops > 0)
    return formatProfile(profile, lines, {info.peak_flops, info.peak_bandwidth}, 0);
  return formatProfile(profile, lines, measurePeak(profile.threads, info.peak_bytes), info.peak_bytes);
}

} // namespace mtrun_tool
