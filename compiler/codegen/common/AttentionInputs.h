// SPDX-License-Identifier: Apache-2.0
//
// Inputs of attention kernels in addition to queries, keys and values, and the part of each input that belongs to one
// head. CPU and GPU kernels share this code.
#ifndef COMPILER_CODEGEN_COMMON_ATTENTIONINPUTS_H
#define COMPILER_CODEGEN_COMMON_ATTENTIONINPUTS_H

#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/Attention.h"

namespace mtc {

// One head, at one index of the axes before the positions.
struct AttentionHead {
  mlir::Value index, head, keyHead; // index: linear index of these axes, samples included
  mlir::Value mask;                 // address of the head's part of the mask; null: no mask
  mlir::Value drawn;                // number of the head in the global batch, for dropout; null: no dropout
};

class AttentionInputs {
public:
  // `op` is an mt.attention, mt.attention_log_sums or mt.attention_gradient. `bufferOf` returns the address of an
  // argument.
  AttentionInputs(Emitter &emit, mlir::Operation *op, llvm::function_ref<mlir::Value(mlir::Value)> bufferOf);
  AttentionHead headOf(Kernel &kernel, const mlir::mt::Attention &form, mlir::Value sample, mlir::Value group,
                       mlir::Value head, mlir::Value keyHead) const;

  mlir::Value mask;       // null: no mask
  mlir::Value step, hash; // step and hash of the stream of dropout; null: no dropout
  float rate = 0;
};

// The mt.attention and the mt.attention_log_sums of a kernel; null if the kernel does not compute one of them.
std::pair<mlir::mt::AttentionOp, mlir::mt::AttentionLogSumsOp> attentionOf(mlir::Block &body);

} // namespace mtc

#endif
