// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DECOMPOSE
#include "compiler/Passes.h.inc"

namespace {
struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    getOperation()->walk([](mt::ProgramOp program) {
      SmallVector<mt::DecomposeOpInterface> composites = collect(program);
      if (composites.empty())
        return;
      // A decomposition may contain composites, which the next iteration finds.
      for (; !composites.empty(); composites = collect(program))
        for (mt::DecomposeOpInterface op : composites) {
          OpBuilder builder(op);
          op->getResult(0).replaceAllUsesWith(op.decompose(builder));
          op->erase();
        }
      simplify(program);
    });
  }

  static SmallVector<mt::DecomposeOpInterface> collect(mt::ProgramOp program) {
    SmallVector<mt::DecomposeOpInterface> composites;
    program.walk([&](mt::DecomposeOpInterface op) { composites.push_back(op); });
    return composites;
  }
};
} // namespace
} // namespace mtc
