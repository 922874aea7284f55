// SPDX-License-Identifier: Apache-2.0
//
// Properties of each kernel kind: the ops that its body may hold, and the transformations that passes may apply.
// plan.fbs lists the kinds (KernelKinds.cmake). compiler/codegen/KernelKinds.h has the code generators.
#ifndef MT_KERNELKINDS_H
#define MT_KERNELKINDS_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Operands of its type over which a kernel may write a result.
enum class InPlace {
  never,
  always,    // every element is read just before it is written
  part,      // the kernel writes a part of the operand; the rest of the operand stays
  epilogue,  // operands that only element-wise ops read, if the kernel has one result
  lastReader // operands whose last reader is the op that computes the result, element by element
};

// Emits an error at the kernel.
using KernelError = llvm::function_ref<InFlightDiagnostic()>;

struct KernelKindInfo {
  KernelKind kind;
  // checks the contract, which KernelKinds.cpp states in words
  LogicalResult (*verify)(Block &body, KernelError error);
  InPlace inPlace;
  bool runsAgain;  // rows are independent, so the kernel can run a second time to the same bits
  bool isProduct;  // a library may compute the kernel
  bool isGradient; // its only result is the gradient of a variable, after which it is named
};
const KernelKindInfo &infoOf(KernelKind kind);

// Whether a loop over elements can compute the op: it depends on operands at the index of its result alone.
bool isPointwise(Operation &op);
// The product or convolution to whose result the other ops of a body are applied element-wise; null if there is none.
Operation *productOf(Block &body);

// The products of a body in order, and the value that is their sum, to which the other ops are applied; the value is
// null if there is no such sum. A matmul or conv kernel may have several products in plans for GPUs alone.
struct SummedProducts {
  SmallVector<Operation *> products;
  Value sum;
};
SummedProducts summedProductsOf(Block &body);

// The value that holds a side of a product over the batch: if the side is a slice of the first elements of each row,
// which the kernel reads in place, the operand of the slice; else the side itself.
Value holderOf(Value side);

// The product that a result of a matmul_wgrad kernel holds, and where in the result the product's sum is: the index of
// its first element, and the stride of its rows, in elements. For a placed part (Blocks.h) this is the part. `product`
// is null for any other value.
struct BatchProduct {
  MatmulOp product;
  int64_t first, stride;
};
BatchProduct batchProductOf(Value result);

// Whether a kernel with this body may write the result with number `result` over the operand of the argument with
// number `argument`.
bool mayOverwrite(KernelKind kind, Block &body, unsigned argument, unsigned result);

// The ops that read elements of `operand`, directly or after element-wise ops, at the index of their own result or in a
// sum. Readers of the result of `except` are not followed. Fails if any other op reads an element in this way.
FailureOr<SmallVector<Operation *>> elementReaders(Value operand, Operation *except);

} // namespace mlir::mt

#endif
