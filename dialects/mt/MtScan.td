// SPDX-License-Identifier: Apache-2.0
//
// Loops over the steps of a sequence.
#ifndef MT_SCAN_TD
#define MT_SCAN_TD

include "dialects/mt/MtBase.td"

def ScanOp : Mt_Op<"scan", [AttrSizedOperandSegments, RecursiveMemoryEffects,
                            SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "loop over the steps of sequences, with carried values, in a model";
  let description = [{
    `%h, %ys = mt.scan over(%x = %xs : tensor<?x64x8xf32>) from(%before = %h0 : tensor<?x16xf32>) { ... mt.yield %after,
    %y : tensor<?x16xf32>, tensor<?x16xf32> }`

    The steps are along the first axis of a sample: axis 1 of a split value, axis 0 of a replicated value. The body
    computes one step. Its arguments are one slice of each input (`over`), without the axis of the steps, and the value
    of each carry before the step (`from`: its value before the first step). The body may read any value that is defined
    before the loop, such as a variable. It yields the carries after the step, of the same types, then any number of
    outputs.

    The results are the carries after the last step, then the outputs of all steps, stacked along the first axis of a
    sample. With `reverse` the loop runs from the last step of the inputs to the first; the outputs keep the order of
    the inputs. A loop without inputs has the attribute `steps`.

    Random numbers differ in each step: step 3 of the stream "s" draws from the stream "s/3".

    `mt-unroll` replaces the loop by the ops of all its steps. The verifier fails if inputs have different numbers of
    steps, or if a yielded carry has another type than the carry.
  }];
  let arguments = (ins Variadic<Mt_Tensor>:$inputs, Variadic<Mt_Tensor>:$carries, OptionalAttr<I64Attr>:$steps,
                   UnitAttr:$reverse);
  let results = (outs Variadic<Mt_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // Number of steps, 0 if neither the inputs nor the attribute `steps` state it.
    int64_t countSteps();
    // Axis of the steps: the first axis of a sample.
    static int64_t stepAxis(::mlir::RankedTensorType type) { return isSplit(type); }
    // Type of one step's value, and type of the values of all steps, stacked.
    static ::mlir::RankedTensorType partOf(::mlir::RankedTensorType stacked);
    static ::mlir::RankedTensorType stackOf(::mlir::RankedTensorType part, int64_t steps);
    // Result types of a loop whose body has its terminator: the carries, then the stacked outputs.
    static ::llvm::SmallVector<::mlir::Type> resultTypes(::mlir::Block &body, size_t carries, int64_t steps);
  }];
}
#endif
