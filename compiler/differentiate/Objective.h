// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_OBJECTIVE_H
#define COMPILER_DIFFERENTIATE_OBJECTIVE_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// A weighted mean over the batch. Both values are tensor<f32>, but for the sums of a metric.
struct Mean {
  mlir::Value value, weight;
};

// The loss that is reported: `sum(w_i v_i) / divisor`, of values of the program. Its weight in the mean over steps is
// n, as in Keras.
Mean buildLoss(mlir::OpBuilder &builder, mlir::mt::LossOp loss, mlir::Value values, mlir::Value weights);
// The loss times its scale: the term of the total loss.
mlir::Value scaleLoss(mlir::OpBuilder &builder, mlir::mt::LossOp loss, mlir::Value value);
// Term of the total loss for a regularizer, tensor<f32>; null if both of its factors are 0.
mlir::Value buildRegularizer(mlir::OpBuilder &builder, mlir::mt::RegularizerOp regularizer, mlir::Value value);
// sum(w_i v_i) / sum(w_i), or 0 if all weights are 0. For a finalizer of sums: the sums of the values over the samples,
// and n.
Mean buildMetric(mlir::OpBuilder &builder, mlir::mt::MetricOp metric, mlir::Value values, mlir::Value weights);

} // namespace mtc

#endif
