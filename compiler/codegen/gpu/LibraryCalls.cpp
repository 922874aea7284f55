// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/LibraryCalls.h"

#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/Compilation.h"

namespace mtc {

namespace tables = ::mt::plan;
namespace ops = mlir::mt;
using mlir::cast;
using mlir::dyn_cast;
using mlir::Value;
using mlir::plan::KernelOp;

namespace {

// What follows a contraction, as far as a library has it.
struct Epilogue {
  bool relu = false;
  int64_t bias = -1; // number of the argument
};

// The number of an argument, -1 for any other value.
int64_t argumentOf(Value value) {
  auto argument = dyn_cast<mlir::BlockArgument>(value);
  return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
}

// The only operation that uses a value, unless that is the end of the body.
mlir::Operation *onlyUser(Value value) {
  mlir::Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
  return user && !user->hasTrait<mlir::OpTrait::IsTerminator>() ? user : nullptr;
}

// A bias of a number for each column, then a ReLU, each of which may be missing; false if there is more.
bool readEpilogue(Value product, Epilogue &epilogue) {
  mlir::Block *body = product.getParentBlock();
  mlir::OperandRange yields = body->getTerminator()->getOperands();
  if (yields.size() != 1)
    return false;
  Value value = product;
  if (auto add = mlir::dyn_cast_or_null<ops::AddOp>(onlyUser(value))) {
    Value other = add->getOperand(0) == value ? add->getOperand(1) : add->getOperand(0);
    epilogue.bias = argumentOf(other);
    mlir::RankedTensorType type = tensorOf(other);
    if (epilogue.bias < 0 || type.getRank() != 1 || type.getDimSize(0) != tensorOf(product).getShape().back())
      return false;
    value = add->getResult(0);
  }
  if (auto relu = mlir::dyn_cast_or_null<ops::ReluOp>(onlyUser(value))) {
    epilogue.relu = true;
    value = relu->getResult(0);
  }
  return value == yields[0] && value.hasOneUse();
}

bool isF32(Value value) { return elementOf(value).isF32(); }

using Call = std::unique_ptr<tables::LibraryCallT>;

Call makeCall(tables::CallKind kind, KernelOp op, Value left, Value right) {
  if (argumentOf(left) < 0 || argumentOf(right) < 0 || !isF32(left) || !isF32(right))
    return {};
  auto call = std::make_unique<tables::LibraryCallT>();
  call->kind = kind;
  if (mlir::mt::Compilation(op).getPrecision() == "tf32")
    call->math = tables::CallMath::TF32;
  call->left = argumentOf(left);
  call->right = argumentOf(right);
  call->result = op.getBody().front().getNumArguments();
  return call;
}

void setEpilogue(tables::LibraryCallT &call, const Epilogue &epilogue) {
  call.bias = static_cast<int32_t>(epilogue.bias);
  call.epilogue = static_cast<tables::CallEpilogue>((epilogue.relu ? 1 : 0) + (epilogue.bias >= 0 ? 2 : 0));
}

Call makeProduct(KernelOp op, ops::MatmulOp product) {
  Value left = product.getLhs(), right = product.getRhs();
  Epilogue epilogue;
  if (product.getTransposeA() || !isSplit(left) || tensorOf(right).getRank() != 2 || isSplit(right) ||
      !readEpilogue(product.getResult(), epilogue))
    return {};
  Call call = makeCall(tables::CallKind::Product, op, left, right);
  if (!call)
    return {};
  call->lines = linesOf(left);
  call->depth = tensorOf(left).getShape().back();
  call->columns = tensorOf(product.getResult()).getShape().back();
  call->transposed = product.getTransposeB();
  setEpilogue(*call, epilogue);
  return call;
}

Call makeProductTree(KernelOp op, ops::MatmulOp product) {
  Value left = product.getLhs(), right = product.getRhs();
  if (!product.getTransposeA() || product.getTransposeB() || tensorOf(left).getRank() != 2 || !isSplit(left) ||
      !isSplit(right) || op.getBody().front().getTerminator()->getOperands() != mlir::ValueRange(product.getResult()))
    return {};
  Call call = makeCall(tables::CallKind::ProductTree, op, left, right);
  if (!call)
    return {};
  call->lines = 1;
  call->depth = tensorOf(left).getShape().back();
  call->columns = tensorOf(right).getShape().back();
  return call;
}

std::unique_ptr<tables::CallAxis> makeAxis(const ops::Window &window) {
  auto size = [](int64_t number) { return static_cast<uint32_t>(number); };
  return std::make_unique<tables::CallAxis>(size(window.inputs), size(window.outputs), size(window.taps),
                                            size(window.stride), size(window.dilation), size(window.low),
                                            size(window.high));
}

template <typename Op>
Call makeConvolution(KernelOp op, tables::CallKind kind, Op convolution, Value left, Value right) {
  Epilogue epilogue;
  Value result = convolution.getResult();
  bool tree = kind == tables::CallKind::ConvolutionTree;
  if (!isSplit(left) || isSplit(right) != tree || isSplit(result) == tree || !readEpilogue(result, epilogue) ||
      (kind != tables::CallKind::Convolution && (epilogue.relu || epilogue.bias >= 0)))
    return {};
  Call call = makeCall(kind, op, left, right);
  if (!call)
    return {};
  ops::Convolution window = convolution.getConvolution();
  call->down = makeAxis(window.rows);
  call->across = makeAxis(window.columns);
  call->channels = static_cast<uint32_t>(window.channels);
  call->filters = static_cast<uint32_t>(window.filters);
  call->groups = static_cast<uint32_t>(window.groups);
  setEpilogue(*call, epilogue);
  return call;
}

} // namespace

uint64_t callWorkspaceBytes(const tables::PlanT &plan, bool limited) {
  constexpr uint64_t part = 8, unit = 1 << 20;
  uint64_t arena = 0;
  for (const auto &program : plan.programs)
    arena = std::max(arena, program->variants.front()->arena_bytes);
  return limited ? minCallWorkspace : std::max(minCallWorkspace, arena / part / unit * unit);
}

Call libraryCallOf(KernelOp op) {
  for (mlir::Operation &inner : op.getBody().front()) {
    if (auto product = dyn_cast<ops::MatmulOp>(inner)) {
      if (op.getKind() == ops::KernelKind::matmul)
        return makeProduct(op, product);
      if (op.getKind() == ops::KernelKind::matmul_wgrad)
        return makeProductTree(op, product);
    }
    if (auto forward = dyn_cast<ops::Conv2DOp>(inner); forward && op.getKind() == ops::KernelKind::conv)
      return makeConvolution(op, tables::CallKind::Convolution, forward, forward.getInput(), forward.getKernel());
    if (auto input = dyn_cast<ops::Conv2DInputGradientOp>(inner); input && op.getKind() == ops::KernelKind::conv)
      return makeConvolution(op, tables::CallKind::ConvolutionInput, input, input.getGradient(), input.getKernel());
    if (auto tree = dyn_cast<ops::Conv2DKernelGradientOp>(inner); tree && op.getKind() == ops::KernelKind::conv_wgrad)
      return makeConvolution(op, tables::CallKind::ConvolutionTree, tree, tree.getInput(), tree.getGradient());
  }
  return {};
}

} // namespace mtc
