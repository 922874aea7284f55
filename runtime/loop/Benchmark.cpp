// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Order.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Run.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Lengths.h"
#include "runtime/plan/Signature.h"
#include "runtime/trace/Profile.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

using namespace mtrun;

// Returns random rows for one entry: whole numbers below the entry's limit. Without a limit, floats are in [0, 1), and
// integers and flags are 0 or 1.
static std::vector<std::byte> randomRows(const mtrun_tensor_info &info, int64_t rows, uint64_t stream) {
  uint64_t elements = static_cast<uint64_t>(rows);
  for (int32_t d = 1; d < info.rank; ++d)
    elements *= static_cast<uint64_t>(info.shape[d]);
  size_t size = mt_dtype_size(info.dtype);
  std::vector<std::byte> bytes(elements * size);
  for (uint64_t i = 0; i < elements; ++i) {
    uint32_t drawn = philox(0, i, stream)[0];
    int64_t whole = info.limit > 0 ? drawn % info.limit : drawn & 1;
    double fraction = info.limit > 0 ? static_cast<double>(whole) : (drawn >> 8) * 0x1p-24;
    std::byte *to = bytes.data() + i * size;
    auto put = [&](auto value) { memcpy(to, &value, sizeof value); };
    switch (info.dtype) {
    case MT_F32:
      put(static_cast<float>(fraction));
      break;
    case MT_F64:
      put(fraction);
      break;
    case MT_I32:
      put(static_cast<int32_t>(whole));
      break;
    case MT_I64:
      put(whole);
      break;
    case MT_BOOL:
    case MT_U8:
      put(static_cast<uint8_t>(whole));
      break;
    case MT_BF16:
    case MT_F16:
      break; // no tensor of a caller has these types
    }
  }
  return bytes;
}

static double median(std::vector<double> &times) {
  std::sort(times.begin(), times.end());
  size_t middle = times.size() / 2;
  return times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

// Measures the microseconds of each step while the host waits for each step.
static Status timeSteps(Session &session, Session::Step step, std::vector<double> &times) {
  for (double &us : times) {
    Stopwatch watch;
    Status status = session.begin("train_step", {&step, 1});
    if (status.ok())
      status = session.finish(nullptr);
    if (!status.ok())
      return status;
    us = watch.seconds() * 1e6;
  }
  return {};
}

// Measures the microseconds per step between the ends of consecutive launches, with the maximum number of launches in
// flight.
static Status timeQueued(Session &session, Session::Step step, std::vector<double> &times) {
  std::vector<Session::Step> launch(static_cast<size_t>(session.stepsPerLaunch("train_step")), step);
  size_t launches = (times.size() + launch.size() - 1) / launch.size() + 1, begun = 0;
  times.clear();
  double last = 0;
  Stopwatch watch;
  Status status;
  for (size_t i = 0; i < launches && status.ok(); ++i) {
    for (; begun < launches && begun < i + static_cast<size_t>(session.maxInFlight()) && status.ok(); ++begun)
      status = session.begin("train_step", launch);
    for (size_t k = 0; k < launch.size() && status.ok(); ++k)
      status = session.finish(nullptr);
    double now = watch.seconds() * 1e6;
    if (i > 0) // the first launch has no launch before it
      times.push_back((now - last) / static_cast<double>(launch.size()));
    last = now;
  }
  while (session.inFlight() > 0)
    (void)session.finish(nullptr);
  return status;
}

// Measures GPUs whose host works concurrently with them.
static Status timeDevices(Session &session, Session::Step step, size_t steps, mtrun_timing &timing) {
  std::vector<double> times(steps);
  if (Status s = timeQueued(session, step, times); !s.ok())
    return s;
  timing.queued_us = median(times);
  step.unchanged = true;
  times.resize(steps + static_cast<size_t>(session.maxInFlight())); // the first steps copy the inputs to the devices
  if (Status s = timeSteps(session, step, times); !s.ok())
    return s;
  times.erase(times.begin(), times.begin() + session.maxInFlight());
  timing.resident_us = median(times);
  times.resize(steps);
  if (Status s = timeQueued(session, step, times); !s.ok())
    return s;
  timing.resident_queued_us = median(times);
  return {};
}

// Returns the lower bound of a step's time: each launch needs its FLOPs or its bytes at the devices' peak rate,
// whichever takes longer.
static double floorOf(const Session &session, const mt::plan::Program &program, int64_t n) {
  mtrun_session_info info = session.info();
  if (info.peak_flops <= 0 || info.peak_bandwidth <= 0)
    return 0;
  double seconds = 0;
  for (const auto *step : Each(program.steps())) {
    if (step->kernel() < 0)
      continue;
    StepFacts facts = factsOf(session.plan(), *step);
    auto cost = [&](uint64_t perSample, uint64_t fixed) {
      return static_cast<double>(perSample) * static_cast<double>(n) +
             static_cast<double>(fixed) * session.groupDevices();
    };
    seconds += std::max(cost(facts.flopsPerSample, facts.flopsFixed) / info.peak_flops,
                        cost(facts.bytesPerSample, facts.bytesFixed) / info.peak_bandwidth);
  }
  return seconds * 1e6;
}

// Finds the program whose steps have samples of `length`; 0 selects the largest length.
static Status programOf(const Plan &plan, int64_t length, const mt::plan::Program *&program) {
  program = plan.program("train_step");
  std::string known;
  for (const mt::plan::Length *each : Each(plan.tables().lengths())) {
    if (each->length() == static_cast<uint64_t>(length) && each->train_step() >= 0)
      return program = plan.tables().programs()->Get(static_cast<uint32_t>(each->train_step())), Status();
    known += (known.empty() ? "" : ", ") + std::to_string(each->length());
  }
  if (length == 0)
    return {};
  return {MT_INVALID, "benchmark: expected one of the plan's lengths (" + (known.empty() ? "it has none" : known) +
                          "), found " + std::to_string(length)};
}

// Sets the positions after the end of a shorter program's `entry` to zero. The first sample's last position is nonzero,
// so that a step chooses the length of this program.
static void shorten(const mt::plan::SignatureEntry &entry, const mt::plan::SignatureEntry &part, int64_t n,
                    std::vector<std::byte> &rows) {
  uint64_t whole = entry.row_bytes(), kept = part.row_bytes();
  for (int64_t row = 0; row < n; ++row)
    memset(rows.data() + static_cast<uint64_t>(row) * whole + kept, 0, whole - kept);
  memset(rows.data() + kept - elementBytes(entry.dtype()), 0, elementBytes(entry.dtype()));
  rows[kept - elementBytes(entry.dtype())] = std::byte{1}; // an integer or a flag of 1, or a float near 0
}

Status mtrun::benchmark(Session &session, int64_t length, int64_t n, int64_t warmup, int64_t steps,
                        mtrun_timing &timing) {
  const auto batch = static_cast<int64_t>(session.plan().batch());
  if (steps < 1 || warmup < 0)
    return {MT_INVALID, "benchmark: expected at least 1 step and 0 steps of warm-up, found " + std::to_string(steps) +
                            " and " + std::to_string(warmup)};
  if (n < 1 || n > batch)
    return {MT_INVALID, "benchmark: expected 1 to " + std::to_string(batch) + " rows, found " + std::to_string(n)};
  const mt::plan::Program *program = nullptr, &whole = *session.plan().program("train_step");
  if (Status s = programOf(session.plan(), length, program); !s.ok())
    return s;
  std::vector<std::vector<std::byte>> rows;
  std::vector<const void *> tensors;
  for (const mtrun_tensor_info &info : signatureOf(session.plan(), "train_step")) {
    bool absent = info.role == MTRUN_SAMPLE_WEIGHT && info.optional;
    auto entry = static_cast<uint32_t>(rows.size());
    rows.push_back(absent ? std::vector<std::byte>() : randomRows(info, n, rows.size()));
    if (!absent && hasLength(session.plan().tables(), "train_step", entry))
      shorten(*whole.signature()->Get(entry), *program->signature()->Get(entry), n, rows.back());
    tensors.push_back(absent ? nullptr : rows.back().data());
  }
  timing = {};
  Session::Step step = {tensors.data(), n};
  std::vector<double> times(static_cast<size_t>(warmup + steps));
  if (Status s = timeSteps(session, step, times); !s.ok())
    return s;
  timing.first_step_us = times.front();
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(warmup));
  timing.steps = steps;
  timing.mean_us = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(steps);
  timing.median_us = median(times);
  timing.min_us = times.front();
  timing.floor_us = floorOf(session, *program, n);
  if (session.maxInFlight() == 1 || session.tracer()) // a traced step runs alone
    return {};
  return timeDevices(session, step, static_cast<size_t>(steps), timing);
}

// One step runs first, so that the devices know the number of rows.
Status mtrun::tune(Session &session, const char *path, int32_t repeats,
                   const std::function<void(const std::string &)> &line) {
  mtrun_timing timing;
  if (Status s = benchmark(session, 0, static_cast<int64_t>(session.plan().batch()), 0, 1, timing); !s.ok())
    return s;
  return session.tune(path, repeats ? repeats : 20, line);
}
