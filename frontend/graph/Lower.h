// SPDX-License-Identifier: Apache-2.0
//
// What lowers an op of `graph`: the value of its result, made of those of its operands.
#ifndef FRONTEND_GRAPH_LOWER_H
#define FRONTEND_GRAPH_LOWER_H

#include "dialects/graph/GraphDialect.h"
#include "frontend/logical/Compute.h"

namespace mtc::lower {

using logical::Refused;
using logical::Shape;
using logical::Size;
using logical::Value;

// Thrown where the error is reported already.
struct Reported {};

struct Call {
  logical::Ops &ops;
  mlir::Operation &op;
  llvm::SmallVector<Value> operands;

  mlir::graph::ValueType type() const { return llvm::cast<mlir::graph::ValueType>(op.getResult(0).getType()); }
  // The shape of the result, and the size of its last axis.
  Shape shape() const;
  Size lastSize() const;
};
Shape shapeOf(mlir::graph::ValueType type);

struct Entry {
  llvm::StringRef name; // "graph.slice"
  Value (*lower)(Call &call);
};
template <typename Op, Value (*lower)(Call &, Op)> constexpr Entry entry() {
  return {Op::getOperationName(), [](Call &call) { return lower(call, llvm::cast<Op>(call.op)); }};
}
// Each family's part of the table.
llvm::ArrayRef<Entry> elementwiseOps();
llvm::ArrayRef<Entry> partOps();
llvm::ArrayRef<Entry> productOps();
llvm::ArrayRef<Entry> reductionOps();
llvm::ArrayRef<Entry> linearOps();
// Makes the mt.metric of a metric of Keras' classes (Metrics.cpp). Reports an error at the op.
llvm::LogicalResult lowerMetric(mlir::OpBuilder &builder, mlir::graph::MetricOp op);
// An op of mt with the attributes of an op of graph that names it.
mlir::Value makeNamed(Call &call, llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);

} // namespace mtc::lower

#endif
