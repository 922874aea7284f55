// SPDX-License-Identifier: Apache-2.0
//
// Steps of a random model that are loops themselves: mt.scan, and sums along an axis.
#include "test/unit/random/Generator.h"

using namespace mlir;
using namespace mlir::mt;
using namespace mtc::test;

// A loop over the parts of x, or of a number of steps: a carry of a few numbers, which reads one and a variable.
Expr Generator::scanStep(const Expr &x) {
  Expr box = cube(x);
  ArrayRef<int64_t> shape = box.type().getShape();
  int64_t steps = shape[1], size = elementsPerRow(x.type()) / steps, state = oneOf<int64_t>({1, 3, 5});
  bool counted = chance(45), reversed = !counted && chance(60), drops = chance(20), stacks = counted || chance(70);
  Expr start = resized(any(), state), matrix = variable({state, state}), kernel(1.0);
  SmallVector<Value> inputs;
  if (counted) {
    steps = 2 + below(3);
  } else {
    inputs.push_back(reshape(box, {dynamic, steps, size}).value());
    kernel = variable({size, state});
  }
  // A replicated input too.
  if (!counted && chance(30))
    inputs.push_back(variable({steps, state}).value());
  Type carried = f32({dynamic, state});
  SmallVector<Type> results{carried};
  if (stacks)
    results.push_back(f32({dynamic, steps, state}));
  auto scan = ScanOp::create(builder, at, TypeRange(results), inputs, start.value(),
                             counted ? builder.getI64IntegerAttr(steps) : IntegerAttr(),
                             reversed ? builder.getUnitAttr() : UnitAttr());
  Block &body = scan.getBody().emplaceBlock();
  SmallVector<Value> parts;
  for (Value input : inputs)
    parts.push_back(body.addArgument(ScanOp::partOf(cast<RankedTensorType>(input.getType())), at));
  Expr before = e(body.addArgument(carried, at));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    Expr next = matmul(before, matrix);
    if (!counted)
      next = next + matmul(e(parts[0]), kernel);
    if (parts.size() > 1)
      next = next + e(parts[1]);
    if (drops)
      next = make<DropoutOp>(next.type(), next.value(), Value(), "loop_" + std::to_string(streams++),
                             llvm::APFloat(0.25f), ArrayRef<int64_t>()) +
             next * 0.25;
    next = tanh(next);
    SmallVector<Value> yielded{next.value()};
    if (stacks)
      yielded.push_back((next * 0.5).value());
    YieldOp::create(builder, at, yielded);
  }
  Expr last = resized(e(scan.getResult(0)), elementsPerRow(x.type()));
  Expr result = mix(x, reshape(last, x.type().getShape()));
  return stacks ? flattened(e(scan.getResult(1)), result) : result;
}

Expr Generator::cumsumStep(const Expr &x) {
  int64_t dim = 1 + below(x.type().getRank() - 1), size = x.type().getDimSize(dim);
  Expr sum = make<CumsumOp>(x.type(), x.value(), dim, chance(50));
  return mix(x, sum * (1.0 / size));
}
