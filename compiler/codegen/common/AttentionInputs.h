// SPDX-License-Identifier: Apache-2.0
//
// What kernels of attention read beside queries, keys and values, and which part of it is a head's: the same on CPUs
// and GPUs.
#ifndef COMPILER_CODEGEN_COMMON_ATTENTIONINPUTS_H
#define COMPILER_CODEGEN_COMMON_ATTENTIONINPUTS_H

#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/Attention.h"

namespace mtc {

// One head of one index of the axes before the positions.
struct AttentionHead {
  mlir::Value index, head, keyHead; // index: of these axes, samples included
  mlir::Value mask;                 // address of its part of the mask; null without one
  mlir::Value drawn;                // its number in the global batch, for dropout; null without it
};

class AttentionInputs {
public:
  // Of an mt.attention, its log sums or one of its gradients; `bufferOf` gives the memory of an argument.
  AttentionInputs(Emitter &emit, mlir::Operation *op, llvm::function_ref<mlir::Value(mlir::Value)> bufferOf);
  AttentionHead headOf(Kernel &kernel, const mlir::mt::Attention &form, mlir::Value sample, mlir::Value group,
                       mlir::Value head, mlir::Value keyHead) const;

  mlir::Value mask;       // null: none
  mlir::Value step, hash; // of dropout and of its stream; null: none
  float rate = 0;
};

// The attention of a kernel and its log sums; null where it does not compute one of them.
std::pair<mlir::mt::AttentionOp, mlir::mt::AttentionLogSumsOp> attentionOf(mlir::Block &body);

} // namespace mtc

#endif
