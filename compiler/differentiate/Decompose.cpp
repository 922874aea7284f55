// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DECOMPOSE
#include "compiler/Passes.h.inc"

namespace {
struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    // A decomposition may hold composites: their turn comes, for they are collected anew.
    for (SmallVector<mt::DecomposeOpInterface> composites = collect(); !composites.empty(); composites = collect())
      for (mt::DecomposeOpInterface op : composites) {
        OpBuilder builder(op);
        op->getResult(0).replaceAllUsesWith(op.decompose(builder));
        op->erase();
      }
  }

  SmallVector<mt::DecomposeOpInterface> collect() {
    SmallVector<mt::DecomposeOpInterface> composites;
    getOperation()->walk([&](mt::DecomposeOpInterface op) { composites.push_back(op); });
    return composites;
  }
};
} // namespace
} // namespace mtc
