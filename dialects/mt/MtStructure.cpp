// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the ops that give a module its structure.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"
#include "dialects/mt/Update.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"

#include <cmath>
#include <limits>
#include <utility>

using namespace mlir;
using namespace mlir::mt;

static LogicalResult verifyBatchAxis(Operation *op, Type type) {
  if (!isSplit(type))
    return op->emitOpError("expected a batch axis `?` first, found ") << type;
  return success();
}

LogicalResult DeclareOp::verify() {
  if ((getRole() == VariableRole::average) != getOf().has_value())
    return emitOpError("expected `of` with the role average, and with no other role, found ")
           << (getOf() ? "another role" : "none");
  return success();
}

LogicalResult InputOp::verify() { return verifyBatchAxis(*this, getType()); }
LogicalResult TargetOp::verify() { return verifyBatchAxis(*this, getType()); }
LogicalResult SampleWeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 1 || !isSplit(type) || !isReal(type.getElementType()))
    return emitOpError("expected tensor<?xf32>, found ") << type;
  return success();
}
LogicalResult OutputOp::verify() { return verifyBatchAxis(*this, getValue().getType()); }

void VariableOp::build(OpBuilder &builder, OperationState &state, Type type, StringRef name, InitKind init,
                       FloatAttr value, bool frozen) {
  build(builder, state, type, name, init, value, frozen, /*slot=*/false, VariableRoleAttr(), StringAttr(),
        /*no_weight_decay=*/false);
}

// Integers start with whole numbers.
static LogicalResult verifyIntegers(VariableOp op) {
  if (op.isTrainable())
    return op.emitOpError("expected a trainable variable of f32, found ") << op.getType();
  InitKind init = op.getInit();
  if (init != InitKind::zeros && init != InitKind::ones && init != InitKind::constant)
    return op.emitOpError("expected init(zeros), init(ones) or init(constant) of an i32 variable, found ")
           << stringifyInitKind(init);
  double value = op.getValue() ? op.getValue()->convertToDouble() : 0;
  if (!(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) ||
      value != std::floor(value))
    return op.emitOpError("expected a whole number of 32 bits to start with, found ") << value;
  return success();
}

static LogicalResult verifyRole(VariableOp op) {
  if (op.getFrozen() && op.getSlot())
    return op.emitOpError("expected `frozen` or `slot`, found both");
  std::optional<VariableRole> role = op.getRole();
  if ((role == VariableRole::average) != op.getOf().has_value())
    return op.emitOpError("expected `of` with the role average, and with no other role, found ")
           << (op.getOf() ? "another role" : "none");
  if (!role)
    return success();
  auto type = cast<RankedTensorType>(op.getType());
  if (*role == VariableRole::average)
    return op.getSlot() ? success()
                        : LogicalResult(op.emitOpError("expected a slot as average, found another variable"));
  bool counts = *role == VariableRole::iteration;
  if (!op.getFrozen() || type.getRank() != 0 ||
      !(counts ? type.getElementType().isInteger(32) : isReal(type.getElementType())))
    return op.emitOpError("expected a frozen variable of type ")
           << (counts ? "tensor<i32>" : "tensor<f32>") << " with the role " << stringifyVariableRole(*role)
           << ", found " << (op.getFrozen() ? "one" : "another") << " of " << type;
  return success();
}

LogicalResult VariableOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("expected a static shape, found ") << type;
  if (!isReal(type.getElementType()) && !type.getElementType().isInteger(32))
    return emitOpError("expected a variable of f32 or i32, found ") << type;
  if (llvm::is_contained(type.getShape(), 0))
    return emitOpError("expected sizes of 1 or more, found ") << type;
  bool spread = getInit() == InitKind::normal || getInit() == InitKind::uniform;
  bool valued = spread || getInit() == InitKind::constant;
  if (valued && !getValue())
    return emitOpError("expected a value: init(") << stringifyInitKind(getInit()) << " = 0.5)";
  if (!valued && getValue())
    return emitOpError("expected a value with init(constant), init(normal) and init(uniform) only, found one with ")
           << stringifyInitKind(getInit());
  if (spread && !(getValue()->isFinite() && !getValue()->isNegative()))
    return emitOpError("expected init(") << stringifyInitKind(getInit()) << ") of a finite value of 0 or more, found "
                                         << getValue()->convertToDouble();
  if (type.getElementType().isInteger() && failed(verifyIntegers(*this)))
    return failure();
  return verifyRole(*this);
}

static LogicalResult verifyWeighted(Operation *op, Value values, Value weights) {
  if (failed(verifyBatchAxis(op, values.getType())))
    return failure();
  if (!weights)
    return success();
  ArrayRef<int64_t> valueShape = tensorOf(values).getShape(), weightShape = tensorOf(weights).getShape();
  if (weightShape.size() > valueShape.size() || weightShape != valueShape.take_front(weightShape.size()))
    return op->emitOpError("expected weights of the shape of the values or of its first axes, found ")
           << weights.getType() << " for " << values.getType();
  return success();
}
LogicalResult LossOp::verify() {
  if (getDivisor() == Divisor::weights && !getWeights())
    return emitOpError("expected weights to divide by, found none");
  return verifyWeighted(*this, getValues(), getWeights());
}
// Checks the shape of sums over samples, and the parameters of the function of them.
static LogicalResult verifySums(Operation *op, Finalizer finalizer, ArrayRef<int64_t> shape, Type found,
                                ArrayRef<double> parameters) {
  auto wrong = [&](StringRef expected) {
    return op->emitOpError("expected sums of shape ")
           << expected << " for " << stringifyFinalizer(finalizer) << ", found " << found;
  };
  auto isParameters = [&](bool fits) -> LogicalResult {
    if (fits && llvm::all_of(parameters, [](double each) { return std::isfinite(each); }))
      return success();
    return op->emitOpError("expected other parameters for ") << stringifyFinalizer(finalizer);
  };
  size_t rank = shape.size(), count = parameters.size();
  switch (finalizer) {
  case Finalizer::roc:
  case Finalizer::precision_recall:
  case Finalizer::precision_recall_gain: {
    if (rank < 2 || shape[rank - 2] != 2 || shape.back() < 2)
      return wrong("[..., 2, thresholds]");
    int64_t areas = 1;
    for (int64_t size : shape.drop_back(2))
      areas *= size;
    return isParameters(count < 2 || count == 1 + static_cast<size_t>(areas));
  }
  case Finalizer::f1_macro:
  case Finalizer::f1_weighted:
    return rank == 2 && shape[0] == 3 ? isParameters(count < 2) : wrong("[3, classes]");
  case Finalizer::sum:
    return rank == 0 ? isParameters(count == 0) : wrong("[]");
  case Finalizer::iou:
    if (rank != 2 || shape[0] != shape[1])
      return wrong("[classes, classes]");
    return isParameters(count > 0 && llvm::all_of(parameters, [&](double id) {
                          return id >= 0 && id < static_cast<double>(shape[0]) && id == std::floor(id);
                        }));
  case Finalizer::r2:
    return rank == 2 && shape[0] == 4 ? isParameters(count == 3) : wrong("[4, columns]");
  default:
    return rank == 2 && shape[0] == 2 && shape[1] > 1 ? isParameters(count == 1) : wrong("[2, 1 + thresholds]");
  }
}

std::optional<Better> MetricOp::findBetter() {
  if (getBetter())
    return *getBetter();
  if (isOfSums(getFinalizer()) && getFinalizer() != Finalizer::sum)
    return Better::higher;
  Operation *op = getValues().getDefiningOp();
  if (op && op->hasTrait<HigherIsBetter>())
    return Better::higher;
  return op && op->hasTrait<LowerIsBetter>() ? std::optional(Better::lower) : std::nullopt;
}

LogicalResult MetricOp::verify() {
  if (failed(verifyWeighted(*this, getValues(), getWeights())))
    return failure();
  if (!findBetter())
    return emitOpError(
        "expected \"better higher\" or \"better lower\", which the op of the values does not imply, found neither");
  if (!isOfSums(getFinalizer()))
    return getParameters().empty() ? success() : emitOpError("expected no parameters of a mean, found some");
  if (getWeights())
    return emitOpError("expected weights in the values for ") << stringifyFinalizer(getFinalizer()) << ", found others";
  return verifySums(*this, getFinalizer(), tensorOf(getValues()).getShape().drop_front(), getValues().getType(),
                    getParameters());
}

LogicalResult ResultOp::verify() {
  RankedTensorType type = tensorOf(getValue());
  if (isSplit(type))
    return emitOpError("expected one value for the whole batch, found ") << type;
  if (isOfSums(getFinalizer()))
    return verifySums(*this, getFinalizer(), type.getShape(), type, getParameters());
  if (type.getRank() != 0)
    return emitOpError("expected one mean, found ") << type;
  return success();
}

// Limits of a plan file (docs/plan-format.md section 4).
static constexpr int64_t maxElements = int64_t{1} << 40;
static constexpr int64_t maxRank = 8;

static bool isControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

// Number of bytes of the longest prefix of `name` that is UTF-8.
static size_t validPrefix(StringRef name) {
  const llvm::UTF8 *at = name.bytes_begin(), *end = name.bytes_end();
  while (at != end && llvm::isLegalUTF8Sequence(at, end))
    at += llvm::getNumBytesForUTF8(*at);
  return at - name.bytes_begin();
}

bool mlir::mt::isText(StringRef name) { return llvm::none_of(name, isControl) && validPrefix(name) == name.size(); }

static LogicalResult verifyText(Operation *op, StringRef name) {
  if (name.empty() || name.size() > maxNameBytes)
    return op->emitOpError("expected a name of 1 to ") << maxNameBytes << " bytes, found " << name.size();
  if (auto control = llvm::find_if(name, isControl); control != name.end())
    return op->emitOpError("expected a name without control characters, found byte ")
           << unsigned(static_cast<unsigned char>(*control));
  if (size_t valid = validPrefix(name); valid != name.size())
    return op->emitOpError("expected a name in UTF-8, found byte ")
           << unsigned(static_cast<unsigned char>(name[valid])) << " after " << valid << " valid bytes";
  return success();
}

// The names of runs and files contain the model's name.
static LogicalResult verifyModelName(ModelOp model) {
  StringRef name = model.getSymName();
  if (failed(verifyText(model, name)))
    return failure();
  if (name.contains('/') || name.find_first_not_of('.') == StringRef::npos)
    return model.emitOpError("expected a valid file name, without '/' and not only dots, found \"") << name << "\"";
  return success();
}

// Checks that no earlier op of `set`, the set of names, has the op's name.
static LogicalResult verifyName(Operation *op, StringRef set, llvm::StringMap<Operation *> &seen) {
  StringRef name = op->getAttrOfType<StringAttr>("name").getValue();
  if (failed(verifyText(op, name)))
    return failure();
  auto [entry, isNew] = seen.try_emplace(name, op);
  if (isNew)
    return success();
  InFlightDiagnostic error = op->emitOpError("expected ")
                             << set << " of different names, found a second \"" << name << "\"";
  error.attachNote(entry->second->getLoc()) << "the first is here";
  return error;
}

// An optimizer derives names of slots from the variable's name: "adam/KERNEL_velocity".
static LogicalResult verifyVariableName(Operation *op, llvm::StringMap<Operation *> &seen) {
  constexpr size_t optimizerBytes = 64;
  auto variable = cast<VariableOp>(op);
  bool isOptimizers = variable.getSlot() || variable.getRole();
  if (size_t size = variable.getName().size(); !isOptimizers && size > maxNameBytes - optimizerBytes)
    return op->emitOpError("expected a name of at most ")
           << maxNameBytes - optimizerBytes << " bytes, to which an optimizer can add its own words, found " << size;
  return verifyName(op, "variables", seen);
}

// Only the first size may be `?`, and the product of the sizes must not overflow.
static LogicalResult verifyShape(Operation *op, RankedTensorType type) {
  if (type.getRank() > maxRank)
    return op->emitOpError("expected at most ") << maxRank << " axes, found " << type;
  int64_t elements = 1;
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    if (ShapedType::isDynamic(size) && axis != 0)
      return op->emitOpError("expected `?` as first axis only, found ") << type;
    if (!ShapedType::isDynamic(size) &&
        (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) || elements > maxElements))
      return op->emitOpError("expected at most 2^40 elements, found ") << type;
  }
  return success();
}

// The compiler rounds values to 16 bits, not the model. The exception is a cast that rounds, if its result is only cast
// back to f32.
static LogicalResult verifyElements(Operation *op, RankedTensorType type) {
  bool rounds = isa<CastOp>(op) && llvm::all_of(op->getUsers(), [](Operation *user) { return isa<CastOp>(user); });
  if (isHalf(type.getElementType()) && !rounds)
    return op->emitOpError("expected f32, i32 or i1 in a model (mtc compile --precision rounds to 16 bits), found ")
           << type;
  return success();
}

// Checks the results of the op and of the ops in its body.
static LogicalResult verifyResults(Operation &op) {
  WalkResult walked = op.walk([](Operation *inner) {
    if (inner->getName().getDialectNamespace() == "graph") // until `graph-layout`
      return WalkResult::advance();
    for (Value result : inner->getResults())
      if (failed(verifyShape(inner, tensorOf(result))) || failed(verifyElements(inner, tensorOf(result))))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return success(!walked.wasInterrupted());
}

// A model needs an input, a loss or a report of mt.update, and an optimizer. It must not use the name of the total
// loss, which the plan reports.
static LogicalResult verifyParts(ModelOp model) {
  Block &body = model.getBody().front();
  auto losses = llvm::to_vector(body.getOps<LossOp>());
  if (body.getOps<InputOp>().empty())
    return model.emitOpError("expected one mt.input or more, found none");
  if (losses.empty() && !model.reportsInUpdate())
    return model.emitOpError("expected one mt.loss or more")
           << (model.findUpdate() ? ", or an mt.result in mt.update" : "") << ", found none";
  if (auto regularizers = body.getOps<RegularizerOp>(); losses.empty() && !regularizers.empty())
    return (*regularizers.begin()).emitOpError("expected an mt.loss to which the regularizer adds, found none");
  if (body.getOps<OptimizerOpInterface>().empty() && !model.findUpdate())
    return model.emitOpError("expected one optimizer, found none");
  for (LossOp loss : losses)
    if (losses.size() > 1 && loss.getName() == "loss")
      return loss.emitOpError("expected another name than \"loss\", which is the total of the ")
             << losses.size() << " losses";
  for (MetricOp metric : body.getOps<MetricOp>())
    if (metric.getName() == "loss")
      return metric.emitOpError("expected another name than \"loss\", which is the total of the losses");
  return success();
}

LogicalResult ModelOp::verifyRegions() {
  if (failed(verifyModelName(*this)))
    return failure();
  llvm::StringMap<Operation *> signature, variables, results, reports;
  Operation *optimizer = nullptr;
  for (Operation &op : getBody().front()) {
    if (op.getName().getDialectNamespace() == "graph") // until `graph-layout`
      continue;
    if (!isa_and_present<MtDialect>(op.getDialect()) || (op.getNumRegions() != 0 && !isa<ScanOp, UpdateOp>(op)) ||
        isa<ReadOp, AssignOp, ResultOp, RateOp, DeclareOp, YieldOp, GradientOp>(op))
      return op.emitOpError("expected an op of a model inside mt.model");
    if (failed(verifyResults(op)))
      return failure();
    LogicalResult named = success();
    if (isa<InputOp, TargetOp, SampleWeightOp, OutputOp>(op))
      named = verifyName(&op, "inputs, targets, sample weights and outputs", signature);
    else if (isa<VariableOp>(op))
      named = verifyVariableName(&op, variables);
    else if (isa<LossOp, MetricOp>(op))
      named = verifyName(&op, "losses and metrics", results);
    if (failed(named))
      return failure();
    if (isa<OptimizerOpInterface, UpdateOp>(op) && std::exchange(optimizer, &op))
      return op.emitOpError("expected one optimizer in a model, found a second");
  }
  if (UpdateOp update = findUpdate())
    for (ResultOp report : update.getBody().front().getOps<ResultOp>())
      if (failed(verifyName(report, "results", reports)))
        return failure();
  return success(succeeded(verifyParts(*this)) && succeeded(verifyUpdate(*this)));
}
