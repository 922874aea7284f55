// SPDX-License-Identifier: Apache-2.0
//
// Evaluation, prediction, benchmark and tuning: the C++ functions of the mtrun.h calls of these names. Fit.h has
// training.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/session/Session.h"

#include <functional>
#include <string>

namespace mtrun {

// Evaluates the data once. `values` receives the losses and metrics of eval_step; may be null.
Status evaluate(Session &session, mtrun_dataset &data, const mtrun_loop_options &options, double *values);

// Writes the predictions of all samples to a file. `index`: the output, or -1 for all outputs that the file can hold.
Status predictFile(Session &session, mtrun_dataset &data, int32_t index, const char *path);

// Measures steps on `n` rows of random data of one of the plan's lengths (0: the largest). The variables are invalid
// afterwards.
Status benchmark(Session &session, int64_t length, int64_t n, int64_t warmup, int64_t steps, mtrun_timing &timing);

// Measures all-reduces between processes, without a session.
Status benchmarkAllReduces(const mtrun_options &options, std::span<mtrun_all_reduce_timing> timings);

// Writes the tuning file `path`. `repeats`: measurements per algorithm; 0 for the default.
Status tune(Session &session, const char *path, int32_t repeats, const std::function<void(const std::string &)> &line);

} // namespace mtrun
