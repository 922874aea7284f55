// SPDX-License-Identifier: Apache-2.0
//
// The verifier of plan.kernel: a library call must fit the kernel's body.
#include "dialects/mt/Elementwise.h"
#include "dialects/plan/PlanDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::plan;

namespace {
// A buffer that a library call reads or writes.
struct CallBuffer {
  uint64_t elements; // elements of a row if the buffer is split, else of the whole buffer
  bool isSplit;
};
} // namespace

// Product of sizes that come from text. An overflow, or a size that is not positive, gives the largest number, which no
// buffer has.
static uint64_t product(ArrayRef<int64_t> sizes) {
  uint64_t result = 1;
  for (int64_t size : sizes)
    result = size > 0 ? llvm::SaturatingMultiply<uint64_t>(result, size) : UINT64_MAX;
  return result;
}

static bool isTree(CallKind kind) { return kind == CallKind::product_tree || kind == CallKind::convolution_tree; }

// The left and right operands of the call, and its result.
static std::array<CallBuffer, 3> buffersOf(LibraryCallAttr call) {
  if (ProductSizesAttr sizes = call.getProduct()) {
    uint64_t left = product({sizes.getLines(), sizes.getDepth()});
    uint64_t right = product({sizes.getLines(), sizes.getColumns()});
    uint64_t matrix = product({sizes.getDepth(), sizes.getColumns()});
    if (isTree(call.getKind()))
      return {{{left, true}, {right, true}, {matrix, false}}};
    return {{{left, true}, {matrix, false}, {right, true}}};
  }
  ConvolutionSizesAttr sizes = call.getConvolution();
  AxisAttr down = sizes.getDown(), across = sizes.getAcross();
  uint64_t images = product({down.getInputs(), across.getInputs(), sizes.getChannels()});
  uint64_t outputs = product({down.getOutputs(), across.getOutputs(), sizes.getFilters()});
  uint64_t kernel =
      product({down.getTaps(), across.getTaps(), sizes.getChannels() / sizes.getGroups(), sizes.getFilters()});
  if (call.getKind() == CallKind::convolution)
    return {{{images, true}, {kernel, false}, {outputs, true}}};
  if (call.getKind() == CallKind::convolution_input)
    return {{{outputs, true}, {kernel, false}, {images, true}}};
  return {{{images, true}, {outputs, true}, {kernel, false}}};
}

LogicalResult KernelOp::verify() {
  LibraryCallAttr call = getLibraryCallAttr();
  if (!call)
    return success();
  bool isProduct = call.getKind() == CallKind::product || call.getKind() == CallKind::product_tree;
  if (isProduct != !!call.getProduct() || isProduct == !!call.getConvolution())
    return emitOpError("expected a library call with only the sizes of a ")
           << (isProduct ? "product" : "convolution") << ", found other sizes";
  if (ConvolutionSizesAttr sizes = call.getConvolution(); sizes && sizes.getGroups() < 1)
    return emitOpError("expected a library call of at least 1 group, found ") << sizes.getGroups();
  bool hasBias = call.getEpilogue() == CallEpilogue::bias || call.getEpilogue() == CallEpilogue::bias_relu;
  if (hasBias != (call.getBias() >= 0))
    return emitOpError("expected a library call with a bias where its epilogue has one, found epilogue ")
           << stringifyEnum(call.getEpilogue()) << " and bias " << call.getBias();
  if (isTree(call.getKind()) && call.getEpilogue() != CallEpilogue::none)
    return emitOpError("expected no epilogue of a sum over the batch, found ") << stringifyEnum(call.getEpilogue());
  Block &body = getBody().front();
  SmallVector<Type> types(body.getArgumentTypes());
  if (!body.empty())
    llvm::append_range(types, body.back().getOperandTypes());
  auto check = [&](StringRef what, int64_t number, CallBuffer wanted) -> LogicalResult {
    if (number < 0 || number >= static_cast<int64_t>(types.size()))
      return emitOpError("expected the number of a buffer below ") << types.size() << " as " << what << " of a library "
                                                                   << "call, found " << number;
    auto type = dyn_cast<RankedTensorType>(types[number]);
    if (!type || !type.getElementType().isF32() || mt::isSplit(type) != wanted.isSplit ||
        static_cast<uint64_t>(mt::elementsPerRow(type)) != wanted.elements)
      return emitOpError("expected ") << wanted.elements << " elements of f32" << (wanted.isSplit ? " per row" : "")
                                      << " as " << what << " of a library call, found " << types[number];
    return success();
  };
  std::array<CallBuffer, 3> buffers = buffersOf(call);
  if (failed(check("left", call.getLeft(), buffers[0])) || failed(check("right", call.getRight(), buffers[1])) ||
      failed(check("result", call.getResult(), buffers[2])))
    return failure();
  int64_t columns = isProduct ? call.getProduct().getColumns() : call.getConvolution().getFilters();
  return hasBias ? check("bias", call.getBias(), {product({columns}), false}) : success();
}
