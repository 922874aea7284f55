// SPDX-License-Identifier: Apache-2.0
//
// Computes metrics from their sums. Sums are added over steps in double: `value * weight` for a mean, and for other
// finalizers the counts of a step, element by element.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>

namespace mtrun {

// Returns the number of sums of a metric: 1 for a mean.
size_t sumsOf(const ::mt::plan::Metric &metric);

// Returns the metric over all samples from its `sums` (sumsOf(metric) numbers) and their `weight`; 0 if the weight or a
// divisor is 0.
double metricValue(const ::mt::plan::Metric &metric, const double *sums, double weight);

// The same for a program. `sums` has the sums of all metrics one after another; `weights` has one weight per metric.
size_t sumsOf(const ::mt::plan::Program &program);
double metricValue(const ::mt::plan::Program &program, size_t metric, const double *sums, const double *weights);

} // namespace mtrun
