// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of few taps times channels, first layers above all. Their images cost more to write and read than to
// compute: they stay inside kernels of rows, where a sample's image lies in the second cache.
#include "compiler/fuse/Groups.h"
#include "compiler/fuse/Prepare.h"

#include "mlir/IR/IRMapping.h"

namespace mtc {

using namespace mlir;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// Whether a convolution's images are cheaper to compute than to store and load, and stay in a cache meanwhile.
static bool isThin(mt::Conv2DOp op) {
  mt::Convolution convolution = op.getConvolution();
  int64_t depth = convolution.rows.taps * convolution.columns.taps * convolution.channels;
  return convolution.groups == 1 && depth <= 32 && convolution.filters <= 1024 &&
         bytesPerSample(op.getResult()) <= maxCachedBytes;
}

// The ops from a small-K convolution to `value`, in order: element-wise ones, of which each but the last has one user,
// and whose other operands are the same for all samples. None where there is no such convolution.
static SmallVector<Operation *> chainTo(Value value) {
  SmallVector<Operation *> chain;
  while (Operation *op = value.getDefiningOp()) {
    chain.push_back(op);
    if (auto convolution = dyn_cast<mt::Conv2DOp>(op))
      return isThin(convolution) ? SmallVector<Operation *>(llvm::reverse(chain)) : SmallVector<Operation *>();
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

// A max pool's gradient reads the pool's images: it computes them itself.
void repeatThinConvolutions(mt::ProgramOp program) {
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

// The gradient of a small kernel is a sum over the samples' gradients, where nothing else but such sums needs what it
// reads of the layer above.
static void splitKernelGradient(mt::Conv2DKernelGradientOp op) {
  RankedTensorType kernel = typeOf(op.getResult());
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

void splitKernelGradients(mt::ProgramOp program) {
  for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<mt::Conv2DKernelGradientOp>()))
    splitKernelGradient(op);
}

// The convolution joins the one kernel of rows that reads its image, and the image is never stored.
void Groups::joinThinConvolutions() {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    if (units[unit].kind != mt::KernelKind::conv || units[unit].ops.empty())
      continue;
    bool thin = llvm::any_of(units[unit].ops, [](Operation *op) {
      auto convolution = dyn_cast<mt::Conv2DOp>(op);
      return convolution && isThin(convolution);
    });
    SmallVector<Operation *> readers;
    for (Operation *op : units[unit].ops)
      for (Operation *user : users(op))
        if (unitOf(user) != unit)
          readers.push_back(user);
    if (!thin || readers.size() != 1 || !isPool(readers.front()))
      continue;
    std::optional<unsigned> reader = unitOf(readers.front());
    if (!reader || units[*reader].kind != mt::KernelKind::rows || !canMerge(unit, *reader))
      continue;
    merge(unit, *reader);
    units[unit].kind = mt::KernelKind::rows;
  }
}

} // namespace mtc
