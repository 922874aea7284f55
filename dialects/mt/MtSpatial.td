// SPDX-License-Identifier: Apache-2.0
//
// Ops over the axes of a sample: convolution, pooling, padding, slicing and lookup.
//
// Images are [?, H, W, C]: row major, channels last. One-dimensional data has H = 1.
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

    x [?, H, W, C], w [KH, KW, C/g, F] -> y [?, OH, OW, F]. With c0 = f / (F/g) * (C/g), the first channel of the group
    of filter f: `y[n, oh, ow, f] = sum over kh, kw, c of x[n, ih, iw, c0 + c] * w[kh, kw, c, f]`. In the padding, x is
    +0. The sum is one FMA chain per element that starts at +0, in order of kh, then c, then kw (docs/exactness.md). On
    CPUs, most convolutions with 3 x 3 taps use Winograd's algorithm instead (docs/ir.md). g divides C and F.

    A depthwise convolution has g = C and F = C * m: Keras' kernel [KH, KW, C, m], reshaped to [KH, KW, 1, C * m].
  }];
}
def Conv2DInputGradientOp : Mt_Convolution<"conv2d_input_gradient", (ins Mt_AnyFloat:$gradient, Mt_AnyFloat:$kernel),
                                           "$gradient `,` $kernel",
    "type($gradient) `,` type($kernel) `to` type($result)", [Mt_OwnKernel<["takesEpilogue", "getWord"]>]> {
  let summary = "gradient of mt.conv2d with respect to its images: transposed convolution";
  let description = [{
    `mt.conv2d_input_gradient %dy, %w strides = [2, 2] : tensor<?x15x15x16xf32>, tensor<3x3x8x16xf32> to
    tensor<?x32x32x8xf32>`. The type of the result is explicit, because with a stride several sizes of images have
    outputs of the same size.

    dy [?, OH, OW, F], w [KH, KW, C/g, F] -> dx [?, H, W, C], with the attributes of the `mt.conv2d` of x and w:
    `dx[n, ih, iw, c0 + c] = sum of dy[n, oh, ow, f] * w[kh, kw, c, f]` over all filters f of the group and all oh, kh,
    ow, kw that read (ih, iw). The sum is one FMA chain per element that starts at +0, in order of oh, then f, then ow
    (docs/exactness.md). Keras' Conv2DTranspose is this op on the layer's input and kernel [KH, KW, out, in].
  }];
  let hasVerifier = 1;
}
def Conv2DKernelGradientOp : Mt_Convolution<"conv2d_kernel_gradient", (ins Mt_AnyFloat:$input, Mt_AnyFloat:$gradient),
                                            "$input `,` $gradient",
    "type($input) `,` type($gradient) `to` type($result)", [Mt_OwnKernel<["getWord"]>]> {
  let summary = "gradient of mt.conv2d with respect to its kernel: a sum over the batch";
  let description = [{
    `mt.conv2d_kernel_gradient %x, %dy : tensor<?x28x28x1xf32>, tensor<?x26x26x32xf32> to tensor<3x3x1x32xf32>`.

    x [?, H, W, C], dy [?, OH, OW, F] -> dw [KH, KW, C/g, F], with the attributes of the `mt.conv2d` of x and w:
    `dw[kh, kw, c, f] = sum over n, oh, ow of x[n, ih, iw, c0 + c] * dy[n, oh, ow, f]`. In the padding, x is +0. The sum
    of a shard is one FMA chain per element that starts at +0, in order of n, then oh, then ow. The sums of the shards
    are added in tree order (docs/exactness.md).

    A result with a batch axis, `to tensor<?x3x3x1x32xf32>`, is the gradient of each sample: one FMA chain in order of
    oh, then ow. Only `mt-fuse` creates this form; a sum over the batch follows it.
  }];
  let hasVerifier = 1;
}

def PoolOp : Mt_PureOp<"pool", [Mt_Extends, Mt_Rounds, WindowOpInterface, Mt_InferType,
                                DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "maximum or sum of each window, channel by channel";
  let description = [{
    `mt.pool max, %x window = [2, 2] strides = [2, 2] : tensor<?x28x28x32xf32>`

    x [?, H, W, C] -> y [?, OH, OW, C]: `y[n, oh, ow, c]` is the maximum or the sum of `x[n, ih, iw, c]` over the taps
    of the window that are inside the image, in order of kh, then kw. It is one chain that starts at +0 (sum) or at -inf
    (max). Average pooling is the sum times a constant [OH, OW, 1] of 1 / (number of taps inside the image). The
    gradient of a maximum goes to the first of equal elements, or to the first NaN.
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
def PoolGradientOp : Mt_PureOp<"pool_gradient", [Mt_Extends, Mt_Rounds, WindowGradientOpInterface,
                                                 DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "gradient of mt.pool with respect to its images";
  let description = [{
    `mt.pool_gradient max, %dy at %x window = [2, 2] strides = [2, 2] : tensor<?x14x14x8xf32>, tensor<?x28x28x8xf32> to
    tensor<?x28x28x8xf32>`; `mt.pool_gradient sum, %dy window = ... : tensor<?x14x14x8xf32> to tensor<?x28x28x8xf32>`.

    dy [?, OH, OW, C] -> dx [?, H, W, C]: `dx[n, ih, iw, c] = sum of dy[n, oh, ow, c]` over the windows that contain
    (ih, iw). For max, only windows count whose first largest element, in order of kh, then kw, is (ih, iw). The sum is
    one chain that starts at +0, in order of oh, then ow. Only max has the operand `at %x`, the input of the pool.

    The gradient of max has no kernel of its own: for each element of a window a slice of all windows, and a select.
  }];
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_AnyFloat:$gradient, Optional<Mt_AnyFloat>:$input,
                   DenseI64ArrayAttr:$window, Mt_Strides:$strides, Mt_Padding:$padding);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = [{`` $kind `,` $gradient (`at` $input^)? `window` `=` $window (`strides` `=` $strides^)?
    (`padding` `=` $padding^)? attr-dict `:` type($gradient) (`,` type($input)^)? `to` type($result)}];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::mt::Pooling getPooling();";
}

// ---- Ops that move elements inside a sample. Lists of integers have one element per axis, without the batch axis.

def PadOp : Mt_PureOp<"pad", [Mt_Moves, Mt_PadMoves, Mt_InferType,
                              DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "padding around and between the elements of a sample";
  let description = [{
    `mt.pad %x low = [1, 1, 0] high = [1, 1, 0] : tensor<?x28x28x8xf32>`

    Along each axis, adds `low` elements of `value` (default 0) before the operand's elements, `high` after them and
    `interior` (default: an empty list, 0 for all axes) between each two of them. No number is negative. An axis of size
    n becomes low + n + max(n - 1, 0) * interior + high. The value of an i32 pad is an integer.
  }];
  let arguments = (ins Mt_AnyNumber:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$interior,
                       DefaultValuedAttr<Mt_Real, "0.0f">:$value);
  let results = (outs Mt_AnyNumber:$result);
  let assemblyFormat = [{$operand `low` `=` $low `high` `=` $high (`interior` `=` $interior^)?
    (`value` `=` custom<Real>($value)^)?
    attr-dict `:` type($operand)}];
}
def SliceOp : Mt_PureOp<"slice", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                  DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "slice of each sample, with strides";
  let description = [{
    `mt.slice %x starts = [0, 2, 0] sizes = [28, 13, 8] strides = [1, 2, 1] : tensor<?x28x28x8xf32>`

    Along each axis, element i of the result is element start + i * stride of the operand, for i from 0 to size - 1.
    Starts are at least 0. Sizes and strides are at least 1; an empty list of strides is 1 for all axes. The verifier
    fails if the last element is outside of the operand.
  }];
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operand `starts` `=` $starts `sizes` `=` $sizes (`strides` `=` $strides^)? attr-dict `:`
    type($operand)}];
}
def ConcatOp : Mt_PureOp<"concat", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "concatenation along an axis, which is not the batch axis";
  let description = "`mt.concat %a, %b dim = 1 : tensor<?x3xf32>, tensor<?x5xf32>` is [?, 8].";
  let arguments = (ins Variadic<Mt_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operands `dim` `=` $dim attr-dict `:` type($operands)}];
}
def ReverseOp : Mt_PureOp<"reverse", [Mt_Moves, Mt_MovesByLine, Mt_InferType,
                                      DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "reversal of the elements along axes, which are not the batch axis";
  let description = "`mt.reverse %x over [2] : tensor<?x28x28x8xf32>`";
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = [{$operand `over` $dims attr-dict `:` type($operand)}];
}

// ---- Lookup

def GatherOp : Mt_PureOp<"gather", [Mt_InferType, DeclareOpInterfaceMethods<IndexOpInterface>,
                                    DeclareOpInterfaceMethods<LookupOpInterface>,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "lookup of rows of a table by id";
  let description = [{
    `mt.gather %table, %ids : tensor<1000x64xf32>, tensor<?x20xi32>` is [?, 20, 64].

    table [V, D...], replicated, and ids [I...] -> y [I..., D...]: `y[i..., d...] = table[min(max(ids[i...], 0), V - 1),
    d...]`. The result is split if ids is split.
  }];
  let arguments = (ins Mt_Tensor:$table, Mt_Int:$ids);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` type($table) `,` type($ids)";
}
def ScatterAddOp : Mt_PureOp<"scatter_add", [Mt_OwnKernel<>, DeclareOpInterfaceMethods<LookupOpInterface>,
                                             DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "gradient of mt.gather with respect to its table";
  let description = [{
    `mt.scatter_add %ids, %dy : tensor<?x20xi32>, tensor<?x20x64xf32> to tensor<1000x64xf32>`

    ids [I...], dy [I..., D...] -> r [V, D...]: `r[v, d...] = sum of dy[i..., d...]` over all i whose clamped id
    ids[i...] is v. The sum is a chain that starts at +0, in row-major order of i. If the operands are split, the result
    is a sum over the batch: one chain per shard, and the sums of the shards are added in tree order
    (docs/exactness.md).
  }];
  let arguments = (ins Mt_Int:$ids, Mt_Float:$updates);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$ids `,` $updates attr-dict `:` type($ids) `,` type($updates) `to` type($result)";
  let hasVerifier = 1;
}
def TakeOp : Mt_PureOp<"take", [Mt_InferType, DeclareOpInterfaceMethods<IndexOpInterface>,
                                DeclareOpInterfaceMethods<LookupOpInterface>,
                                DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "lookup of slices of each sample by id";
  let description = [{
    `mt.take %x, %ids dim = 1 : tensor<?x28x28x3xf32>, tensor<?x14xi32>` is [?, 14, 28, 3].

    x [?, A..., V, D...] with V on axis `dim`, and ids [?, Q], or [Q] for the same ids in all samples ->
    y [?, A..., Q, D...]: `y[n, a..., q, d...] = x[n, a..., min(max(ids[n, q], 0), V - 1), d...]`.
  }];
  let arguments = (ins Mt_Tensor:$operand, Mt_Int:$ids, I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand `,` $ids `dim` `=` $dim attr-dict `:` type($operand) `,` type($ids)";
}
def IndexAddOp : Mt_PureOp<"index_add", [DeclareOpInterfaceMethods<LookupOpInterface>,
                                         DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "gradient of mt.take with respect to its operand";
  let description = [{
    `mt.index_add %ids, %dy dim = 1 : tensor<?x14xi32>, tensor<?x14x28x3xf32> to tensor<?x28x28x3xf32>`

    ids [?, Q] or [Q], dy [?, A..., Q, D...] -> dx [?, A..., V, D...]: `dx[n, a..., v, d...] = sum of dy[n, a..., q,
    d...]` over all q whose clamped id ids[n, q] is v. The sum is a chain that starts at +0, in order of q.
  }];
  let arguments = (ins Mt_Int:$ids, Mt_Float:$updates, I64Attr:$dim);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$ids `,` $updates `dim` `=` $dim attr-dict `:` type($ids) `,` type($updates) `to` "
                       "type($result)";
  let hasVerifier = 1;
}
#endif
