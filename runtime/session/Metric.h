// SPDX-License-Identifier: Apache-2.0
//
// What a metric is of its sums. Sums add up over steps, in double: of a mean `value * weight`, of the other formulas
// what a step counted, element by element.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>

namespace mtrun {

// Sums that a metric of the plan keeps: 1 for a mean.
size_t sumsOf(const ::mt::plan::Metric &metric);

// The metric over all samples that `sums` (sumsOf(metric) of them) and their `weight` stand for; 0 where the weight or
// a divisor is.
double metricValue(const ::mt::plan::Metric &metric, const double *sums, double weight);

// The same of a program, whose sums lie one metric after the other, with a weight for each metric.
size_t sumsOf(const ::mt::plan::Program &program);
double metricValue(const ::mt::plan::Program &program, size_t metric, const double *sums, const double *weights);

} // namespace mtrun
