// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Run.h"

#include "runtime/support/device_spec.h"
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace mtrun_tool {

void check(mt_status *status) {
  if (!status)
    return;
  Failure failure = {mt_status_code(status), mt_status_message(status)};
  mt_status_free(status);
  throw failure;
}

static void logLine(void *user, int level, const char *message) {
  if (level >= 1)
    fprintf(stderr, "mtrun: warning: %s\n", message);
  else if (static_cast<const Arguments *>(user)->verbose)
    fprintf(stderr, "mtrun: %s\n", message);
}

// The plan that defaultDevices() has read, for loadPlan(), because verifying a large plan takes time.
static PlanPtr readPlan;

std::string defaultDevices(const std::string &path) {
  mtrun_plan *loaded = nullptr;
  mt_status *status = path.empty() ? nullptr : mtrun_plan_load(path.c_str(), &loaded);
  mt_status_free(status); // open() reports the error
  readPlan.reset(loaded);
  char text[64] = "cpu:1";
  if (loaded)
    check(mtrun_default_devices(loaded, text, sizeof text));
  return text;
}

Run loadPlan(const Arguments &arguments) {
  Run run;
  run.plan = std::move(readPlan);
  if (run.plan)
    return run;
  mtrun_plan *plan = nullptr;
  check(mtrun_plan_load(arguments.plan.c_str(), &plan));
  run.plan.reset(plan);
  return run;
}

mtrun_options sessionOptionsOf(const Arguments &arguments) {
  mtrun_options options = arguments.session;
  options.devices = arguments.devices.c_str();
  options.log = options.process == 0 ? logLine : nullptr; // only process 0 logs: all processes log the same lines
  options.force = arguments.saving.force;
  if (arguments.loop.hash_launches && options.micro_batches == 0)
    options.micro_batches = 1; // a digest is of the launch of a whole batch
  options.log_user = const_cast<Arguments *>(&arguments);
  return options;
}

void bind(Run &run, const Arguments &arguments, mtrun_match match) {
  mtrun_options options = sessionOptionsOf(arguments);
  mtrun_session *session = nullptr;
  check(mtrun_session_create(run.plan.get(), &options, &session));
  run.session.reset(session);
  if (!arguments.load.empty())
    loadVariables(run, arguments, match);
}

Run open(const Arguments &arguments, mtrun_match match) {
  Run run = loadPlan(arguments);
  bind(run, arguments, match);
  return run;
}

static std::string joined(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : " + ") + std::to_string(number);
  return text;
}

// Returns the rows of the device with the most rows.
static int64_t maxRows(int64_t batch, int64_t allShards, int64_t devices) {
  std::vector<int> shards = mtrun::splitShards(static_cast<int>(allShards), static_cast<int>(devices));
  int64_t shardRows = (batch + allShards - 1) / allShards, first = 0, most = 0;
  for (int count : shards) {
    most = std::max(most, std::clamp<int64_t>(batch - first * shardRows, 0, count * shardRows));
    first += count;
  }
  return most;
}

static double share(int64_t batch, int64_t allShards, int64_t devices) {
  return static_cast<double>(maxRows(batch, allShards, devices)) * static_cast<double>(devices) /
         static_cast<double>(batch);
}

// Returns a text with the nearest numbers of devices, and the nearest number of shards, that balance the work.
static std::string evenShares(int64_t batch, int64_t allShards, int64_t devices) {
  constexpr double even = 1.005;
  std::string fewer, more, other;
  for (int64_t n = devices - 1; n >= 1 && fewer.empty(); --n)
    if (share(batch, allShards, n) <= even)
      fewer = std::to_string(n);
  for (int64_t n = devices + 1; n <= std::min<int64_t>(allShards, 2 * devices) && more.empty(); ++n)
    if (share(batch, allShards, n) <= even)
      more = std::to_string(n);
  for (int64_t r = 1; r <= batch && other.empty(); r *= 2)
    if (r >= devices && share(batch, r, devices) <= even)
      other = std::to_string(r);
  std::string text = fewer.empty() || more.empty() ? fewer + more : fewer + " or " + more;
  text += text.empty() ? "" : text == "1" ? " device" : " devices";
  if (!other.empty())
    text += (text.empty() ? "" : ", or ") + std::string("a plan of ") + other + (other == "1" ? " shard" : " shards");
  return text.empty() ? "" : "; even with " + text;
}

std::string describe(const Run &run, const Arguments &arguments) {
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  int64_t batch = mtrun_plan_batch(run.plan.get()), allShards = mtrun_plan_shards(run.plan.get());
  int64_t shardRows = (batch + allShards - 1) / allShards, first = 0;
  // Devices that share variables form one thread pool.
  bool sharesVariables = info.devices == 1 || mtrun_session_shards(run.session.get(), 0) == allShards;
  std::vector<int64_t> shards, rows;
  for (int32_t d = 0; d < (sharesVariables ? 1 : info.devices); ++d) {
    shards.push_back(mtrun_session_shards(run.session.get(), d));
    rows.push_back(std::clamp<int64_t>(batch - first * shardRows, 0, shards.back() * shardRows));
    first += shards.back();
  }
  char text[256];
  double even = static_cast<double>(batch) / info.devices;
  double largest = static_cast<double>(*std::max_element(rows.begin(), rows.end())) / even;
  snprintf(text, sizeof text, "; the largest share is %.2f of an even one", largest);
  std::string balance = info.devices == 1 ? "" : sharesVariables ? ", shared by all" : text;
  if (!sharesVariables && largest > 1.005)
    balance += evenShares(batch, allShards, info.devices);
  snprintf(text, sizeof text, " (%s, %d thread%s each, %.1f MiB): ", info.target ? info.target : "no code",
           info.threads_per_device, info.threads_per_device == 1 ? "" : "s",
           static_cast<double>(info.peak_bytes) / 0x1p20);
  std::string lengths;
  for (int32_t i = 0; i < mtrun_plan_length_count(run.plan.get()); ++i)
    lengths += (i ? ", " : "; lengths ") + std::to_string(mtrun_plan_length(run.plan.get(), i));
  return "plan " + arguments.plan + ": " + mtrun_plan_model(run.plan.get()) + ", batch " + std::to_string(batch) +
         ", " + std::to_string(allShards) + (allShards == 1 ? " shard" : " shards") + lengths + "\ndevices " +
         arguments.devices + text + joined(shards) + (allShards == 1 ? " shard, " : " shards, ") + joined(rows) +
         " rows per step" + balance + "\n";
}

} // namespace mtrun_tool
