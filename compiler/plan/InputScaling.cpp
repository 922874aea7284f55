// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/InputScaling.h"

#include <cmath>
#include <cstring>
#include <map>

using namespace mlir;
using mt::Tensor;

namespace mtc {
namespace {

constexpr int64_t maxElements = 1 << 20; // largest number of elements of a tensor that is analyzed
// relative difference of numbers that count as equal; covers rounding of weights that add up to 1
constexpr double nearness = 1e-5;

// scale * x + offset of an input's values x. Both tensors broadcast to a sample, aligned at the last axis.
struct Affine {
  Tensor scale = Tensor::scalar(1), offset = Tensor::scalar(0);
  bool varies = false;    // further scales or offsets, of other elements, were left out
  bool variables = false; // the scale or offset is a variable, which a file of weights may change

  bool uniform() const { return scale.size() == 1 && offset.size() == 1; }
};

bool isNear(double a, double b) { return std::fabs(a - b) <= nearness * std::max(std::fabs(a), std::fabs(b)); }

// Replaces a tensor of equal elements by a scalar.
void collapse(Tensor &tensor) {
  if (llvm::all_of(tensor.data, [&](double element) { return isNear(element, tensor.data[0]); }))
    tensor = Tensor::scalar(tensor.data[0]);
}

std::optional<Tensor> combine(const Tensor &a, const Tensor &b, double (*of)(double, double)) {
  SmallVector<int64_t> shape;
  int64_t size = 1;
  for (int64_t axis = -std::max(a.rank(), b.rank()); axis < 0; ++axis) {
    auto extent = [&](const Tensor &tensor) { return -axis <= tensor.rank() ? tensor.shape[tensor.rank() + axis] : 1; };
    shape.push_back(std::max(extent(a), extent(b)));
    if ((size *= shape.back()) > maxElements || size == 0)
      return std::nullopt;
  }
  Tensor result(shape);
  int64_t at = 0;
  for (mt::Index index(shape); !index.done(); index.next())
    result.data[at++] = of(a.data[index.offsetIn(a.shape)], b.data[index.offsetIn(b.shape)]);
  collapse(result);
  return result;
}

double plus(double a, double b) { return a + b; }
double minus(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double over(double a, double b) { return a / b; }

class Finder {
public:
  Finder(mt::ModelOp model, ArrayRef<NamedTensor> initial) : block(model.getBody().front()) {
    for (const NamedTensor &tensor : initial)
      values[tensor.name] = &tensor;
  }

  // Finds the last value that is an affine function of the input and through which every use of the input passes.
  std::optional<InputScaling> find(mt::InputOp input) {
    affine.clear();
    affine[input.getResult()] = {};
    DenseSet<Value> reached = {input.getResult()};
    auto uses = [](Value value) { return std::distance(value.use_begin(), value.use_end()); };
    auto open = uses(input.getResult()); // number of uses of the affine values so far that the walk has not reached
    std::optional<Affine> last;
    for (Operation &op : llvm::make_range(std::next(Block::iterator(input)), block.end())) {
      auto from = llvm::count_if(op.getOperands(), [&](Value operand) { return reached.contains(operand); });
      open -= from;
      if (!from || op.getNumResults() != 1)
        continue;
      Value result = op.getResult(0);
      reached.insert(result);
      std::optional<Affine> composed = follow(op);
      if (composed && open == 0)
        last = composed;
      if (composed)
        affine[result] = std::move(*composed);
      open += uses(result);
    }
    bool same = last && last->uniform() && !last->varies && !last->variables && isNear(last->scale.data[0], 1) &&
                std::fabs(last->offset.data[0]) <= nearness;
    if (!last || same)
      return std::nullopt;
    return InputScaling{input.getName().str(), last->scale.data[0], last->offset.data[0],
                        last->varies || !last->uniform()};
  }

private:
  const Affine *lookup(Value value) const {
    auto found = affine.find(value);
    return found == affine.end() ? nullptr : &found->second;
  }

  // The affine function that an op computes from affine values; nullopt if the op computes no affine function.
  std::optional<Affine> follow(Operation &op) {
    // Outside of training, random augmentation is the identity.
    if (auto random = dyn_cast<mt::WhileTrainingOp>(op)) {
      const Affine *value = lookup(random.getOtherwise());
      return value ? std::optional(*value) : std::nullopt;
    }
    const Affine *value = lookup(op.getOperand(0));
    if (isa<mt::CastOp>(op))
      return value ? std::optional(*value) : std::nullopt;
    // Values move to other indices; a border is ignored.
    if (isa<mt::TakeOp, mt::BroadcastOp>(op) || (op.hasTrait<mt::Moves>() && !isa<mt::ConcatOp>(op)))
      return value ? std::optional(moved(*value)) : std::nullopt;
    if (isa<mt::AddOp, mt::SubOp, mt::MulOp, mt::DivOp>(op))
      return compute(op);
    return std::nullopt;
  }

  static Affine moved(const Affine &value) {
    if (value.uniform())
      return value;
    return {Tensor::scalar(value.scale.data[0]), Tensor::scalar(value.offset.data[0]), true, value.variables};
  }

  std::optional<Affine> compute(Operation &op) {
    const Affine *a = lookup(op.getOperand(0)), *b = lookup(op.getOperand(1));
    bool sum = isa<mt::AddOp, mt::SubOp>(op);
    auto add = isa<mt::AddOp>(op) ? plus : minus;
    bool variable = false;
    std::optional<Tensor> constant;
    if (!a && !b)
      return std::nullopt;
    if (!a || !b)
      constant = known(op.getOperand(a ? 1 : 0), variable);
    if ((a && b) ? !sum : !constant)
      return std::nullopt;
    Affine result = a ? *a : *b;
    result.varies |= b && b->varies;
    result.variables |= variable || (b && b->variables);
    std::optional<Tensor> scale = result.scale, offset;
    if (a && b) {
      scale = combine(a->scale, b->scale, add);
      offset = combine(a->offset, b->offset, add);
    } else if (sum) {
      offset = a ? combine(a->offset, *constant, add) : combine(*constant, b->offset, add);
      if (b && isa<mt::SubOp>(op))
        scale = combine(Tensor::scalar(-1), b->scale, times);
    } else if (isa<mt::MulOp>(op) || a) {
      auto by = isa<mt::MulOp>(op) ? times : over;
      scale = combine(result.scale, *constant, by);
      offset = combine(result.offset, *constant, by);
    }
    if (!scale || !offset || !llvm::all_of(scale->data, [](double x) { return std::isfinite(x); }) ||
        !llvm::all_of(offset->data, [](double x) { return std::isfinite(x); }))
      return std::nullopt;
    result.scale = std::move(*scale);
    result.offset = std::move(*offset);
    return result;
  }

  // The value of an expression of constants and of variables that no step changes; nullopt if it depends on anything
  // else.
  std::optional<Tensor> known(Value value, bool &variable, unsigned depth = 0) {
    constexpr unsigned deepest = 16;
    auto type = cast<RankedTensorType>(value.getType());
    Operation *op = value.getDefiningOp();
    if (!op || !type.hasStaticShape() || type.getNumElements() > maxElements || type.getNumElements() == 0 ||
        depth > deepest)
      return std::nullopt;
    if (auto start = dyn_cast<mt::VariableOp>(op)) {
      variable = true;
      return valueOf(start);
    }
    auto meaning = dyn_cast<mt::InterpretOpInterface>(op);
    SmallVector<Tensor> operands, results;
    if (!meaning || isa<mt::BatchSizeOp, mt::RandomUniformOp, mt::RandomNormalOp>(op) || op->getNumResults() != 1)
      return std::nullopt;
    for (Value operand : op->getOperands())
      if (std::optional<Tensor> found = known(operand, variable, depth + 1))
        operands.push_back(std::move(*found));
      else
        return std::nullopt;
    if (failed(meaning.interpret({}, operands, results)))
      return std::nullopt;
    return results[0];
  }

  std::optional<Tensor> valueOf(mt::VariableOp variable) const {
    auto type = cast<RankedTensorType>(variable.getType());
    auto model = cast<mt::ModelOp>(block.getParentOp());
    if (!variable.getFrozen() || !type.getElementType().isF32() || model.findAssign(variable.getName()))
      return std::nullopt;
    Tensor tensor(type.getShape());
    auto found = values.find(variable.getName().str());
    if (found != values.end()) {
      if (found->second->dtype != MT_F32 || found->second->bytes.size() != tensor.data.size() * sizeof(float))
        return std::nullopt; // a later check emits the error
      for (size_t i = 0; i < tensor.data.size(); ++i) {
        float element;
        std::memcpy(&element, &found->second->bytes[i * sizeof element], sizeof element);
        tensor.data[i] = element;
      }
      return tensor;
    }
    mt::InitKind kind = variable.getInit();
    if (kind != mt::InitKind::zeros && kind != mt::InitKind::ones && kind != mt::InitKind::constant)
      return std::nullopt;
    double start = kind == mt::InitKind::ones    ? 1
                   : kind == mt::InitKind::zeros ? 0
                                                 : variable.getValue()->convertToDouble();
    llvm::fill(tensor.data, start);
    return tensor;
  }

  Block &block;
  std::map<std::string, const NamedTensor *> values;
  DenseMap<Value, Affine> affine;
};

} // namespace

std::vector<InputScaling> findInputScaling(mt::ModelOp model, ArrayRef<NamedTensor> initial) {
  std::vector<InputScaling> scalings;
  Finder finder(model, initial);
  for (mt::InputOp input : model.getOps<mt::InputOp>())
    if (std::optional<InputScaling> scaling = finder.find(input))
      scalings.push_back(std::move(*scaling));
  return scalings;
}

} // namespace mtc
