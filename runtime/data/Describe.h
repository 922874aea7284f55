// SPDX-License-Identifier: Apache-2.0
//
// A source of data in words, and how fast it is: without a plan.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>

namespace mtrun {

// Its fields and the first `samples` samples, a line each.
Status describeData(const char *spec, int64_t samples, void (*line)(void *user, const char *text), void *user);

// How fast batches come when nobody computes, and the decoding library alone. Takes about `seconds`.
Status benchmarkData(const char *spec, int64_t batch, double seconds, void (*line)(void *user, const char *text),
                     void *user);

} // namespace mtrun
