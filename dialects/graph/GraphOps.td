// SPDX-License-Identifier: Apache-2.0
//
// The graph dialect: a model as its framework wrote it. Values have the framework's shapes; the pass `graph-layout`
// decides how they are stored and makes ops of `mt`.
#ifndef GRAPH_OPS_TD
#define GRAPH_OPS_TD

include "dialects/mt/MtBase.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::mlir::graph";
  let summary = "a model in the shapes of its framework";
  let description = [{
    The ops stand in the body of an `mt.model`, among ops of `mt`. Ops of `mt` take and give tensors, ops of `graph`
    take and give values of `!graph.value`. `graph.logical` makes a value of a tensor, `graph.tensor` a tensor of a
    value. The module has `graph.version = 1 : i32`: a text is written and read by one version of MTC.

    The type of a result states its shape. `graph-layout` reports each op that computes another shape or that `mt`
    cannot do.
  }];
  let useDefaultTypePrinterParser = 1;
}

def Graph_Value : TypeDef<Graph_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "a logical shape and an element type: !graph.value<[b, 3, 224, 224], f32>";
  let description = [{
    The axes are in the order of the framework. A size is a number of 1 or more, the batch `b`, or a multiple of it,
    `16*b`, in any axis. Elements are f32, i32 or i1. In `sizes` a multiple k of the batch is -k.

    Errors: more than 16 axes, or more than 2^46 elements for a batch of 1.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$sizes, "::mlir::Type":$element);
  let assemblyFormat = "`<` custom<Sizes>($sizes) `,` $element `>`";
  let genVerifyDecl = 1;
}

class Graph_Op<string mnemonic, dag operands, string format, dag resulting = (outs Graph_Value:$result)>
    : Op<Graph_Dialect, mnemonic, [Pure]> {
  let arguments = operands;
  let results = resulting;
  let assemblyFormat = format;
}
// An op whose last words are the types of its operands and of its result.
class Graph_TypedOp<string mnemonic, dag operands, string words>
    : Graph_Op<mnemonic, operands, words # " attr-dict `:` functional-type(operands, results)">;
defvar Graph_Ints = DefaultValuedAttr<DenseI64ArrayAttr, "{}">;

// ---- Tensors and values

def LogicalOp : Graph_Op<"logical", (ins Mt_Tensor:$tensor),
                         "$tensor attr-dict `:` type($tensor) `->` qualified(type($result))"> {
  let summary = "a tensor as a value of the same axes, `?` as `b`";
  let description = "`graph.logical %x : tensor<?x784xf32> -> !graph.value<[b, 784], f32>`";
}
def TensorOp : Graph_Op<"tensor", (ins Graph_Value:$value),
                        "$value attr-dict `:` qualified(type($value)) `->` type($result)",
                        (outs Mt_Tensor:$result)> {
  let summary = "a value as a tensor: the batch first, then the other axes in their order, row major";
  let description = [{
    `graph.tensor %v : !graph.value<[16*b, 64], f32> -> tensor<?x16x64xf32>`. [3, b] becomes `tensor<?x3xf32>`.

    Errors: another number of elements of a sample than in the value.
  }];
}

// ---- Element by element

def ElementwiseOp : Graph_Op<"elementwise", (ins StrAttr:$name, Variadic<Graph_Value>:$operands),
    "$name `(` $operands `)` attr-dict `:` functional-type($operands, $result)"> {
  let summary = "an op of mt element by element, of operands that broadcast as NumPy's";
  let description = [{
    `graph.elementwise "compare"(%a, %b) {kind = #mt<compare_kind lt>} : (!graph.value<[b, 8], f32>, !graph.value<[],
    f32>) -> !graph.value<[b, 8], i1>`

    The attributes are those of the op of `mt`: each of the element-wise ones, and `stop_gradient`, `while_training`,
    `dropout`, `gaussian_noise` and `gaussian_dropout`. Functions that `mt` has no op for become formulas: `tan`,
    `sinh`, `cosh`, `asin`, `acos`, `atan`, `atan2`, `asinh`, `acosh`, `atanh`, `cbrt`, `erfc`, `lgamma`, `digamma`,
    `fmod`, `ceil`, `trunc`, `round_nearest_even` and `round_nearest_afz`. Their gradients are those of the formulas.

    Errors: another op; operands with the batch as different axes.
  }];
}

def RoundOp : Graph_TypedOp<"round", (ins Graph_Value:$operand, TypeAttr:$to), "$operand `to` $to"> {
  let summary = "numbers rounded to bf16 or f16 and back: two mt.cast";
  let description = [{
    `graph.round %a to bf16 : (!graph.value<[b, 8], f32>) -> !graph.value<[b, 8], f32>`

    For values that a framework keeps in 16 bits amid those of 32, as Muon's products of matrices are. Errors: another
    type; operands that are not f32.
  }];
}

// ---- Shapes

def TransposeOp : Graph_TypedOp<"transpose", (ins Graph_Value:$operand, DenseI64ArrayAttr:$permutation),
                                "$operand `by` $permutation"> {
  let summary = "axis i of the result is axis permutation[i] of the operand";
}
def ReshapeOp : Graph_TypedOp<"reshape", (ins Graph_Value:$operand), "$operand"> {
  let summary = "the same elements, row major, in another shape";
  let description = "[b, 16, 64] may become [16*b, 64]. Errors: a part of another axis is folded with the batch.";
}
def BroadcastOp : Graph_TypedOp<"broadcast", (ins Graph_Value:$operand, DenseI64ArrayAttr:$dims),
                                "$operand `dims` $dims"> {
  let summary = "axis i of the operand is axis dims[i] of the result; sizes of 1 and other axes are repeated";
  let description = [{
    `graph.broadcast %a dims [1] : (!graph.value<[8], f32>) -> !graph.value<[b, 8], f32>`

    Errors: `dims` that do not rise; a size of the operand that is neither 1 nor that of the result.
  }];
}

// ---- Over axes

def ReduceOp : Graph_TypedOp<"reduce", (ins Mt_ReductionAttr:$kind, Graph_Value:$operand, DenseI64ArrayAttr:$dims,
                                        UnitAttr:$within_samples),
                             "`` $kind `,` $operand `over` $dims (`within_samples` $within_samples^)?"> {
  let summary = "sum, max or min over axes, which the result does not have";
  let description = [{
    `graph.reduce sum, %a over [0, 1] : (!graph.value<[b, 8], f32>) -> !graph.value<[], f32>`

    With `within_samples` the batch is not summed over: it becomes the first axis of the result. `graph.reduce sum, %a
    over [0] within_samples : (!graph.value<[16*b, 8], f32>) -> !graph.value<[b, 8], f32>` sums 16 rows of each sample.

    Errors: a max or min over the batch.
  }];
}
def AlongOp : Graph_TypedOp<"along", (ins StrAttr:$name, Graph_Value:$operand, I64Attr:$dim),
                            "$name `(` $operand `)` `dim` `=` $dim"> {
  let summary = "an op of mt along an axis: softmax, log_softmax, or argmax and product, which take the axis away";
}
def CumsumOp : Graph_TypedOp<"cumsum", (ins Graph_Value:$operand, I64Attr:$dim, UnitAttr:$reverse),
                             "$operand `dim` `=` $dim (`reverse` $reverse^)?"> {
  let summary = "sums of what comes before and at each place along an axis, from its end if `reverse`";
}
def NormalizeOp : Graph_TypedOp<"normalize", (ins Graph_Value:$operand, DenseI64ArrayAttr:$dims, Mt_Real:$epsilon),
                                "$operand `over` $dims `epsilon` `=` custom<Real>($epsilon)"> {
  let summary = "(x - mean) / sqrt(variance + epsilon), with statistics over axes of each sample";
}
def CrossEntropyOp : Graph_TypedOp<"cross_entropy", (ins Graph_Value:$logits, Graph_Value:$labels),
                                   "$logits `,` $labels"> {
  let summary = "mt.sparse_categorical_crossentropy from_logits of logits [..., C] and labels [...] of i32";
}

// ---- Products

def DotGeneralOp : Graph_TypedOp<"dot_general", (ins Graph_Value:$lhs, Graph_Value:$rhs,
    DenseI64ArrayAttr:$lhs_contracted, DenseI64ArrayAttr:$rhs_contracted, Graph_Ints:$lhs_common,
    Graph_Ints:$rhs_common),
    "$lhs `,` $rhs `contract` $lhs_contracted `x` $rhs_contracted (`common` $lhs_common^ `x` $rhs_common)?"> {
  let summary = "sums of products over pairs of contracted axes; pairs of common axes are in both";
  let description = [{
    `graph.dot_general %a, %b contract [2] x [1] common [0] x [0] : (!graph.value<[b, 4, 8], f32>, !graph.value<[b, 8,
    2], f32>) -> !graph.value<[b, 4, 2], f32>`

    Axes of the result: the common ones, the free ones of lhs, the free ones of rhs.

    Errors: the batch as a free axis of both.
  }];
}
def ConvolutionOp : Graph_TypedOp<"convolution", (ins Graph_Value:$images, Graph_Value:$kernel, Graph_Ints:$strides,
    Graph_Ints:$padding, Graph_Ints:$dilation, Graph_Ints:$spread, DefaultValuedAttr<I64Attr, "1">:$groups,
    DefaultValuedAttr<I64Attr, "1">:$sample_groups),
    "$images `,` $kernel (`strides` $strides^)? (`padding` $padding^)? (`dilation` $dilation^)? (`spread` $spread^)? "
    "(`groups` `=` $groups^)? (`sample_groups` `=` $sample_groups^)?"> {
  let summary = "convolution without a flip of images [b, C, spatial...] with a kernel [F, C / groups, spatial...]";
  let description = [{
    One or two spatial axes of [b, C, spatial...] have kernels of their own; so have several images of a sample, [k*b,
    C, spatial...]. Of any others, such as [4, C, spatial...] or three spatial axes, each place in the window is a
    slice, and all slices are multiplied at once. `strides`, `dilation` (of the kernel) and `spread` (of the images,
    zeros between them) have a number for each spatial axis, `padding` two: before and after. An empty list: 1, or no
    padding. Negative padding cuts off.

    Which axis is the batch says what it is. Images [C, b, spatial...] with a kernel [F, b, spatial...] are the images
    of a convolution and the gradient of its outputs. The result [C / sample_groups, F, taps...] is the gradient of its
    kernel, a sum over the samples: `dilation` is the convolution's strides, `strides` its dilation, `sample_groups` its
    groups. With a kernel that `graph.reverse` reverses along all spatial axes, or with a `spread`, it is the gradient
    of the images of a convolution, which has the strides `spread`.

    Errors: the batch as another axis; samples in groups.
  }];
}
def TransposedConvolutionOp : Graph_TypedOp<"transposed_convolution", (ins Graph_Value:$images, Graph_Value:$kernel,
    Graph_Ints:$strides, Graph_Ints:$padding, Graph_Ints:$dilation, DefaultValuedAttr<I64Attr, "1">:$groups),
    "$images `,` $kernel (`strides` $strides^)? (`padding` $padding^)? (`dilation` $dilation^)? "
    "(`groups` `=` $groups^)?"> {
  let summary = "gradient of a convolution to its images; the kernel is [C, F / groups, spatial...]";
  let description = "The images are [b, C, spatial...], the result is [b, F, spatial...], of the sizes of the images "
                    "that the convolution had. It has the attributes of `graph.convolution`.";
}
def PoolOp : Graph_TypedOp<"pool", (ins Mt_ReductionAttr:$kind, Graph_Value:$images, DenseI64ArrayAttr:$window,
                                    Graph_Ints:$strides, Graph_Ints:$padding, Graph_Ints:$dilation),
    "`` $kind `,` $images `window` $window (`strides` $strides^)? (`padding` $padding^)? (`dilation` $dilation^)?"> {
  let summary = "sum or max of windows of [N, C, spatial...]; the padding takes no part";
  let description = "A sum with strides of 1 of what `graph.pad` put zeros between is the gradient of a sum of "
                    "windows. Images as of `graph.convolution`.";
}
def PoolGradientOp : Graph_TypedOp<"pool_gradient", (ins Graph_Value:$gradient, Graph_Value:$images,
    DenseI64ArrayAttr:$window, Graph_Ints:$strides, Graph_Ints:$padding),
    "$gradient `at` $images `window` $window (`strides` $strides^)? (`padding` $padding^)?"> {
  let summary = "gradient of `graph.pool max` to its images: of equal elements the first has that of the window";
}

// ---- Linear algebra

def SolveTriangularOp : Graph_TypedOp<"solve_triangular", (ins Graph_Value:$matrix, Graph_Value:$rhs,
    UnitAttr:$right_side, UnitAttr:$upper, UnitAttr:$transposed, UnitAttr:$unit_diagonal),
    "$matrix `,` $rhs (`right_side` $right_side^)? (`upper` $upper^)? (`transposed` $transposed^)? "
    "(`unit_diagonal` $unit_diagonal^)?"> {
  let summary = "X of A X = B, or with right_side of X A = B, for triangular A [..., n, n] of up to 64 rows";
  let description = "With `transposed` A is the transpose of the matrix. The other triangle is not read. Errors: more "
                    "rows.";
}
def CholeskyOp : Graph_TypedOp<"cholesky", (ins Graph_Value:$matrix, UnitAttr:$upper), "$matrix (`upper` $upper^)?"> {
  let summary = "the lower triangle L of A = L L^T, for symmetric A [..., n, n] of up to 64 rows";
  let description = "One triangle of A is read, with `upper` the upper one. Its gradient is symmetric. Errors: more "
                    "rows.";
}
def FftOp : Graph_TypedOp<"fft", (ins Graph_Value:$operand, UnitAttr:$inverse, UnitAttr:$real,
                                  DenseI64ArrayAttr:$lengths),
                          "(`inverse` $inverse^)? (`real` $real^)? $operand `lengths` $lengths"> {
  let summary = "discrete Fourier transform over the last axes, one for each length";
  let description = [{
    `graph.fft real %x lengths [64] : (!graph.value<[b, 3, 64], f32>) -> !graph.value<[b, 3, 33, 2], f32>`

    Complex numbers are pairs along a last axis of 2: X[k] = sum of x[t] e^(-2 pi i t k / n). With `inverse`, of the
    other direction and divided by n. With `real` the numbers are real before the transform, or after the inverse one,
    and the spectrum has n / 2 + 1 elements along its last axis; of the first and, for an even n, the last the inverse
    ignores the imaginary part. The transform is made of products of matrices, in a fixed order.

    Errors: a length above 512 without a factor from 2 to 32.
  }];
}

// ---- Metrics

def MetricOp : Op<Graph_Dialect, "metric"> {
  let summary = "a metric of Keras' classes, of predictions, targets and weights of samples or of elements";
  let description = [{
    `graph.metric "auc" of "{\"class_name\": \"AUC\", \"config\": {}}" %p, %y : tensor<?x1xf32>, tensor<?x1xf32>`

    The object is that of a Keras file. The metric becomes the `mt.metric` that the file would have, or several, with
    `/` and a number at the end of their names.

    Errors: a metric that is no class of Keras, or that a file could not have.
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$object, Variadic<Mt_Tensor>:$operands);
  let assemblyFormat = "$name `of` $object $operands attr-dict `:` type($operands)";
}

// ---- Parts

def SliceOp : Graph_TypedOp<"slice", (ins Graph_Value:$operand, DenseI64ArrayAttr:$starts, Graph_Ints:$strides),
                            "$operand `starts` $starts (`strides` $strides^)?"> {
  let summary = "elements from starts on, with strides of 1 or more; the result's type says how many";
  let description = "Errors: elements outside of the operand; a part of the batch.";
}
def PadOp : Graph_TypedOp<"pad", (ins Graph_Value:$operand, DefaultValuedAttr<Mt_Real, "0.0f">:$value,
                                  DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, Graph_Ints:$interior),
    "$operand (`value` `=` custom<Real>($value)^)? `low` $low `high` $high (`interior` $interior^)?"> {
  let summary = "elements of `value` before, after and between the operand's; negative numbers cut off";
  let description = "Errors: a value that is not finite; padding of the batch.";
}
def ConcatOp : Graph_TypedOp<"concat", (ins Variadic<Graph_Value>:$operands, I64Attr:$dim),
                             "$operands `dim` `=` $dim"> {
  let summary = "one after the other along an axis, which is not the batch";
}
def ReverseOp : Graph_TypedOp<"reverse", (ins Graph_Value:$operand, DenseI64ArrayAttr:$dims), "$operand `over` $dims"> {
  let summary = "the last element first along axes, which are not the batch";
}
def TakeOp : Graph_TypedOp<"take", (ins Graph_Value:$operand, Graph_Value:$ids, I64Attr:$dim),
                           "$operand `,` $ids `dim` `=` $dim"> {
  let summary = "slices by index along an axis, whose place the axes of the ids take; ids out of range are clamped";
  let description = [{
    `graph.take %table, %ids dim = 0 : (!graph.value<[1000, 64], f32>, !graph.value<[b, 20], i32>) ->
    !graph.value<[b, 20, 64], f32>`

    The operand is a table that all samples share, or the ids are the same for all samples, or each sample has its own
    ids, whose first axis is the batch.
  }];
}
def TakeAlongOp : Graph_TypedOp<"take_along", (ins Graph_Value:$operand, Graph_Value:$ids, I64Attr:$dim),
                                "$operand `,` $ids `dim` `=` $dim"> {
  let summary = "elements by ids along an axis; every line of the operand has ids of its own";
  let description = [{
    `graph.take_along %x, %ids dim = 2 : (!graph.value<[b, 4, 10], f32>, !graph.value<[b, 4, 3], i32>) ->
    !graph.value<[b, 4, 3], f32>` has x[i, j, ids[i, j, k]] at i, j, k. Ids out of range are clamped.

    Errors: the batch as the axis; other axes of different sizes.
  }];
}
def SortOp : Graph_TypedOp<"sort", (ins Variadic<Graph_Value>:$keys, I64Attr:$dim, UnitAttr:$descending),
                           "$keys `dim` `=` $dim (`descending` $descending^)?"> {
  let summary = "places of elements along an axis in the order of keys, as i32";
  let description = [{
    `graph.sort %x dim = 1 descending : (!graph.value<[b, 10], f32>) -> !graph.value<[b, 3], i32>` has the places of the
    three largest elements. Later keys decide between elements whose earlier keys are equal; the place decides last. NaN
    is the largest element. Up to 64 elements are compared in pairs. Of more, up to 32 floats are found one after the
    other, and else they are sorted by Batcher's odd-even merge sort (K. E. Batcher, "Sorting networks and their
    applications", 1968).

    Errors: the batch as the axis; more than 2^15 elements to sort.
  }];
}
def ScatterRowsOp : Graph_TypedOp<"scatter_rows", (ins Graph_Value:$ids, Graph_Value:$updates), "$ids `,` $updates"> {
  let summary = "sums of updates by id over the batch: [rows, D...] of ids [I...] and updates [I..., D...]";
  let description = "Row v is the sum of the updates whose id is v; ids out of range are clamped. The batch is in I.";
}
def OneHotOp : Graph_TypedOp<"one_hot", (ins Graph_Value:$ids), "$ids"> {
  let summary = "1 at the place of the id along a new last axis, else 0";
}
#endif
