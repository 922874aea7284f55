// SPDX-License-Identifier: Apache-2.0
//
// Describes a data source and measures its speed, without a plan.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>

namespace mtrun {

// Prints the fields of the data and its first `samples` samples, one line each.
Status describeData(const char *spec, int64_t samples, void (*line)(void *user, const char *text), void *user);

// Writes the columns file of a source csv: and calls `line` for each column.
Status saveColumns(const char *spec, const char *path, void (*line)(void *user, const char *text), void *user);

// Measures the rate of batches without computation, and the decoding library alone. Runs for about `seconds` seconds.
Status benchmarkData(const char *spec, int64_t batch, double seconds, void (*line)(void *user, const char *text),
                     void *user);

} // namespace mtrun
