// SPDX-License-Identifier: Apache-2.0
//
// Loops over the steps of a sequence.
#ifndef MT_SCAN_TD
#define MT_SCAN_TD

include "dialects/mt/MtBase.td"

def ScanOp : Mt_Op<"scan", [AttrSizedOperandSegments, RecursiveMemoryEffects,
                            SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "in a model: a loop over the steps of sequences, which carries values from one step to the next";
  let description = [{
    `%h, %ys = mt.scan over(%x = %xs : tensor<?x64x8xf32>) from(%before = %h0 : tensor<?x16xf32>) { ... mt.yield %after,
    %y : tensor<?x16xf32>, tensor<?x16xf32> }`

    The steps are along the first axis of a sample: axis 1 of a split value, axis 0 of a replicated one. The body
    computes one step. Its arguments are the step's part of each input (`over`), without that axis, and what each carry
    is before the step (`from`: before the first one). It may read any value that stands before the loop, such as a
    variable. It yields the carries after the step, of the same types, then any outputs of the step.

    The results are the carries after the last step, then the outputs of all steps, stacked along the first axis of a
    sample. With `reverse` the last step of the inputs comes first; an output still lies where its step's inputs do.
    A loop without inputs says how many `steps` it has.

    An op that draws random numbers draws others in each step: step 3 of "stream" is "stream/3".

    `mt-unroll` replaces the loop by the ops of all its steps, before anything else looks at it.
  }];
  let arguments = (ins Variadic<Mt_Tensor>:$inputs, Variadic<Mt_Tensor>:$carries, OptionalAttr<I64Attr>:$steps,
                   UnitAttr:$reverse);
  let results = (outs Variadic<Mt_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // How many steps there are; 0 where neither inputs nor an attribute say it.
    int64_t countSteps();
    // The axis of the steps: the first one of a sample.
    static int64_t stepAxis(::mlir::RankedTensorType type) { return isSplit(type); }
    // A value of one step, and the values of all steps stacked.
    static ::mlir::RankedTensorType partOf(::mlir::RankedTensorType stacked);
    static ::mlir::RankedTensorType stackOf(::mlir::RankedTensorType part, int64_t steps);
    // Of a body whose terminator is there already: the carries, then the stacked outputs.
    static ::llvm::SmallVector<::mlir::Type> resultTypes(::mlir::Block &body, size_t carries, int64_t steps);
  }];
}
#endif
