// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Commands.h"
#include "runtime/support/json_text.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Outputs.h"
#include "tools/mtrun/Progress.h"
#include "tools/mtrun/Run.h"
#include "tools/mtrun/Trace.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <unistd.h>

namespace mtrun_tool {

using mtrun::jsonNumber;
using mtrun::jsonString;

int showProgress(void *user, const mtrun_progress *progress) {
  std::string text = static_cast<Progress *>(user)->update(*progress);
  if (!text.empty())
    print(text);
  return 0;
}

// Only process 0 of several processes prints progress.
static auto progressOf(const Arguments &arguments) { return arguments.session.process == 0 ? showProgress : nullptr; }

Progress makeProgress(const Arguments &arguments) {
  if (arguments.json)
    return Progress(ProgressStyle::Json);
  return Progress(isatty(STDOUT_FILENO) ? ProgressStyle::Bar : ProgressStyle::Line);
}

// Warns about evaluation and prediction without weights, which is usually a mistake.
static void tellUntrained(const Run &run, const Arguments &arguments) {
  if (arguments.load.empty() && arguments.session.process == 0 && !mtrun_plan_has_weights(run.plan.get()))
    fprintf(stderr, "mtrun: warning: without --load the variables are the plan's initial ones, which nothing has "
                    "trained\n");
}

int evaluate(const Arguments &arguments) {
  Run run = open(arguments, MTRUN_MATCH_MODEL); // the optimizer's state is not read
  tellUntrained(run, arguments);
  DatasetPtr data = openData(run, arguments, arguments.data);
  Progress progress = makeProgress(arguments);
  mtrun_loop_options options = mtrun_loop_options_init();
  options.progress = progressOf(arguments);
  options.progress_user = &progress;
  options.in_flight = 1;
  options.allow_nan = arguments.loop.allow_nan;
  int32_t count = mtrun_plan_metric_count(run.plan.get(), "eval_step");
  std::vector<double> values(static_cast<size_t>(count));
  check(mtrun_evaluate(run.session.get(), data.get(), &options, values.data()));
  std::string bad;
  for (int32_t i = 0; i < count; ++i)
    if (!std::isfinite(values[static_cast<size_t>(i)]))
      bad += (bad.empty() ? "" : ", ") + std::string(mtrun_plan_metric_name(run.plan.get(), "eval_step", i));
  if (bad.empty() || arguments.loop.allow_nan)
    return MT_OK;
  if (arguments.session.process > 0)
    return MT_INVALID;
  return reportError(MT_INVALID, "expected finite values, found NaN or infinity for " + bad);
}

// The extension selects the format; an unknown extension is refused before any computation.
static void checkPredictions(const std::string &path) {
  for (const char *end : {".csv", ".npz", ".npy"})
    if (path.ends_with(end))
      return;
  throw Failure{MT_INVALID, "predict: expected a file .csv, .npz or .npy, found " + path};
}

int predict(const Arguments &arguments) {
  checkPredictions(arguments.output);
  bool first = arguments.session.process == 0;
  commandline::OutputFolders folders;
  if (first)
    prepareFile(folders, arguments.output);
  Run run = open(arguments, MTRUN_MATCH_MODEL);
  tellUntrained(run, arguments);
  DatasetPtr data = openData(run, arguments, arguments.data + (arguments.strict ? "" : ",damaged=keep"));
  check(mtrun_predict_file(run.session.get(), data.get(), arguments.outputIndex, arguments.output.c_str()));
  if (first)
    print("wrote " + arguments.output + ": " + std::to_string(mtrun_dataset_size(data.get())) + " samples\n");
  return MT_OK;
}

static std::string benchmarkJson(const Run &run, const Arguments &arguments, const mtrun_timing &timing, double loadUs,
                                 int64_t rows, const std::string &lengths) {
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  auto whole = [](const char *name, int64_t value) {
    return std::string(", \"") + name + "\": " + std::to_string(value);
  };
  auto real = [](const char *name, double value) { return std::string(", \"") + name + "\": " + jsonNumber(value); };
  return "{\"plan\": " + jsonString(arguments.plan) + ", \"model\": " + jsonString(mtrun_plan_model(run.plan.get())) +
         whole("batch", mtrun_plan_batch(run.plan.get())) + whole("rows", rows) +
         whole("shards", mtrun_plan_shards(run.plan.get())) + ", \"devices\": " + jsonString(arguments.devices) +
         whole("device_count", info.devices) + whole("threads_per_device", info.threads_per_device) +
         ", \"target\": " + jsonString(info.target ? info.target : "") + whole("steps", timing.steps) +
         whole("warmup", arguments.warmup) + real("median_us", timing.median_us) + real("min_us", timing.min_us) +
         real("mean_us", timing.mean_us) + real("first_step_us", timing.first_step_us) +
         real("load_to_first_step_us", loadUs + timing.first_step_us) + whole("peak_bytes", info.peak_bytes) +
         whole("measured_bytes", info.taken_bytes) + real("queued_us", timing.queued_us) +
         real("resident_us", timing.resident_us) + real("resident_queued_us", timing.resident_queued_us) +
         real("floor_us", timing.floor_us) + whole("variables_bytes", info.variables_bytes) +
         whole("collective_bytes", info.collective_bytes) +
         (lengths.empty() ? "" : ", \"shorter\": [" + lengths + "]") + "}\n";
}

// Describes the time of steps without the host and its lower bound, and allocated memory compared with the promised
// memory.
static std::string describeDevices(const Run &run, const mtrun_timing &timing) {
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  char text[512];
  snprintf(text, sizeof text,
           "queued: median %.1f us per step; with inputs that stay on the devices %.1f us, queued %.1f us\n",
           timing.queued_us, timing.resident_us, timing.resident_queued_us);
  std::string lines = timing.resident_queued_us > 0 ? text : "";
  snprintf(text, sizeof text, "floor %.1f us at %.1f TFLOP/s and %.1f GB/s: %.0f %% of the last\n", timing.floor_us,
           info.peak_flops / 1e12, info.peak_bandwidth / 1e9, 100 * timing.floor_us / timing.resident_queued_us);
  lines += timing.floor_us > 0 && timing.resident_queued_us > 0 ? text : "";
  snprintf(text, sizeof text, "memory of the devices: %.1f MiB promised, %.1f MiB taken\n",
           static_cast<double>(info.peak_bytes) / 0x1p20, static_cast<double>(info.taken_bytes) / 0x1p20);
  return lines + (info.taken_bytes > 0 ? text : "");
}

// Measures each of the plan's lengths except the largest, which is measured before.
static std::string timeLengths(const Run &run, const Arguments &arguments, int64_t rows) {
  std::string lines;
  for (int32_t i = 0; i + 1 < mtrun_plan_length_count(run.plan.get()); ++i) {
    int64_t length = mtrun_plan_length(run.plan.get(), i);
    mtrun_timing timing = {};
    check(mtrun_benchmark_length(run.session.get(), length, rows, arguments.warmup, arguments.steps, &timing));
    char text[160];
    snprintf(text, sizeof text,
             arguments.json ? "%s{\"length\": %lld, \"median_us\": %.3f, \"min_us\": %.3f}"
                            : "%slength %lld: median %.1f us, min %.1f us per step\n",
             arguments.json && i ? ", " : "", static_cast<long long>(length), timing.median_us, timing.min_us);
    lines += text;
  }
  return lines;
}

static int benchmarkAllReduces(const Arguments &arguments) {
  mtrun_options options = sessionOptionsOf(arguments);
  std::vector<mtrun_all_reduce_timing> timings;
  for (int64_t bytes : arguments.allReduces) {
    timings.push_back({});
    timings.back().bytes = bytes;
  }
  check(mtrun_benchmark_all_reduce(&options, timings.data(), static_cast<int32_t>(timings.size())));
  if (options.process > 0)
    return MT_OK;
  std::string lines =
      arguments.json ? "{\"processes\": " + std::to_string(options.processes) + ", \"all_reduces\": ["
                     : std::to_string(options.processes) + " processes, " + arguments.devices +
                           "; MPI_Allreduce divided by ours: above 1 ours is faster\n"
                           "       bytes  repeats    median us        min us        MB/s    MPI median us  divided  "
                           "other bits of MPI\n";
  for (size_t i = 0; i < timings.size(); ++i) {
    const mtrun_all_reduce_timing &timing = timings[i];
    char text[512];
    snprintf(
        text, sizeof text,
        arguments.json
            ? "%s{\"bytes\": %lld, \"repeats\": %lld, \"median_us\": %.3f, \"min_us\": %.3f, \"mb_per_s\": "
              "%.1f, \"mpi_median_us\": %.3f, \"ratio\": %.3f, \"mpi_differing\": %.4g, \"mpi_min_us\": %.3f, "
              "\"received_bytes\": %.0f}"
            : "%s%12lld %8lld %12.1f %13.1f %11.1f %16.1f %8.2f %16.3g %%\n",
        arguments.json && i ? ", " : "", static_cast<long long>(timing.bytes), static_cast<long long>(timing.repeats),
        timing.median_us, timing.min_us, static_cast<double>(timing.bytes) / timing.median_us, timing.mpi_median_us,
        timing.mpi_median_us / timing.median_us,
        (arguments.json ? 1 : 100) * static_cast<double>(timing.mpi_differing) / static_cast<double>(timing.elements),
        timing.mpi_min_us, timing.received_bytes);
    lines += text;
  }
  print(lines + (arguments.json ? "]}\n" : ""));
  for (const mtrun_all_reduce_timing &timing : timings)
    if (timing.differing > 0)
      return reportError(MT_DEVICE, "expected the sums of the reduction tree, found " +
                                        std::to_string(timing.differing) + " of " + std::to_string(timing.elements) +
                                        " elements that differ");
  return MT_OK;
}

int benchmark(const Arguments &arguments) {
  if (!arguments.allReduces.empty())
    return benchmarkAllReduces(arguments);
  commandline::OutputFolders folders;
  prepareFile(folders, tracePath(arguments));
  auto start = std::chrono::steady_clock::now();
  Run run = open(arguments);
  double loadUs = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  int64_t rows = arguments.rows ? arguments.rows : mtrun_plan_batch(run.plan.get());
  mtrun_timing timing = {};
  if (arguments.session.process == 0)
    startTrace(run, arguments, arguments.warmup, arguments.warmup + arguments.steps);
  check(mtrun_benchmark(run.session.get(), rows, arguments.warmup, arguments.steps, &timing));
  std::string lengths = timeLengths(run, arguments, rows);
  if (arguments.session.process > 0)
    return MT_OK;
  if (arguments.json) {
    print(benchmarkJson(run, arguments, timing, loadUs, rows, lengths));
    fputs(finishProfile(run, arguments).c_str(), stderr);
    finishTrace(run, arguments);
    return MT_OK;
  }
  print(describe(run, arguments));
  char text[256];
  snprintf(text, sizeof text,
           "%lld rows, %lld steps: median %.1f us, min %.1f us, mean %.1f us per step\nload to first step %.1f ms\n",
           static_cast<long long>(rows), static_cast<long long>(timing.steps), timing.median_us, timing.min_us,
           timing.mean_us, (loadUs + timing.first_step_us) / 1e3);
  print(text);
  print(lengths);
  print(describeDevices(run, timing));
  print(finishProfile(run, arguments));
  finishTrace(run, arguments);
  return MT_OK;
}

int tune(const Arguments &arguments) {
  Arguments tuned = arguments;
  tuned.session.libraries = "tune";
  if (tuned.output.empty())
    tuned.output = arguments.plan + ".tuning";
  commandline::OutputFolders folders;
  prepareFile(folders, tuned.output);
  Run run = open(tuned);
  auto line = [](void *, const char *text) { print(std::string(text) + "\n"); };
  check(mtrun_tune(run.session.get(), tuned.output.c_str(), tuned.repeats, line, nullptr));
  return MT_OK;
}

int devices(const Arguments &) {
  cpu_set_t allowed;
  int cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
#if defined(__x86_64__)
  const char *best = __builtin_cpu_supports("x86-64-v4")   ? "x86-64-v4"
                     : __builtin_cpu_supports("x86-64-v3") ? "x86-64-v3"
                                                           : "below x86-64-v3";
#else
  const char *best = "armv8-a";
#endif
  print("cpu:N or cpu:NxT   N devices of T threads; " + std::to_string(cpus) + " CPUs are allowed here, level " + best +
        "\nnull:N             N devices that compute nothing, to time the runtime itself\n");
  auto line = [](void *, const char *text) { print(std::string(text) + "\n"); };
  if (mt_status *status = mtrun_list_devices(line, nullptr)) {
    print("cuda               none: " + std::string(mt_status_message(status)) + "\n");
    mt_status_free(status);
    return MT_OK;
  }
  mt_status_free(mtrun_list_libraries(line, nullptr)); // prints the reason if no library is found
  return MT_OK;
}

} // namespace mtrun_tool
