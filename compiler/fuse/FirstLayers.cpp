// SPDX-License-Identifier: Apache-2.0
//
// Small-K convolutions have few taps times input channels, as the first layers of models. Storing and loading their
// results costs more than computing the results again. So they become part of rows kernels, where the result of one
// sample stays in the L2 cache.
#include "compiler/fuse/FusionGraph.h"
#include "compiler/fuse/Prepare.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

#include "mlir/IR/IRMapping.h"

namespace mtc {

using namespace mlir;

using mt::tensorOf;

// Whether the result of a convolution is cheaper to recompute than to store and load, and fits into the L2 cache.
static bool isSmallK(mt::Conv2DOp op) {
  mt::Convolution convolution = op.getConvolution();
  int64_t depth = convolution.rows.taps * convolution.columns.taps * convolution.channels;
  return convolution.groups == 1 && depth <= 32 && convolution.filters <= 1024 &&
         bytesPerSample(op.getResult()) <= maxCachedBytes;
}

// The ops from a convolution of few taps times channels to `value`, in order: the convolution, then element-wise ops
// with one user each (the last op may have more) whose other operands have no batch axis. Empty if `value` has another
// form.
static SmallVector<Operation *> chainTo(Value value) {
  SmallVector<Operation *> chain;
  while (Operation *op = value.getDefiningOp()) {
    chain.push_back(op);
    if (auto convolution = dyn_cast<mt::Conv2DOp>(op))
      return isSmallK(convolution) ? SmallVector<Operation *>(llvm::reverse(chain)) : SmallVector<Operation *>();
    Value next;
    for (Value operand : op->getOperands())
      if (mt::isSplit(operand.getType())) {
        if (next)
          return {};
        next = operand;
      }
    if (!isa<mt::ElementwiseOpInterface>(op) || !next || !next.hasOneUse())
      return {};
    value = next;
  }
  return {};
}

static bool isPool(Operation *op) { return isa<mt::WindowOpInterface, mt::WindowGradientOpInterface>(op); }

// The gradient of a max pool reads the operand of the pool. It gets a copy of the convolution that computes the
// operand.
void recomputeSmallConvolutions(mt::ProgramOp program) {
  for (auto gradient : llvm::make_early_inc_range(program.getBody().front().getOps<mt::PoolGradientOp>())) {
    Value image = gradient.getInput();
    if (!image || image.hasOneUse())
      continue;
    bool pools = llvm::all_of(image.getUsers(), isPool);
    SmallVector<Operation *> chain = pools ? chainTo(image) : SmallVector<Operation *>();
    if (chain.empty())
      continue;
    OpBuilder builder(gradient);
    IRMapping mapping;
    for (Operation *op : chain)
      builder.clone(*op, mapping);
    gradient.getInputMutable().assign(mapping.lookup(image));
  }
}

// Replaces the gradient of a small kernel by per-sample gradients and their sum, if only sums of this form read the
// gradient of the layer's output. Not for GPUs with tensor cores: no other work would share a kernel with the
// per-sample gradients, and tensor cores compute the whole sum as one product. CPUs compute TF32 as float32, so there
// it is for plans without code for them.
static void splitKernelGradient(mt::Conv2DKernelGradientOp op, bool images, bool gpusAlone) {
  bool half = mt::isHalf(tensorOf(op.getInput()).getElementType());
  if ((!images && half) || (gpusAlone && mt::Compilation(op).getPrecision() != "f32"))
    return;
  RankedTensorType kernel = tensorOf(op.getResult());
  Value gradient = op.getGradient();
  Operation *from = gradient.getDefiningOp();
  bool rows = from && !isProduct(from);
  bool alone =
      llvm::all_of(gradient.getUsers(), [&](Operation *user) { return user == op || isa<mt::ReduceOp>(user); });
  if (!rows || !alone || bytesPerSample(gradient) > maxCachedBytes || mt::isSplit(kernel) || op.getGroups() != 1 ||
      kernel.getNumElements() * 8 > mt::elementsPerRow(gradient.getType()))
    return;
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, kernel.getShape());
  OpBuilder builder(op);
  Value each = mt::Conv2DKernelGradientOp::create(builder, op.getLoc(), kernel.clone(shape), op.getInput(), gradient,
                                                  op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups());
  Value sum = mt::ReduceOp::create(builder, op.getLoc(), kernel, mt::Reduction::sum, each, ArrayRef<int64_t>{0});
  op.getResult().replaceAllUsesWith(sum);
  op.erase();
}

void splitKernelGradients(mt::ProgramOp program, bool images, bool gpusAlone) {
  for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<mt::Conv2DKernelGradientOp>()))
    splitKernelGradient(op, images, gpusAlone);
}

// Merges a convolution of few taps times channels into the rows kernel that is the only reader of its result. The
// result is then not stored.
void FusionGraph::fuseSmallConvolutions() {
  for (unsigned group = 0; group < groups.size(); ++group) {
    if (groups[group].kind != mt::KernelKind::conv || groups[group].ops.empty())
      continue;
    bool smallK = llvm::any_of(groups[group].ops, [](Operation *op) {
      auto convolution = dyn_cast<mt::Conv2DOp>(op);
      return convolution && isSmallK(convolution);
    });
    SmallVector<Operation *> readers;
    for (Operation *op : groups[group].ops)
      for (Operation *user : users(op))
        if (groupOf(user) != group)
          readers.push_back(user);
    if (!smallK || readers.size() != 1 || !isPool(readers.front()))
      continue;
    std::optional<unsigned> reader = groupOf(readers.front());
    if (!reader || groups[*reader].kind != mt::KernelKind::rows || !canMerge(group, *reader))
      continue;
    merge(group, *reader);
    groups[group].kind = mt::KernelKind::rows;
  }
}

} // namespace mtc
