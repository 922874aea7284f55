// SPDX-License-Identifier: Apache-2.0
//
// plan-library-calls: marks the kernels that a GPU library can compute too (docs/libraries.md): one contraction of
// arguments, with at most a bias and a ReLU.
#include "compiler/Passes.h"
#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/Compilation.h"

namespace mtc {
#define GEN_PASS_DEF_LIBRARYCALLS
#include "compiler/Passes.h.inc"

namespace ops = mlir::mt;
namespace plan = mlir::plan;
using mlir::cast;
using mlir::dyn_cast;
using mlir::Value;
using mlir::plan::KernelOp;

namespace {

// The ops after a contraction that libraries support.
struct Epilogue {
  bool relu = false;
  int64_t bias = -1; // number of the argument
};

// Number of an argument; -1 for any other value.
int64_t argumentOf(Value value) {
  auto argument = dyn_cast<mlir::BlockArgument>(value);
  return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
}

// The only operation that uses a value; null if it has several or if it is the terminator.
mlir::Operation *onlyUser(Value value) {
  mlir::Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
  return user && !user->hasTrait<mlir::OpTrait::IsTerminator>() ? user : nullptr;
}

// Reads an optional bias with one number per column, then an optional ReLU; false if there are other ops.
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

using plan::CallKind;

plan::LibraryCallAttr makeCall(KernelOp op, CallKind kind, Value left, Value right, const Epilogue &epilogue,
                               plan::ProductSizesAttr product, plan::ConvolutionSizesAttr convolution) {
  if (argumentOf(left) < 0 || argumentOf(right) < 0 || !isF32(left) || !isF32(right))
    return {};
  bool isTf32 = ops::Compilation(op).getPrecision() == "tf32", hasBias = epilogue.bias >= 0;
  plan::CallEpilogue last = epilogue.relu ? (hasBias ? plan::CallEpilogue::bias_relu : plan::CallEpilogue::relu)
                                          : (hasBias ? plan::CallEpilogue::bias : plan::CallEpilogue::none);
  return plan::LibraryCallAttr::get(op.getContext(), kind, isTf32 ? plan::CallMath::tf32 : plan::CallMath::f32, last,
                                    argumentOf(left), argumentOf(right), op.getBody().front().getNumArguments(),
                                    epilogue.bias, product, convolution);
}

plan::LibraryCallAttr makeProduct(KernelOp op, ops::MatmulOp product) {
  Value left = product.getLhs(), right = product.getRhs();
  Epilogue epilogue;
  if (product.getTransposeA() || !isSplit(left) || tensorOf(right).getRank() != 2 || isSplit(right) ||
      !readEpilogue(product.getResult(), epilogue))
    return {};
  auto sizes = plan::ProductSizesAttr::get(op.getContext(), linesOf(left), tensorOf(left).getShape().back(),
                                           tensorOf(product.getResult()).getShape().back(), product.getTransposeB());
  return makeCall(op, CallKind::product, left, right, epilogue, sizes, {});
}

plan::LibraryCallAttr makeProductTree(KernelOp op, ops::MatmulOp product) {
  Value left = product.getLhs(), right = product.getRhs();
  if (!product.getTransposeA() || product.getTransposeB() || tensorOf(left).getRank() != 2 || !isSplit(left) ||
      !isSplit(right) || op.getBody().front().getTerminator()->getOperands() != mlir::ValueRange(product.getResult()))
    return {};
  auto sizes = plan::ProductSizesAttr::get(op.getContext(), /*lines=*/1, tensorOf(left).getShape().back(),
                                           tensorOf(right).getShape().back(), /*transposed=*/false);
  return makeCall(op, CallKind::product_tree, left, right, {}, sizes, {});
}

plan::AxisAttr makeAxis(mlir::MLIRContext *context, const ops::Window &window) {
  return plan::AxisAttr::get(context, window.inputs, window.outputs, window.taps, window.stride, window.dilation,
                             window.low, window.high);
}

template <typename Op>
plan::LibraryCallAttr makeConvolution(KernelOp op, CallKind kind, Op convolution, Value left, Value right) {
  Epilogue epilogue;
  Value result = convolution.getResult();
  bool tree = kind == CallKind::convolution_tree;
  if (!isSplit(left) || isSplit(right) != tree || isSplit(result) == tree || !readEpilogue(result, epilogue) ||
      (kind != CallKind::convolution && (epilogue.relu || epilogue.bias >= 0)))
    return {};
  ops::Convolution window = convolution.getConvolution();
  mlir::MLIRContext *context = op.getContext();
  auto sizes =
      plan::ConvolutionSizesAttr::get(context, makeAxis(context, window.rows), makeAxis(context, window.columns),
                                      window.channels, window.filters, window.groups);
  return makeCall(op, kind, left, right, epilogue, {}, sizes);
}

// The library call that computes a kernel; null if there is none.
plan::LibraryCallAttr libraryCallOf(KernelOp op) {
  for (mlir::Operation &inner : op.getBody().front()) {
    if (auto product = dyn_cast<ops::MatmulOp>(inner)) {
      if (op.getKind() == ops::KernelKind::matmul)
        return makeProduct(op, product);
      if (op.getKind() == ops::KernelKind::matmul_wgrad)
        return makeProductTree(op, product);
    }
    if (auto forward = dyn_cast<ops::Conv2DOp>(inner); forward && op.getKind() == ops::KernelKind::conv)
      return makeConvolution(op, CallKind::convolution, forward, forward.getInput(), forward.getKernel());
    if (auto input = dyn_cast<ops::Conv2DInputGradientOp>(inner); input && op.getKind() == ops::KernelKind::conv)
      return makeConvolution(op, CallKind::convolution_input, input, input.getGradient(), input.getKernel());
    if (auto tree = dyn_cast<ops::Conv2DKernelGradientOp>(inner); tree && op.getKind() == ops::KernelKind::conv_wgrad)
      return makeConvolution(op, CallKind::convolution_tree, tree, tree.getInput(), tree.getGradient());
  }
  return {};
}

struct LibraryCalls : impl::LibraryCallsBase<LibraryCalls> {
  void runOnOperation() override {
    for (auto op : getOperation().getOps<KernelOp>())
      if (plan::LibraryCallAttr call = libraryCallOf(op))
        op.setLibraryCallAttr(call);
  }
};

} // namespace
} // namespace mtc
