// SPDX-License-Identifier: Apache-2.0
//
// Ops over the axes of a sample: convolution, pooling, padding and slicing, lookup.
//
// Images are [?, H, W, C]: a sample is row major, channels last. An axis of length 1 stands for a missing one (1-D: H =
// 1).
#ifndef MT_SPATIAL_TD
#define MT_SPATIAL_TD

include "dialects/mt/MtBase.td"

// ---- Sliding windows
//
// Along each of the two axes, output o at tap k reads input i = o * stride + k * dilation - low (dialects/mt/Window.h),
// and outputs = (inputs + low + high - reach) / stride + 1, rounded down, where reach = (taps - 1) * dilation + 1.
// `strides` and `dilation` are [along H, along W], 1 or more; `padding` is [top, bottom, left, right], each less than
// the reach. Keras' "same" with outputs = ceil(inputs / stride): total = max(0, (outputs - 1) * stride + reach -
// inputs), low = total / 2, high the rest.

defvar Mt_Strides = DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">;
defvar Mt_Padding = DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0, 0, 0}">;

class Mt_Convolution<string mnemonic, dag operands, string from, string to, list<Trait> traits = []>
    : Mt_PureOp<mnemonic, !listconcat([
    Mt_Extends, Mt_Rounds, Mt_Contraction, ConvolutionOpInterface,
    DeclareOpInterfaceMethods<GradientOpInterface>], traits)> {
  let arguments = !con(operands, (ins Mt_Strides:$strides, Mt_Padding:$padding, Mt_Strides:$dilation,
                                  DefaultValuedAttr<I64Attr, "1">:$groups));
  let results = (outs Mt_Float:$result);
  let assemblyFormat = from # [{ (`strides` `=` $strides^)? (`padding` `=` $padding^)? (`dilation` `=` $dilation^)?
    (`groups` `=` $groups^)? attr-dict `:` }] # to;
  let extraClassDeclaration = "::mlir::mt::Convolution getConvolution();";
}
def Conv2DOp : Mt_Convolution<"conv2d", (ins Mt_AnyFloat:$input, Mt_AnyFloat:$kernel), "$input `,` $kernel",
                              "type($input) `,` type($kernel)",
                              [Mt_OwnKernel<["takesEpilogue"]>, Mt_InferType]> {
  let summary = "2-D convolution (cross-correlation) of images with a kernel, in groups of channels";
  let description = [{
    `mt.conv2d %x, %w strides = [2, 2] padding = [0, 1, 0, 1] groups = 2 : tensor<?x32x32x8xf32>, tensor<3x3x4x16xf32>`
    is [?, 16, 16, 16].

    x [?, H, W, C], w [KH, KW, C/g, F] -> y [?, OH, OW, F]; with c0 = f / (F/g) * (C/g), the first channel of f's group,
    `y[n, oh, ow, f] = sum over kh, kw, c of x[n, ih, iw, c0 + c] * w[kh, kw, c, f]`, x being +0 in the padding: one FMA
    chain per element that starts at +0, in order of kh, then c, then kw (docs/exactness.md; CPUs compute most
    convolutions with 3 x 3 taps by tiles, docs/ir.md). g divides C and F.
    Depthwise is g = C, F = C * m: Keras' kernel [KH, KW, C, m] reshaped to [KH, KW, 1, C * m].
  }];
}
def Conv2DInputGradientOp : Mt_Convolution<"conv2d_input_gradient", (ins Mt_AnyFloat:$gradient, Mt_AnyFloat:$kernel),
                                           "$gradient `,` $kernel",
    "type($gradient) `,` type($kernel) `to` type($result)", [Mt_OwnKernel<["takesEpilogue", "getWord"]>]> {
  let summary = "the gradient of mt.conv2d to its images: transposed convolution";
  let description = [{
    `mt.conv2d_input_gradient %dy, %w strides = [2, 2] : tensor<?x15x15x16xf32>, tensor<3x3x8x16xf32> to
    tensor<?x32x32x8xf32>`: with a stride, several sizes of images have outputs of one size, so the result's type is
    written.

    dy [?, OH, OW, F], w [KH, KW, C/g, F] -> dx [?, H, W, C], attributes as of the `mt.conv2d` of x and w;
    `dx[n, ih, iw, c0 + c] = sum of dy[n, oh, ow, f] * w[kh, kw, c, f]` over the f of the group and all oh, kh, ow, kw
    that read (ih, iw): one FMA chain per element that starts at +0, in order of oh, then f, then ow
    (docs/exactness.md). Conv2DTranspose is this op on its input, its kernel [KH, KW, out, in] as it is.
  }];
  let hasVerifier = 1;
}
def Conv2DKernelGradientOp : Mt_Convolution<"conv2d_kernel_gradient", (ins Mt_AnyFloat:$input, Mt_AnyFloat:$gradient),
                                            "$input `,` $gradient",
    "type($input) `,` type($gradient) `to` type($result)", [Mt_OwnKernel<["getWord"]>]> {
  let summary = "the gradient of mt.conv2d to its kernel: a sum over the batch";
  let description = [{
    `mt.conv2d_kernel_gradient %x, %dy : tensor<?x28x28x1xf32>, tensor<?x26x26x32xf32> to tensor<3x3x1x32xf32>`.

    x [?, H, W, C], dy [?, OH, OW, F] -> dw [KH, KW, C/g, F], attributes as of the `mt.conv2d` of x and w; `dw[kh, kw,
    c, f] = sum over n, oh, ow of x[n, ih, iw, c0 + c] * dy[n, oh, ow, f]`, x being +0 in the padding: a shard is one
    FMA chain per element that starts at +0, in order of n, then oh, then ow; shards in tree order (docs/exactness.md).

    Where the result has a batch axis, `to tensor<?x3x3x1x32xf32>`, it is the gradient of each sample: one FMA chain in
    order of oh, then ow. mt-fuse makes these, a sum over the batch follows; a model has none.
  }];
  let hasVerifier = 1;
}

def PoolOp : Mt_PureOp<"pool", [Mt_Extends, Mt_Rounds, WindowOpInterface, Mt_InferType,
                                DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "maximum or sum of each window, channel by channel: mt.pool max, %x window = [2, 2] strides = [2, 2] : "
                "tensor<?x28x28x32xf32>";
  let description = [{
    x [?, H, W, C] -> [?, OH, OW, C]: `y[n, oh, ow, c]` is the maximum or the sum of `x[n, ih, iw, c]` over the window's
    taps inside the image, in order of kh, then kw: one chain that starts at +0 (sum) or at -inf (max). The padding
    takes no part. Average pooling is the sum times a constant [OH, OW, 1] of 1 / (taps inside the image). The largest
    value's gradient goes to the first of equals, or of the NaNs.
  }];
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_AnyFloat:$input, DenseI64ArrayAttr:$window, Mt_Strides:$strides,
                   Mt_Padding:$padding);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = [{`` $kind `,` $input `window` `=` $window (`strides` `=` $strides^)? (`padding` `=` $padding^)?
    attr-dict `:` type($input)}];
  let extraClassDeclaration = [{
    ::mlir::mt::Pooling getPooling();
    float getWindowStart();
    ::mlir::Value foldElement(::mlir::OpBuilder &builder, ::mlir::Value running, ::mlir::Value next);
  }];
}
def PoolGradientOp : Mt_PureOp<"pool_gradient", [Mt_Extends, Mt_Rounds, WindowGradientOpInterface]> {
  let summary = "the gradient of mt.pool to its images";
  let description = [{
    `mt.pool_gradient max, %dy at %x window = [2, 2] strides = [2, 2] : tensor<?x14x14x8xf32>, tensor<?x28x28x8xf32> to
    tensor<?x28x28x8xf32>`; `mt.pool_gradient sum, %dy window = ... : tensor<?x14x14x8xf32> to tensor<?x28x28x8xf32>`.

    dy [?, OH, OW, C] -> dx [?, H, W, C]: `dx[n, ih, iw, c] = sum of dy[n, oh, ow, c]` over the windows that hold (ih,
    iw), for max over those whose first largest element in order of kh, then kw, it is: one chain that starts at +0, in
    order of oh, then ow. `x` is given for max only.
  }];
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_AnyFloat:$gradient, Optional<Mt_AnyFloat>:$input,
                   DenseI64ArrayAttr:$window, Mt_Strides:$strides, Mt_Padding:$padding);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = [{`` $kind `,` $gradient (`at` $input^)? `window` `=` $window (`strides` `=` $strides^)?
    (`padding` `=` $padding^)? attr-dict `:` type($gradient) (`,` type($input)^)? `to` type($result)}];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::mt::Pooling getPooling();";
}

// ---- Ops that move elements inside a sample. Lists have one number for each axis but the batch axis.

def PadOp : Mt_PureOp<"pad", [Mt_Moves, Mt_PadMoves, Mt_InferType,
                              DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "surrounded by a value, and spread out by it: mt.pad %x low = [1, 1, 0] high = [1, 1, 0] : "
                "tensor<?x28x28x8xf32>";
  let description = [{
    Along each axis of size n: `low` elements of `value` (0) before, `high` after, `interior` (0; an empty list: 0 for
    all) between each two, all 0 or more; n elements become low + n + max(n - 1, 0) * interior + high. Of i32 the value
    is a whole number.
  }];
  let arguments = (ins Mt_AnyNumber:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$interior,
                       DefaultValuedAttr<F32Attr, "0.0f">:$value);
  let results = (outs Mt_AnyNumber:$result);
  let assemblyFormat = [{$operand `low` `=` $low `high` `=` $high (`interior` `=` $interior^)? (`value` `=` $value^)?
    attr-dict `:` type($operand)}];
}
def SliceOp : Mt_PureOp<"slice", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                  DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "a part: mt.slice %x starts = [0, 2, 0] sizes = [28, 13, 8] strides = [1, 2, 1] : "
                "tensor<?x28x28x8xf32>";
  let description = [{
    Element i of the result along an axis is element start + i * stride of the operand, for i from 0 to size - 1. Starts
    are 0 or more, sizes and strides 1 or more (an empty list of strides: 1 for all), and the last element lies in the
    operand.
  }];
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operand `starts` `=` $starts `sizes` `=` $sizes (`strides` `=` $strides^)? attr-dict `:`
    type($operand)}];
}
def ConcatOp : Mt_PureOp<"concat", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "one after the other along an axis, not the batch axis: mt.concat %a, %b dim = 1 : tensor<?x3xf32>, "
                "tensor<?x5xf32>";
  let arguments = (ins Variadic<Mt_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operands `dim` `=` $dim attr-dict `:` type($operands)}];
}
def ReverseOp : Mt_PureOp<"reverse", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                      DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the last element first along axes, not the batch axis: mt.reverse %x over [2] : tensor<?x28x28x8xf32>";
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operand `over` $dims attr-dict `:` type($operand)}];
}

// ---- Lookup

def GatherOp : Mt_PureOp<"gather", [Mt_InferType, DeclareOpInterfaceMethods<IndexOpInterface>,
                                    DeclareOpInterfaceMethods<LookupOpInterface>,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "rows of a table by index: mt.gather %table, %ids : tensor<1000x64xf32>, tensor<?x20xi32>";
  let description = [{
    table [V, D...] replicated, ids [I...] -> [I..., D...]:
    `y[i..., d...] = table[min(max(ids[i...], 0), V - 1), d...]`. The batch axis of ids, if it has one, is the result's.
  }];
  let arguments = (ins Mt_Tensor:$table, Mt_Int:$ids);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` type($table) `,` type($ids)";
}
def ScatterAddOp : Mt_PureOp<"scatter_add", [Mt_OwnKernel<>, DeclareOpInterfaceMethods<LookupOpInterface>,
                                             DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the gradient of mt.gather to its table: mt.scatter_add %ids, %dy : tensor<?x20xi32>, "
                "tensor<?x20x64xf32> to tensor<1000x64xf32>";
  let description = [{
    ids [I...], dy [I..., D...] -> [V, D...]: `r[v, d...] = sum of dy[i..., d...]` over the i with clamped ids[i...] =
    v: a chain that starts at +0, in row-major order of i. Of split operands a sum over the batch: a shard is such a
    chain, shards in tree order (docs/exactness.md).
  }];
  let arguments = (ins Mt_Int:$ids, Mt_Float:$updates);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$ids `,` $updates attr-dict `:` type($ids) `,` type($updates) `to` type($result)";
  let hasVerifier = 1;
}
def TakeOp : Mt_PureOp<"take", [Mt_InferType, DeclareOpInterfaceMethods<IndexOpInterface>,
                                DeclareOpInterfaceMethods<LookupOpInterface>,
                                DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "slices of each sample by index: mt.take %x, %ids dim = 1 : tensor<?x28x28x3xf32>, tensor<?x14xi32>";
  let description = [{
    x [?, A..., V, D...], V on axis `dim`, ids [?, Q] (each sample its own) or [Q] (all the same) -> [?, A..., Q, D...]:
    `y[n, a..., q, d...] = x[n, a..., min(max(ids[n, q], 0), V - 1), d...]`.
  }];
  let arguments = (ins Mt_Tensor:$operand, Mt_Int:$ids, I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand `,` $ids `dim` `=` $dim attr-dict `:` type($operand) `,` type($ids)";
}
def IndexAddOp : Mt_PureOp<"index_add", [DeclareOpInterfaceMethods<LookupOpInterface>,
                                         DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the gradient of mt.take: mt.index_add %ids, %dy dim = 1 : tensor<?x14xi32>, tensor<?x14x28x3xf32> to "
                "tensor<?x28x28x3xf32>";
  let description = [{
    ids [?, Q] or [Q], dy [?, A..., Q, D...] -> [?, A..., V, D...]: `dx[n, a..., v, d...] = sum of dy[n, a..., q, d...]`
    over the q with clamped ids[n, q] = v: a chain that starts at +0, in order of q.
  }];
  let arguments = (ins Mt_Int:$ids, Mt_Float:$updates, I64Attr:$dim);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$ids `,` $updates `dim` `=` $dim attr-dict `:` type($ids) `,` type($updates) `to` "
                       "type($result)";
  let hasVerifier = 1;
}
#endif
