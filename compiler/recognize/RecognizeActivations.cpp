// SPDX-License-Identifier: Apache-2.0
//
// mt-recognize-activations: mt.gelu, mt.gelu_tanh, mt.silu and mt.mish in place of their formulas. Each is a product
// of x and a smooth function of x, which frameworks and exporters write in many ways: by erf, by erfc, by the
// polynomials of erfc that XLA has. So a product is not compared with forms: it is computed at some numbers x, and
// compared with the operation there. The operations have gradients of their own, which need x alone. And mt.relu, in a
// step whose gradients are written out, with its mask by the result, which is stored, and not by x, which is not.
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tensor.h"
#include "dialects/mt/Types.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_RECOGNIZEACTIVATIONS
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Operations between x and the product; the polynomials of erfc are about 80.
constexpr size_t maxOperations = 192;

const std::vector<double> &samples() {
  static const std::vector<double> numbers = [] {
    std::vector<double> all = {0};
    for (double size : {1e-3, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9,  1.0,  1.2,  1.5, 2.0,
                        2.5,  3.0,  4.0, 5.0, 6.0, 8.0, 11.0, 20.0, 50.0, 90.0}) {
      all.push_back(size);
      all.push_back(-size);
    }
    return all;
  }();
  return numbers;
}

// The element-wise operations that make a product of x and numbers, in order; empty: others take part, or too many.
SmallVector<Operation *> operationsBetween(Value x, Operation *product) {
  llvm::DenseSet<Operation *> found;
  SmallVector<Operation *> waiting = {product};
  while (!waiting.empty()) {
    Operation *op = waiting.pop_back_val();
    if (!found.insert(op).second)
      continue;
    if (!isa<mt::ElementwiseOpInterface>(op) || op->getNumResults() != 1 || op->getBlock() != product->getBlock() ||
        found.size() > maxOperations)
      return {};
    for (Value operand : op->getOperands())
      if (operand != x && !numberOf(operand)) {
        if (!operand.getDefiningOp())
          return {};
        waiting.push_back(operand.getDefiningOp());
      }
  }
  SmallVector<Operation *> ordered(found.begin(), found.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

// Evaluates an operation on operands with one number, or with one number per sample.
std::optional<mt::Tensor> evaluate(Operation *op, ArrayRef<mt::Tensor> operands) {
  // The operation on lines of samples, whatever its shape is in the model.
  OwningOpRef<Operation *> clone = op->clone();
  auto type = RankedTensorType::get({ShapedType::kDynamic}, tensorOf(op->getResult(0)).getElementType());
  (*clone)->getResult(0).setType(type);
  mt::EvalContext context;
  context.rows = context.samples = static_cast<int64_t>(samples().size());
  SmallVector<mt::Tensor> results;
  auto meaning = dyn_cast<mt::InterpretOpInterface>(*clone);
  if (!meaning || failed(meaning.interpret(context, operands, results)) || results.size() != 1)
    return std::nullopt;
  return results[0];
}

// The values of a product at the samples of x.
std::optional<mt::Tensor> valuesOf(Value x, Operation *product) {
  SmallVector<Operation *> operations = operationsBetween(x, product);
  bool transcendental = llvm::any_of(operations, [](Operation *op) {
    return isa<mt::ErfOp, mt::ExpOp, mt::TanhOp, mt::SigmoidOp, mt::SoftplusOp>(op);
  });
  if (!transcendental)
    return std::nullopt;
  llvm::DenseMap<Value, mt::Tensor> values;
  mt::Tensor &line = values[x];
  line.shape = {static_cast<int64_t>(samples().size())};
  line.data = samples();
  for (Operation *op : operations) {
    SmallVector<mt::Tensor> operands;
    for (Value operand : op->getOperands())
      operands.push_back(values.count(operand) ? values[operand] : mt::Tensor::scalar(*numberOf(operand)));
    std::optional<mt::Tensor> result = evaluate(op, operands);
    if (!result)
      return std::nullopt;
    values[op->getResult(0)] = std::move(*result);
  }
  return values[product->getResult(0)];
}

struct Activation {
  double (*function)(double);
  Value (*build)(OpBuilder &, Location, Value);
};
template <typename Op> Value build(OpBuilder &builder, Location location, Value x) {
  return Op::create(builder, location, x.getType(), x);
}
template <typename Op> constexpr Activation activation() { return {Op::evaluate, build<Op>}; }

const Activation activations[] = {activation<mt::GeluOp>(), activation<mt::GeluTanhOp>(), activation<mt::SiluOp>(),
                                  activation<mt::MishOp>()};

// Formulas have constants of float32, and approximations of erf that are good to its roundings.
bool isNear(double a, double b) {
  constexpr double absolute = 2e-7, relative = 5e-6;
  return std::abs(a - b) <= absolute + relative * std::abs(b);
}

const Activation *activationAt(Value x, Operation *product) {
  std::optional<mt::Tensor> values = valuesOf(x, product);
  if (!values || values->data.size() != samples().size())
    return nullptr;
  for (const Activation &activation : activations)
    if (llvm::all_of(llvm::zip(samples(), values->data),
                     [&](auto pair) { return isNear(std::get<1>(pair), activation.function(std::get<0>(pair))); }))
      return &activation;
  return nullptr;
}

// x is one of the factors.
void match(Operation *product) {
  if (!tensorOf(product->getResult(0)).getElementType().isF32())
    return;
  SmallVector<Value> candidates = factorsOf(product->getResult(0)).values;
  if (auto divide = dyn_cast<mt::DivOp>(product))
    candidates = factorsOf(divide.getLhs()).values;
  for (Value x : candidates) {
    if (x.getType() != product->getResult(0).getType() || x.getDefiningOp() == product)
      continue;
    const Activation *found = activationAt(x, product);
    if (!found)
      continue;
    OpBuilder builder(product);
    return replaceMatched(product, found->build(builder, product->getLoc(), x));
  }
}

// The x of an operation that is max(x, 0) or x > 0; null: it is neither.
template <typename Op> Value operandWith0(Op op) {
  for (auto [x, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
    if (x.getType() == op.getLhs().getType() && tensorOf(x).getElementType().isF32() && numberOf(other) == 0.0 &&
        tensorOf(x).getShape() == tensorOf(op.getResult()).getShape() && (isa<mt::MaximumOp>(op) || x == op.getLhs()))
      return x;
  return {};
}

// max(x, 0) is mt.relu x where nothing differentiates it, and x > 0 is what the larger one says.
void matchRelus(mt::UpdateOp update) {
  Block &body = update.getBody().front();
  bool differentiates = !body.getOps<mt::DerivativeOp>().empty();
  llvm::DenseMap<Value, mt::MaximumOp> larger;
  llvm::DenseMap<Value, SmallVector<mt::CompareOp>> masks;
  for (Operation &op : body) {
    if (auto maximum = dyn_cast<mt::MaximumOp>(op))
      if (Value x = operandWith0(maximum))
        larger.try_emplace(x, maximum);
    if (auto compare = dyn_cast<mt::CompareOp>(op); compare && compare.getKind() == mt::Compare::gt)
      if (Value x = operandWith0(compare))
        masks[x].push_back(compare);
  }
  for (auto op : llvm::make_early_inc_range(body.getOps<mt::MaximumOp>())) {
    Value x = operandWith0(op);
    if (!x || larger.lookup(x) != op)
      continue;
    SmallVector<mt::CompareOp> &compares = masks[x];
    Operation *first = op;
    Value zero; // of a mask before it
    if (!compares.empty() && compares[0]->isBeforeInBlock(op)) {
      first = compares[0];
      zero = compares[0].getRhs();
    }
    OpBuilder builder(first);
    Value made = differentiates
                     ? (zero ? mt::MaximumOp::create(builder, op.getLoc(), x, zero).getResult() : op.getResult())
                     : mt::ReluOp::create(builder, op.getLoc(), x.getType(), x).getResult();
    for (mt::CompareOp compare : compares)
      compare.getLhsMutable().assign(made);
    if (made != op.getResult())
      replaceMatched(op, made);
  }
}

struct RecognizeActivations : impl::RecognizeActivationsBase<RecognizeActivations> {
  void runOnOperation() override {
    if (mt::Compilation(getOperation()).isDouble()) // constants are matched with the accuracy of f32
      return;
    getOperation().walk([](mt::UpdateOp op) { matchRelus(op); });
    forEach<mt::MulOp>(getOperation(), [](mt::MulOp op) { match(op); });
    forEach<mt::DivOp>(getOperation(), [](mt::DivOp op) { match(op); });
  }
};

} // namespace
} // namespace mtc
