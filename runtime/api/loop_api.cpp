// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h that run a session on data.
#include "runtime/api/Handles.h"
#include "runtime/loop/Fit.h"
#include "runtime/loop/Run.h"
#include "runtime/support/option_struct.h"

using namespace mtrun;

static Status readOptions(const mtrun_loop_options *requested, mtrun_loop_options &options) {
  return MTRUN_READ_OPTIONS(mtrun_loop_options, validation_last, requested, options);
}

// The other processes of a session cannot go on after an error of this one.
static Status endTogether(Session &session, Status status) {
  if (!status.ok())
    session.lose(status);
  return status;
}

mt_status *mtrun_fit(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options) {
  return guarded([&]() -> Status {
    if (!session || !data)
      return {MT_INVALID, "fit: expected a session and a dataset, found NULL"};
    mtrun_loop_options read;
    if (Status s = readOptions(options, read); !s.ok())
      return s;
    Fit fit;
    Status status = fit.open(*session->session, data, read);
    return endTogether(*session->session, status.ok() ? fit.run() : status);
  });
}

mt_status *mtrun_evaluate(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options,
                          double *values) {
  return guarded([&]() -> Status {
    if (!session || !data)
      return {MT_INVALID, "evaluate: expected a session and a dataset, found NULL"};
    mtrun_loop_options read;
    if (Status s = readOptions(options, read); !s.ok())
      return s;
    return endTogether(*session->session, evaluate(*session->session, *data, read, values));
  });
}

mt_status *mtrun_predict_file(mtrun_session *session, mtrun_dataset *data, int32_t index, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !data || !path)
      return {MT_INVALID, "predict: expected a session, a dataset and a path, found NULL"};
    return endTogether(*session->session, predictFile(*session->session, *data, index, path));
  });
}

mt_status *mtrun_benchmark(mtrun_session *session, int64_t n, int64_t warmup, int64_t steps, mtrun_timing *timing) {
  return guarded([&]() -> Status {
    if (!session || !timing)
      return {MT_INVALID, "benchmark: expected a session and room for the timing, found NULL"};
    return benchmark(*session->session, 0, n, warmup, steps, *timing);
  });
}

mt_status *mtrun_benchmark_length(mtrun_session *session, int64_t length, int64_t n, int64_t warmup, int64_t steps,
                                  mtrun_timing *timing) {
  return guarded([&]() -> Status {
    if (!session || !timing || length < 1)
      return {
          MT_INVALID,
          "benchmark: expected a session, a length of at least 1 and room for the timing, found NULL or a length of " +
              std::to_string(length) + ""};
    return benchmark(*session->session, length, n, warmup, steps, *timing);
  });
}

mt_status *mtrun_benchmark_all_reduce(const mtrun_options *options, mtrun_all_reduce_timing *timings, int32_t count) {
  return guarded([&]() -> Status {
    if (!timings || count < 1)
      return {MT_INVALID, "all-reduce: expected sizes to measure, found none"};
    mtrun_options read;
    if (Status s = MTRUN_READ_OPTIONS(mtrun_options, unchecked_ids, options, read); !s.ok())
      return s;
    return benchmarkAllReduces(read, {timings, static_cast<size_t>(count)});
  });
}

mt_status *mtrun_tune(mtrun_session *session, const char *path, int32_t repeats,
                      void (*line)(void *user, const char *text), void *user) {
  return guarded([&]() -> Status {
    if (!session || !path || repeats < 0)
      return {MT_INVALID, "tune: expected a session, a path and at least 0 repeats, found NULL or " +
                              std::to_string(repeats) + " repeats"};
    return tune(*session->session, path, repeats, [&](const std::string &text) {
      if (line)
        line(user, text.c_str());
    });
  });
}
