// SPDX-License-Identifier: Apache-2.0
//
// The computations, and the files that hold the rest of them.
#ifndef MT_OPS_TD
#define MT_OPS_TD

include "dialects/mt/MtBase.td"
include "dialects/mt/MtStructure.td"
include "dialects/mt/MtSpatial.td"
include "dialects/mt/MtAttention.td"
include "dialects/mt/MtScan.td"
include "dialects/mt/MtElementwise.td"
include "dialects/mt/MtActivations.td"
include "dialects/mt/MtOptimizers.td"

// Values out of nothing.
def ConstantOp : Mt_PureOp<"constant", [Mt_Boundary, ConstantLike, Mt_InferType]> {
  let summary = "mt.constant dense<1.0> : tensor<4xf32>; no batch axis";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "float":$value),
                            "build($_builder, $_state, ::mlir::RankedTensorType::get({}, $_builder.getF32Type()), "
                            "::mlir::DenseElementsAttr::get(::mlir::RankedTensorType::get({}, $_builder.getF32Type()), "
                            "value));">];
  let hasVerifier = 1;
}
def IotaOp : Mt_PureOp<"iota", [Mt_Generates]> {
  let summary = "0, 1, 2 ... along an axis: mt.iota dim = 1 : tensor<3x10xi32>; each sample's place in the global "
                "batch: mt.iota dim = 0 : tensor<?xi32>";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def BatchSizeOp : Mt_PureOp<"batch_size", [Mt_Generates]> {
  let summary = "n, the valid samples of the global batch, as f32; the same on every shard";
  let results = (outs Mt_Scalar:$result);
  let assemblyFormat = "attr-dict";
}
def RandomUniformOp : Mt_PureOp<"random_uniform",
                                [Mt_Generates, AttrSizedOperandSegments, Mt_OwnKernel<["readsBuffers"]>]> {
  let summary = "uniform in [0, 1), multiples of 2^-24";
  let description = [{
    Philox 4x32-10 (Salmon et al., SC'11). Key: (seed low, seed high). Counter: (index low, index high, step, hash of
    `stream`) where index = element / 4, and element % 4 selects the word; element = linear index in the global tensor
    (a split tensor's row is first_row + row). Value = (word >> 8) * 2^-24. step is 0 without the operand. hash: 32-bit
    FNV-1a of the stream's bytes.

    `mt-fuse` gives the op `hash(%h)`, an operand, in place of the stream's name: kernels that differ only in the
    streams that they read are then equal, and share their code.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$stream, Optional<Mt_Step>:$hash, Optional<Mt_Step>:$step);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "($stream^)? (`hash` `(` $hash^ `)`)? (`step` `(` $step^ `)`)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$stream, "::mlir::Value":$step),
                            "build($_builder, $_state, type, $_builder.getStringAttr(stream), ::mlir::Value(), "
                            "step);">];
  let hasVerifier = 1;
}

// Shapes.
def BroadcastOp : Mt_PureOp<"broadcast", [Mt_Repeats, DeclareOpInterfaceMethods<MoveOpInterface>,
                                          DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "repeats along axes that are missing (leading) or 1";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def ReshapeOp : Mt_PureOp<"reshape", [Mt_Moves, Mt_Repeats, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the same elements, row major; a batch axis stays first and by itself";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def TransposeOp : Mt_PureOp<"transpose",
                            [Mt_Moves, Mt_MovesByLine, Mt_OwnKernel<["readsBuffers"]>, Mt_InferType,
                             DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "result axis i is operand axis permutation[i]; a batch axis stays first";
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand `by` $permutation attr-dict `:` type($operand)";
}

// Reductions and products.
def ReduceOp : Mt_PureOp<"reduce", [Mt_Extends, Mt_OwnKernel<["readsBuffers", "getWord"]>, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "sum, max or min over axes, which disappear: mt.reduce sum, %x over [0] : tensor<?x10xf32>";
  let description = "Over the batch axis: sum only, and alone (`over [0]`), of floats. Gradient of max and min: shared "
                    "equally among ties. A NaN is the largest and the smallest. Sums of i32 wrap.";
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_AnyNumber:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Mt_FloatOrInt:$result);
  let assemblyFormat = "`` $kind `,` $operand `over` $dims attr-dict `:` type($operand)";
}
def ArgmaxOp : Mt_PureOp<"argmax", [Mt_InferType]> {
  let summary = "index of the first largest element along the last axis, or of the first NaN";
  let arguments = (ins Mt_FloatOrInt:$operand);
  let results = (outs Mt_Int:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def MatmulOp : Mt_PureOp<"matmul", [Mt_Extends, Mt_Rounds, Mt_Contraction,
                                    Mt_OwnKernel<["readsBuffers", "takesEpilogue"]>, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "matrix product of the last two axes; leading axes are equal, or missing on the right";
  let description = [{
    `transpose_a` / `transpose_b` swap the last two axes of an operand first. A contraction of two batch axes
    (`transpose_a`, both rank 2 and split) is a sum over the batch.
  }];
  let arguments = (ins Mt_AnyFloat:$lhs, Mt_AnyFloat:$rhs, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` "
                       "type($lhs) `,` type($rhs)";
}

// Composites.
class Mt_LastAxis<string mnemonic, string text>
    : Mt_Composite<mnemonic, [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def SoftmaxOp : Mt_LastAxis<"softmax", "exp(a - max) / sum over the last axis">;
def LogSoftmaxOp : Mt_LastAxis<"log_softmax", "logarithm of softmax over the last axis">;
def OneHotOp : Mt_Composite<"one_hot"> {
  let summary = "1 at the label's place along a new last axis, else 0";
  let arguments = (ins Mt_Int:$labels);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$labels attr-dict `:` type($labels) `to` type($result)";
  let hasVerifier = 1;
}

def CumsumOp : Mt_Composite<"cumsum", [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the sum of the elements up to each one along an axis, not the batch axis: mt.cumsum %x dim = 1 : "
                "tensor<?x64x8xf32>";
  let description = [{
    With `reverse` of the elements from each one on. The order of additions is that of log2(n) rounds, rounded up: in
    round k = 1, 2, 4 ... each element is added to the one k places before it, from the round before.
  }];
  let arguments = (ins Mt_FloatOrInt:$operand, I64Attr:$dim, UnitAttr:$reverse);
  let results = (outs Mt_FloatOrInt:$result);
  let assemblyFormat = "$operand `dim` `=` $dim (`reverse` $reverse^)? attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def StopGradientOp : Mt_Composite<"stop_gradient", [SameOperandsAndResultType]> {
  let summary = "the operand, through which no gradient goes back";
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

// What needs the classes above.
include "dialects/mt/MtCriteria.td"
include "dialects/mt/MtNormalization.td"
#endif
