// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Simplify.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace mtc {

void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void simplify(mt::ProgramOp program) {
  eraseUnused(program.getBody().front());
  DominanceInfo dominance(program);
  IRRewriter rewriter(program.getContext());
  eliminateCommonSubExpressions(rewriter, dominance, program);
  eraseUnused(program.getBody().front());
}

} // namespace mtc
