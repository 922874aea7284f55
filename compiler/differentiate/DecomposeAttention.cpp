// SPDX-License-Identifier: Apache-2.0
//
// mt-decompose-attention: replaces an mt.attention that has no kernel by products and a softmax: an attention without a
// batch axis and, in plans with code for GPUs, an attention whose heads have more channels than the registers of a
// block hold.
#include "compiler/Passes.h"
#include "dialects/mt/Attention.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "compiler/Passes.h.inc"

namespace {

struct DecomposeAttention : impl::DecomposeAttentionBase<DecomposeAttention> {
  using DecomposeAttentionBase::DecomposeAttentionBase;

  void runOnOperation() override {
    bool everywhere = all || mt::Compilation(getOperation()).isDouble(); // its kernels compute in f32
    getOperation()->walk([&](mt::AttentionOp op) {
      mt::Attention form(op);
      bool fits = maxChannels == 0 || std::max(form.keySize, form.valueSize) <= maxChannels;
      if (!everywhere && fits && mt::isSplit(op.getType()))
        return;
      OpBuilder builder(op);
      Value result = mt::decomposeAttention(builder, op);
      op.replaceAllUsesWith(result);
      op.erase();
    });
  }
};

} // namespace
} // namespace mtc
