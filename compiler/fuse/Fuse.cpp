// SPDX-License-Identifier: Apache-2.0
//
// mt-fuse: groups computations into kernels, greedily, each rule where it saves the most traffic first.
//
//   0. attention    an mt.attention and its log-sums become one kernel, and so do its gradients: they share the scores.
//   1. epilogues    element-wise users of a matmul's result, and producers that only they need, join the matmul, unless
//                   another operand depends on the matmul. Ops that would only be stored a second time are left to the
//                   rows kernel that follows.
//   2. convolutions of few taps times channels join the one max pool, or its gradient, that reads them: they become
//                   statements of a rows kernel, and their results are never stored (FirstLayers.cpp).
//   3. rows         per-sample work merges with its producers, users and readers of the same values. For GPUs, a kernel
//                   reads and writes at most 32 values.
//   4. reductions   sums over the batch of the same all-reduce bucket become one kernel.
//   5. elementwise  adjacent element-wise work on replicated values of one shape becomes one kernel, such as the update
//                   of a variable.
//   6. single       scalar work between the same two all-reduces becomes one kernel, with the values that only its sums
//                   read.
//
// In the end the streams of random numbers become operands (Streams.cpp).
//
// Constants, iota and scalars made of these are recomputed by every kernel that needs them. No merge may close a cycle.
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
      FailureOr<FusionGraph> graph = FusionGraph::classify(program.getBody().front());
      if (failed(graph))
        return signalPassFailure();
      graph->fuseAttention();
      graph->fuseEpilogues();
      if (images)
        graph->fuseSmallConvolutions();
      graph->fuseRows(images);
      graph->fuseReductions();
      graph->fuseElementwise();
      graph->fuseSingle(singleBytes);
      outlineKernels(program, *graph);
      passStreams(program);
    }
  }
};

} // namespace
} // namespace mtc
