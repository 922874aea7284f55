// SPDX-License-Identifier: Apache-2.0
//
// What a session does with data besides training, which is Fit.h: the calls of the same names of mtrun.h, in C++.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/session/Session.h"

#include <functional>
#include <string>

namespace mtrun {

// One pass over the data. `values`, which may be null: the losses and metrics of eval_step.
Status evaluate(Session &session, mtrun_dataset &data, const mtrun_loop_options &options, double *values);

// Predictions of all samples in a file; `index`: of the output, or -1 for all that the file can hold.
Status predictFile(Session &session, mtrun_dataset &data, int32_t index, const char *path);

// Times steps on `n` rows of random data, of one of the plan's lengths (0: of the largest); the variables are void
// afterwards.
Status benchmark(Session &session, int64_t length, int64_t n, int64_t warmup, int64_t steps, mtrun_timing &timing);

// Writes the tuning file `path`. `repeats`: 0 for as many as usual.
Status tune(Session &session, const char *path, int32_t repeats, const std::function<void(const std::string &)> &line);

} // namespace mtrun
