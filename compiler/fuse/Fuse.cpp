// SPDX-License-Identifier: Apache-2.0
//
// mt-fuse: groups computations into kernels, greedily, each rule where it saves the most traffic first.
//
//   0. attention    an mt.attention and its log sums, and the gradients of one, which have the scores in common.
//   1. epilogues    element-wise users of a matmul's result, and producers that only they need, join the matmul, where
//                   no other operand waits for the matmul. What would only be stored a second time goes back to the
//                   rows kernel that follows.
//   2. convolutions of few taps times channels join the one max pool, or its gradient, that reads them: they become
//                   steps of rows, and their images are never stored (FirstLayers.cpp).
//   3. rows         per-sample work merges with its producers, users and readers of the same values.
//   4. reductions   sums over the batch that leave in the same bucket become one kernel.
//   5. elementwise  element-wise work on replicated values of one shape merges with its neighbours: one kernel per
//                   update of a variable.
//   6. single       scalar work between the same two all-reduces becomes one kernel, with what sums of it alone read.
//
// Constants, iota and scalars made of these are computed by every kernel that needs them. No merge may close a cycle.
// Limits: a kernel holds one matmul, and sums over the batch read stored values. Work is done twice to save a store in
// two cases only: x - mean of batch normalisation, and the convolutions of rule 2.
#include "compiler/Passes.h"
#include "compiler/fuse/Outline.h"
#include "compiler/fuse/Prepare.h"

namespace mtc {
#define GEN_PASS_DEF_FUSE
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

struct Fuse : impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      prepareForFusion(program, images);
      FailureOr<Groups> groups = Groups::classify(program.getBody().front());
      if (failed(groups))
        return signalPassFailure();
      groups->fuseAttention();
      groups->fuseEpilogues();
      if (images)
        groups->joinThinConvolutions();
      groups->fuseRows(images);
      groups->fuseReductions();
      groups->fuseMaps();
      groups->fuseWhole();
      outlineKernels(program, *groups);
    }
  }
};

} // namespace
} // namespace mtc
