// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/Handles.h"
#include "runtime/data/Order.h"
#include "runtime/loop/Loop.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace mtrun;

// Random rows for one entry: floats in [0, 1), integers and flags 0 or 1, which are legal labels of any classifier.
static std::vector<std::byte> randomRows(const mtrun_tensor_info &info, int64_t rows, uint64_t stream) {
  uint64_t elements = static_cast<uint64_t>(rows);
  for (int32_t d = 1; d < info.rank; ++d)
    elements *= static_cast<uint64_t>(info.shape[d]);
  size_t size = mt_dtype_size(info.dtype);
  std::vector<std::byte> bytes(elements * size);
  for (uint64_t i = 0; i < elements; ++i) {
    uint32_t bits = philox(0, i, stream)[0];
    std::byte *to = bytes.data() + i * size;
    auto put = [&](auto value) { memcpy(to, &value, sizeof value); };
    switch (info.dtype) {
    case MT_F32:
      put(static_cast<float>(bits >> 8) * 0x1p-24f);
      break;
    case MT_F64:
      put(static_cast<double>(bits >> 8) * 0x1p-24);
      break;
    case MT_I32:
      put(static_cast<int32_t>(bits & 1));
      break;
    case MT_I64:
      put(static_cast<int64_t>(bits & 1));
      break;
    case MT_BOOL:
    case MT_U8:
      put(static_cast<uint8_t>(bits & 1));
      break;
    }
  }
  return bytes;
}

static Status benchmark(mtrun_session *session, int64_t n, int64_t warmup, int64_t steps, mtrun_timing &timing) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  if (steps < 1 || warmup < 0)
    return {MT_INVALID, "benchmark: expected at least 1 step and 0 steps of warm-up, found " + std::to_string(steps) +
                            " and " + std::to_string(warmup)};
  if (n < 1 || n > mtrun_plan_batch(plan))
    return {MT_INVALID,
            "benchmark: expected 1 to " + std::to_string(mtrun_plan_batch(plan)) + " rows, found " + std::to_string(n)};
  std::vector<std::vector<std::byte>> rows;
  std::vector<const void *> tensors;
  for (int32_t i = 0; i < mtrun_plan_signature_count(plan, "train_step"); ++i) {
    mtrun_tensor_info info;
    if (Status s = adopt(mtrun_plan_signature(plan, "train_step", i, &info)); !s.ok())
      return s;
    bool absent = info.role == MTRUN_SAMPLE_WEIGHT && info.optional;
    rows.push_back(absent ? std::vector<std::byte>() : randomRows(info, n, static_cast<uint64_t>(i)));
    tensors.push_back(absent ? nullptr : rows.back().data());
  }
  std::vector<double> times(static_cast<size_t>(steps));
  for (int64_t step = -warmup; step < steps; ++step) {
    Stopwatch watch;
    if (mt_status *s = mtrun_train_step(session, tensors.data(), n, nullptr))
      return adopt(s);
    double us = watch.seconds() * 1e6;
    if (step == -warmup)
      timing.first_step_us = us;
    if (step >= 0)
      times[static_cast<size_t>(step)] = us;
  }
  timing.steps = steps;
  timing.mean_us = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(steps);
  std::sort(times.begin(), times.end());
  timing.min_us = times.front();
  size_t middle = times.size() / 2;
  timing.median_us = times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return {};
}

mt_status *mtrun_benchmark(mtrun_session *session, int64_t n, int64_t warmup, int64_t steps, mtrun_timing *timing) {
  return guarded([&]() -> Status {
    if (!session || !timing)
      return {MT_INVALID, "benchmark: expected a session and room for the timing, found NULL"};
    return benchmark(session, n, warmup, steps, *timing);
  });
}
