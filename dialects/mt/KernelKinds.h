// SPDX-License-Identifier: Apache-2.0
//
// The kinds of kernels, one row per kind: what a body may hold, and what passes may do with such a kernel. The list of
// kinds is that of plan.fbs (KernelKinds.cmake). How code is made for a kind: compiler/codegen/KernelKinds.h.
#ifndef MT_KERNELKINDS_H
#define MT_KERNELKINDS_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Which operands of its result's type a kernel may write its result over.
enum class InPlace {
  never,
  always,    // each element is read just before it is written
  part,      // the kernel writes a part of the result; the rest is the operand, and stays where it lies
  epilogue,  // those that only element-wise ops read, of a kernel with one result
  lastReader // the op that makes the result is the last to read the operand, element by element
};

// An error at the kernel.
using KernelError = llvm::function_ref<InFlightDiagnostic()>;

struct KernelKindInfo {
  KernelKind kind;
  LogicalResult (*verify)(Block &body, KernelError error); // the contract, in words: KernelKinds.cpp
  InPlace inPlace;
  bool runsAgain;  // rows are independent: a second run gives the first one's bits
  bool isProduct;  // a library may compute it
  bool isGradient; // its only result is the gradient of a variable: kernels are named by that
};
const KernelKindInfo &infoOf(KernelKind kind);

// What a loop over elements computes at the index of its result, and numbers that are the same at each.
bool isPointwise(Operation &op);
// The op whose result the rest of a body works on, element by element; null for none.
Operation *productOf(Block &body);

// What holds a side of a product over the batch: the operand of a slice that takes the first elements of each line,
// which is read where it lies; else the side itself.
Value holderOf(Value side);

// What a kernel of kind matmul_wgrad computes, by its result: the product, and where its sum lies in the result:
// elements before it, and from row to row. Of a placed part (Blocks.h), the part's. `product` is null for other values.
struct BatchProduct {
  MatmulOp product;
  int64_t first, stride;
};
BatchProduct batchProductOf(Value result);

// Whether a kernel of this body may write result number `result` over the operand of argument number `argument`.
bool mayOverwrite(KernelKind kind, Block &body, unsigned argument, unsigned result);

// The ops that read elements of `operand` or of what element-wise ops make of them, at their own index or in a sum; not
// what reads the result of `except`. Fails where another op reads such a value.
FailureOr<SmallVector<Operation *>> elementReaders(Value operand, Operation *except);

} // namespace mlir::mt

#endif
