// SPDX-License-Identifier: Apache-2.0
//
// Basic computations. The other ops are in the files that this file includes.
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

// Ops without tensor operands.
def ConstantOp : Mt_PureOp<"constant", [Mt_Boundary, ConstantLike, Mt_InferType]> {
  let summary = "a constant, without a batch axis";
  let description = "`mt.constant dense<1.0> : tensor<4xf32>`";
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
  let summary = "0, 1, 2 ... along an axis";
  let description = "`mt.iota dim = 1 : tensor<3x10xi32>`. Along the batch axis, `mt.iota dim = 0 : tensor<?xi32>`, "
                    "each "
                    "element is the index of its sample in the global batch.";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def BatchSizeOp : Mt_PureOp<"batch_size", [Mt_Generates]> {
  let summary = "number of valid samples in the global batch, as f32; equal on all shards";
  let results = (outs Mt_Scalar:$result);
  let hasCustomAssemblyFormat = 1;
}
def RandomUniformOp : Mt_PureOp<"random_uniform",
                                [Mt_Generates, AttrSizedOperandSegments, Mt_OwnKernel<["readsBuffers"]>]> {
  let summary = "uniform random numbers in [0, 1), multiples of 2^-24";
  let description = [{
    `mt.random_uniform "stream" step(%iteration) : tensor<?x10xf32>`

    The generator is Philox 4x32-10 (Salmon et al., SC'11). Its key is (seed low, seed high). Its counter is (index low,
    index high, step, hash of `stream`), with index = element / 4; element % 4 selects one of the four words. `element`
    is the linear index in the tensor of the global batch, so results do not depend on the number of devices. The value
    is (word >> 8) * 2^-24. Without the operand `step` the step is 0. The hash is the 32-bit FNV-1a of the stream's
    bytes.

    `mt-fuse` replaces the stream's name by an operand `hash(%h)`. Kernels that differ only in their streams are then
    equal and share their code.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$stream, Optional<Mt_Step>:$hash, Optional<Mt_Step>:$step);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "($stream^)? (`hash` `(` $hash^ `)`)? (`step` `(` $step^ `)`)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$stream, "::mlir::Value":$step),
                            "build($_builder, $_state, type, $_builder.getStringAttr(stream), ::mlir::Value(), "
                            "step);">];
  let hasVerifier = 1;
}

// Ops that change shapes.
def BroadcastOp : Mt_PureOp<"broadcast", [Mt_Repeats, DeclareOpInterfaceMethods<MoveOpInterface>,
                                          DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "repetition along axes that the operand lacks in front, or in which it has size 1";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def ReshapeOp : Mt_PureOp<"reshape", [Mt_Moves, Mt_Repeats, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the same elements in row-major order, in another shape; the batch axis stays the first axis";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def TransposeOp : Mt_PureOp<"transpose",
                            [Mt_Moves, Mt_MovesByLine, Mt_OwnKernel<["readsBuffers"]>, Mt_InferType,
                             DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "permutation of axes: axis i of the result is axis permutation[i] of the operand";
  let description = "`mt.transpose %x by [0, 2, 1] : tensor<?x3x4xf32>`. The batch axis must stay the first axis.";
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand `by` $permutation attr-dict `:` type($operand)";
}

def ReduceOp : Mt_PureOp<"reduce", [Mt_Extends, Mt_OwnKernel<["readsBuffers", "getWord"]>, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "sum, max or min over axes, which the result does not have";
  let description = [{
    `mt.reduce sum, %x over [0] : tensor<?x10xf32>`. A reduction over the batch axis must be a sum of floats over that
    axis alone. The gradient of max and min is divided equally among equal elements. The max or min of elements that
    include a NaN is NaN. Sums of i32 wrap around.
  }];
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_AnyNumber:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Mt_FloatOrInt:$result);
  let assemblyFormat = "`` $kind `,` $operand `over` $dims attr-dict `:` type($operand)";
}
def ArgmaxOp : Mt_PureOp<"argmax", [Mt_InferType]> {
  let summary = "index of the first largest element along the last axis, or of the first NaN if there is one";
  let arguments = (ins Mt_FloatOrInt:$operand);
  let results = (outs Mt_Int:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def MatmulOp : Mt_PureOp<"matmul", [Mt_Extends, Mt_Rounds, Mt_Contraction,
                                    Mt_OwnKernel<["readsBuffers", "takesEpilogue"]>, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "matrix product over the last two axes";
  let description = [{
    `mt.matmul %x, %w transpose_b : tensor<?x64xf32>, tensor<10x64xf32>` is [?, 10].

    `transpose_a` and `transpose_b` swap the last two axes of an operand before the product. The leading axes of both
    operands are equal, or the right operand has none. With `transpose_a` and two split operands of rank 2, the
    contracted axis is the batch axis: the product is a sum over the batch.
  }];
  let arguments = (ins Mt_AnyFloat:$lhs, Mt_AnyFloat:$rhs, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` "
                       "type($lhs) `,` type($rhs)";
}

class Mt_LastAxis<string mnemonic, string text>
    : Mt_Composite<mnemonic, [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def SoftmaxOp : Mt_LastAxis<"softmax", "exp(a - max) / sum of exp(a - max), over the last axis">;
def LogSoftmaxOp : Mt_LastAxis<"log_softmax", "logarithm of the softmax over the last axis: a - max - log(sum of "
                                              "exp(a - max))">;
def OneHotOp : Mt_Composite<"one_hot"> {
  let summary = "1 at the index of the label along a new last axis, else 0";
  let arguments = (ins Mt_Int:$labels);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$labels attr-dict `:` type($labels) `to` type($result)";
  let hasVerifier = 1;
}

def CumsumOp : Mt_Composite<"cumsum", [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "cumulative sum along an axis, which is not the batch axis";
  let description = [{
    `mt.cumsum %x dim = 1 : tensor<?x64x8xf32>`

    Element i of the result is the sum of the operand's elements 0 to i, or i to n - 1 with `reverse`. The order of
    additions is that of Hillis and Steele (1986): in rounds k = 1, 2, 4 ... up to n, y[i] = x[i] + x[i - k], where x
    is the result of the round before.
  }];
  let arguments = (ins Mt_FloatOrInt:$operand, I64Attr:$dim, UnitAttr:$reverse);
  let results = (outs Mt_FloatOrInt:$result);
  let assemblyFormat = "$operand `dim` `=` $dim (`reverse` $reverse^)? attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def StopGradientOp : Mt_Composite<"stop_gradient", [SameOperandsAndResultType]> {
  let summary = "the operand, with a gradient of 0";
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

// These files use classes of the files above.
include "dialects/mt/MtCriteria.td"
include "dialects/mt/MtNormalization.td"
#endif
