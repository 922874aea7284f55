// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_OBJECTIVE_H
#define COMPILER_DIFFERENTIATE_OBJECTIVE_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// A weighted mean over the batch: tensor<f32> each, but for a metric's sums.
struct Mean {
  mlir::Value value, weight;
};

// `sum(w_i v_i) / divisor` of a model's loss, on the program's values: what is reported. Its weight over steps is n, as
// in Keras.
Mean buildLoss(mlir::OpBuilder &builder, mlir::mt::LossOp loss, mlir::Value values, mlir::Value weights);
// That times the loss's scale: what it adds to the total.
mlir::Value scaleLoss(mlir::OpBuilder &builder, mlir::mt::LossOp loss, mlir::Value value);
// What a regularizer adds to the total: tensor<f32>; null where both of its factors are 0.
mlir::Value buildRegularizer(mlir::OpBuilder &builder, mlir::mt::RegularizerOp regularizer, mlir::Value value);
// sum(w_i v_i) / sum(w_i), 0 where all weights are 0; of a formula of sums, the values' sums over the samples and n.
Mean buildMetric(mlir::OpBuilder &builder, mlir::mt::MetricOp metric, mlir::Value values, mlir::Value weights);

} // namespace mtc

#endif
