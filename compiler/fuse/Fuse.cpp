// SPDX-License-Identifier: Apache-2.0
//
// mt-fuse: groups ops into kernels, greedily. Rules that save the most memory traffic come first.
//
//   0. attention    an mt.attention and its log-sums become one kernel, and so do its gradients, because they share the
//                   scores.
//   1. epilogues    element-wise users of a matmul's result, and producers that only these need, join the kernel of the
//                   matmul, unless another operand depends on the matmul. An op whose result no other op of this
//                   kernel reads joins the rows kernel that follows: here it would be one more store. In plans without
//                   code for CPUs, products of 16 bits that only their sum reads become one kernel: the input
//                   gradients of queries, keys and values, for example.
//   2. convolutions of few taps times channels join the one max pool, or its gradient, that reads them: they become
//                   statements of a rows kernel, and their results are not stored (FirstLayers.cpp).
//   3. rows         per-sample ops merge with their producers, their users and readers of the same values. An op of
//                   stored values merges first with its only reader, if that waits for a sum over the batch. For GPUs,
//                   a kernel reads and writes at most 32 values.
//   4. reductions   sums over the batch of the same all-reduce bucket become one kernel. For GPUs, they first take the
//                   element-wise ops on which nothing else depends.
//   5. elementwise  adjacent element-wise ops on replicated values of one shape become one kernel: the update of a
//                   variable, for example. For GPUs, also the readers of the same all-reduce if it has few
//                   results.
//   6. single       scalar ops between the same two all-reduces become one kernel, with the values that only its sums
//                   read.
//
// At the end, results that are cheap to compute again are dropped (CheapResults.cpp), and the streams of random numbers
// become operands (Streams.cpp).
//
// Every kernel recomputes the constants, iotas and scalars derived from these that it needs. No merge may close a
// cycle. A kernel has at most one matmul otherwise, and sums over the batch read stored values or compute
// elements of them. Four kinds of ops are computed twice to avoid a store: x - mean of batch normalization, the
// convolutions of rule 2, cheap results, and for GPUs alone a choice, by a mask, of values that all pixels share.
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
      bool gpusAlone = !images && temporaryBytes == 0; // the plan has no code for CPUs
      prepareForFusion(program, images, gpusAlone);
      FailureOr<FusionGraph> graph = FusionGraph::classify(program.getBody().front());
      if (failed(graph))
        return signalPassFailure();
      graph->fuseAttention();
      graph->fuseEpilogues(gpusAlone);
      if (gpusAlone) // the code for CPUs computes one product
        graph->fuseSummedProducts();
      if (images)
        graph->fuseSmallConvolutions();
      graph->fuseRows(images, temporaryBytes);
      graph->fuseReductions(images);
      graph->fuseElementwise(images);
      graph->fuseSingle(images, temporaryBytes);
      outlineKernels(program, *graph, /*gpus=*/!images);
      dropCheapResults(program);
      passStreams(program);
    }
  }
};

} // namespace
} // namespace mtc
