// SPDX-License-Identifier: Apache-2.0
//
// The passes, in the order of the pipeline. Each pass has a source file and a lit test of the same name.
#ifndef COMPILER_PASSES_TD
#define COMPILER_PASSES_TD

include "mlir/Pass/PassBase.td"

// differentiate
def AddBeforeSplit : Pass<"mt-add-before-split", "::mlir::ModuleOp"> {
  let summary = "Add the bias of a product before the last axis of the product is split";
  let description = [{
    ```mlir
    %0 = mt.matmul %x, %w : tensor<?x6x32xf32>, tensor<32x32xf32>
    %1 = mt.reshape %0 : tensor<?x6x32xf32> to tensor<?x6x4x8xf32>
    %2 = mt.add %1, %bias : tensor<?x6x4x8xf32>, tensor<4x8xf32>
    ```
    becomes
    ```mlir
    %1 = mt.reshape %bias : tensor<4x8xf32> to tensor<32xf32>
    %2 = mt.add %0, %1 : tensor<?x6x32xf32>, tensor<32xf32>
    %3 = mt.reshape %2 : tensor<?x6x32xf32> to tensor<?x6x4x8xf32>
    ```
    So the kernel of the product adds the bias.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def RecognizeActivations : Pass<"mt-recognize-activations", "::mlir::ModuleOp"> {
  let summary = "Replace formulas of GELU, SiLU, Mish and ReLU by the operations";
  let description = [{
    A product of x and a function of x is computed at some numbers x and compared with the operations there, so every
    way to write a function is recognized:

    ```mlir
    %0 = mt.sigmoid %x : tensor<?x8xf32>
    %1 = mt.mul %x, %0 : tensor<?x8xf32>, tensor<?x8xf32>
    ```
    becomes
    ```mlir
    %1 = mt.silu %x : tensor<?x8xf32>
    ```
    In a step that writes out its gradients, max(x, 0) becomes mt.relu, and x > 0 compares its result.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def RecognizeSoftmax : Pass<"mt-recognize-softmax", "::mlir::ModuleOp"> {
  let summary = "Replace formulas of softmax and its logarithm over the last axis by the operations";
  let description = [{
    ```mlir
    %m = mt.reduce max, %x over [1] : tensor<?x8xf32>
    %0 = mt.reshape %m : tensor<?xf32> to tensor<?x1xf32>
    %1 = mt.sub %x, %0 : tensor<?x8xf32>, tensor<?x1xf32>
    %2 = mt.exp %1 : tensor<?x8xf32>
    %s = mt.reduce sum, %2 over [1] : tensor<?x8xf32>
    %3 = mt.reshape %s : tensor<?xf32> to tensor<?x1xf32>
    %4 = mt.div %2, %3 : tensor<?x8xf32>, tensor<?x1xf32>
    ```
    becomes
    ```mlir
    %4 = mt.softmax %x : tensor<?x8xf32>
    ```
    A formula that subtracts no maximum stays as it is: it overflows where the operation does not.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def RecognizeNormalization : Pass<"mt-recognize-normalization", "::mlir::ModuleOp"> {
  let summary = "Replace formulas of layer normalization by mt.normalize";
  let description = [{
    The mean, the mean of the squared differences from it, and the quotient by the root of that plus epsilon become
    `mt.normalize %x over [2] epsilon = 1.0e-5 : tensor<?x64x32xf32>`; scale and centre stay. The variance as the mean
    of squares minus the square of the mean stays as it is: it has other roundings.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def RecognizeAttention : Pass<"mt-recognize-attention", "::mlir::ModuleOp"> {
  let summary = "Replace products around a softmax by mt.attention";
  let description = [{
    ```mlir
    %0 = mt.matmul %q, %k transpose_b : tensor<?x4x64x8xf32>, tensor<?x4x64x8xf32>
    %1 = mt.mul %0, %scale : tensor<?x4x64x64xf32>, tensor<f32>
    %2 = mt.add %1, %mask : tensor<?x4x64x64xf32>, tensor<64x64xf32>
    %3 = mt.softmax %2 : tensor<?x4x64x64xf32>
    %4 = mt.matmul %3, %v : tensor<?x4x64x64xf32>, tensor<?x4x64x8xf32>
    ```
    becomes `mt.attention %q, %k, %v heads = 4 causal scale = 0.35 : ...` of lines [?, places, heads * channels]. Scale
    and dropout are taken into it, and a constant mask, by its values: a score that a mask makes -1e4 or less is hidden.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Unroll : Pass<"mt-unroll", "::mlir::ModuleOp"> {
  let summary = "Replace each mt.scan by the ops of all its steps";
  let description = [{
    Unrolls loops, inner loops first in each copy of the outer loop. A step reads its part of an input as a slice of a
    row that holds all steps. Outputs are concatenated in the order of the inputs. Each step draws random numbers from a
    stream of its own: step 1 of "s" draws from "s/1". Fails if a loop would become more than `limit` ops.

        %h, %ys = mt.scan over(%x = %xs : tensor<?x2x3xf32>) from(%c = %h0 : tensor<?x3xf32>) {
          %y = mt.add %c, %x : tensor<?x3xf32>, tensor<?x3xf32>
          mt.yield %y, %y : tensor<?x3xf32>, tensor<?x3xf32>
        }

    becomes

        %row = mt.reshape %xs : tensor<?x2x3xf32> to tensor<?x6xf32>
        %x0 = mt.slice %row starts = [0] sizes = [3] : tensor<?x6xf32>
        %y0 = mt.add %h0, %x0 : tensor<?x3xf32>, tensor<?x3xf32>
        %x1 = mt.slice %row starts = [3] sizes = [3] : tensor<?x6xf32>
        %h = mt.add %y0, %x1 : tensor<?x3xf32>, tensor<?x3xf32>
        %all = mt.concat %y0, %h dim = 1 : tensor<?x3xf32>, tensor<?x3xf32>
        %ys = mt.reshape %all : tensor<?x6xf32> to tensor<?x2x3xf32>
  }];
  let options = [Option<"limit", "limit", "int64_t", /*default=*/"100000", "largest number of ops that one loop may "
                                                                           "become">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def DecomposeAttention : Pass<"mt-decompose-attention", "::mlir::ModuleOp"> {
  let summary = "Replace each mt.attention that has no kernel by matrix products and a softmax";
  let description = [{
    There is no kernel for an attention of values without a batch axis, nor, with `max-channels`, for heads of more
    channels. Dropout of the probabilities becomes an mt.dropout.

        %y = mt.attention %q, %k, %v heads = 2 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>

    becomes, with %qh, %kh and %vh of type tensor<2x4x3xf32>: [heads, positions, channels of a head]

        %s = mt.matmul %qh, %kh transpose_b : tensor<2x4x3xf32>, tensor<2x4x3xf32>
        %p = mt.softmax %scaled : tensor<2x4x4xf32>
        %o = mt.matmul %p, %vh : tensor<2x4x4xf32>, tensor<2x4x3xf32>
  }];
  let options = [Option<"all", "all", "bool", /*default=*/"true",
                        "replace every attention, not only attentions that have no kernel">,
                 Option<"maxChannels", "max-channels", "int64_t", /*default=*/"0",
                        "largest number of channels of a head that has a kernel; 0: no limit">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def BlockLosses : Pass<"mt-block-losses", "::mlir::ModuleOp"> {
  let summary = "Choose the losses whose logits are computed by blocks of classes";
  let description = [{
    Marks each loss and accuracy of large logits with `mt.blocks`: a number that all losses and accuracies of the same
    logits share, and the number of classes in a block. docs/ir.md ("Losses over many classes") has the conditions.

        %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x50257xf32>, tensor<?xi32>

    becomes

        %l = mt.sparse_categorical_crossentropy %logits, %label from_logits {mt.blocks = array<i64: 0, 12608>} : ...
  }];
  let options = [Option<"blockBytes", "block-bytes", "int64_t", /*default=*/"64 << 20",
                        "largest size in bytes of the logits of a batch that are stored whole, and of one block of "
                        "logits">,
                 Option<"blocks", "blocks", "int64_t", /*default=*/"0",
                        "smallest number of blocks of the largest logits; blocks of other logits have at most as "
                        "many bytes">,
                 Option<"gpus", "gpus", "bool", /*default=*/"false",
                        "plan for GPUs: count bytes in the plan's precision; leave logits of fewer than 256 classes">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def PadClasses : Pass<"mt-pad-classes", "::mlir::ModuleOp"> {
  let summary = "Pad logits to a multiple of 8 classes, or of 64, if the precision is bf16 or f16";
  let description = [{
    Pads the weights with zeros and the bias with -infinity, so that losses, accuracies and gradients do not change.
    Rows of the logits then begin at addresses that GPU kernels can load 16 bytes from (docs/ir.md, "Classes that pad
    logits").

        %z = mt.matmul %x, %w : tensor<?x64xf32>, tensor<64x1001xf32>
        %l = mt.sparse_categorical_crossentropy %z, %label from_logits : tensor<?x1001xf32>, tensor<?xi32>

    becomes

        %w1 = mt.pad %w low = [0, 0] high = [0, 7] : tensor<64x1001xf32>
        %z1 = mt.matmul %x, %w1 : tensor<?x64xf32>, tensor<64x1008xf32>
        %z2 = mt.add %z1, %bias : tensor<?x1008xf32>, tensor<1008xf32>
        %l = mt.sparse_categorical_crossentropy %z2, %label from_logits : tensor<?x1008xf32>, tensor<?xi32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def PadChannels : Pass<"mt-pad-channels", "::mlir::ModuleOp"> {
  let summary = "Pad and fold images of few channels, if the precision is bf16 or f16";
  let description = [{
    Adds channels of zeros to the images of a convolution, and folds as many adjacent columns into the channels as the
    convolution's stride along the columns. GPU kernels can then copy 8 or 16 bytes at once (docs/ir.md, "Channels that
    pad images").

        %y = mt.conv2d %x, %w strides = [2, 2] padding = [3, 3, 3, 3] : tensor<?x10x12x3xf32>, tensor<7x7x3x8xf32>

    becomes

        %x1 = mt.pad %x low = [0, 0, 0] high = [0, 0, 1] : tensor<?x10x12x3xf32>
        %x2 = mt.reshape %x1 : tensor<?x10x12x4xf32> to tensor<?x10x6x8xf32>
        %w1 = mt.pad %w low = [0, 1, 0, 0] high = [0, 0, 1, 0] : tensor<7x7x3x8xf32>
        %w2 = mt.reshape %w1 : tensor<7x8x4x8xf32> to tensor<7x4x8x8xf32>
        %y = mt.conv2d %x2, %w2 strides = [2, 1] padding = [3, 3, 2, 1] : tensor<?x10x6x8xf32>, tensor<7x4x8x8xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def PoolBorders : Pass<"mt-pool-borders", "::mlir::ModuleOp"> {
  let summary = "Make borders of zeros around rectified images the padding of max pools, for GPUs";
  let description = [{
    Neither the images with their border nor the gradient of these are stored then.

        %1 = mt.pad %0 low = [1, 1, 0] high = [1, 1, 0] : tensor<?x8x8x4xf32>
        %y = mt.pool max, %1 window = [3, 3] strides = [2, 2] : tensor<?x10x10x4xf32>

    becomes, if %0 is the result of an mt.relu

        %y = mt.pool max, %0 window = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x8x8x4xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def ExpandOptimizer : Pass<"mt-expand-optimizer", "::mlir::ModuleOp"> {
  let summary = "Replace the optimizer of a model by its variables and mt.update";
  let description = [{
    `mt.sgd <{learning_rate = 0.1 : f32}>` becomes

    ```mlir
    %i = mt.variable "sgd/iteration" init(zeros) frozen role(iteration) : tensor<i32>
    %r = mt.variable "sgd/learning_rate" init(constant = 0.1) frozen role(learning_rate) : tensor<f32>
    mt.update {
      %g = mt.gradient "w" required : tensor<4xf32>
      %0 = mt.mul %g, %r : tensor<4xf32>, tensor<f32>
      %1 = mt.sub %w, %0 : tensor<4xf32>, tensor<4xf32>
      mt.assign "w", %1 : tensor<4xf32>
    }
    ```
    The update clips the gradients, decays and updates the variables, and updates their averages, in this order.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Differentiate : Pass<"mt-differentiate", "::mlir::ModuleOp"> {
  let summary = "Replace the model by variable declarations and the programs init, train_step, eval_step and predict";
  let description = [{
    Copies the forward body into each program, adds the backward pass (reverse mode, GradientOpInterface), the body of
    `mt.update`, losses and metrics. Fails if an op between a trainable variable and the loss has no gradient.

        mt.model @m {
          %x = mt.input "x" : tensor<?x4xf32>
          %w = mt.variable "w" init(zeros) : tensor<4x3xf32>
          %y = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
          ...
          mt.sgd
        }

    becomes

        mt.declare "w" trainable tensor<4x3xf32>
        ...
        mt.program @train_step {
          %x = mt.input "x" : tensor<?x4xf32>
          %w = mt.read "w" : tensor<4x3xf32>
          %y = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
          ...
          %dw = mt.matmul %x, %dy transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
          mt.assign "w", %new : tensor<4x3xf32>
        }
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Decompose : Pass<"mt-decompose", "::mlir::ModuleOp"> {
  let summary = "Replace composites (softmax, losses, metrics) by simpler ops";
  let description = [{
    A composite is an op that implements DecomposeOpInterface. No composite is left.

        %p = mt.softmax %z : tensor<?x10xf32>

    becomes

        %m = mt.reduce max, %z over [1] : tensor<?x10xf32>
        ...
        %e = mt.exp %d : tensor<?x10xf32>
        %s = mt.reduce sum, %e over [1] : tensor<?x10xf32>
        ...
        %p = mt.div %e, %b : tensor<?x10xf32>, tensor<?x10xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def BlockLogits : Pass<"mt-block-logits", "::mlir::ModuleOp"> {
  let summary = "Compute each block of logits as a product with a part of the weights";
  let description = [{
    Splits the product that computes the logits, and every product and sum that reads their gradient, into one op per
    block of classes. An op that reads a block gets the block's turn (`mt.turn`, docs/ir.md).

        %z = mt.matmul %x, %w transpose_b : tensor<?x64xf32>, tensor<1000x64xf32>
        %b = mt.slice %z starts = [500] sizes = [500] {mt.turn = array<i64: 0, 1>} : tensor<?x1000xf32>

    becomes

        %v = mt.slice %w starts = [500, 0] sizes = [500, 64] : tensor<1000x64xf32>
        %b = mt.matmul %x, %v transpose_b {mt.turn = array<i64: 0, 1>} : tensor<?x64xf32>, tensor<500x64xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def CropGradients : Pass<"mt-crop-gradients", "::mlir::ModuleOp"> {
  let summary = "Slice the operands of a product over the batch instead of its result";
  let description = [{
    If only the first rows or columns of the product are read, the other rows or columns are not computed.

        %p = mt.matmul %a, %b transpose_a : tensor<?x4xf32>, tensor<?x8xf32>
        %s = mt.slice %p starts = [0, 0] sizes = [4, 6] : tensor<4x8xf32>

    becomes

        %c = mt.slice %b starts = [0] sizes = [6] : tensor<?x8xf32>
        %s = mt.matmul %a, %c transpose_a : tensor<?x4xf32>, tensor<?x6xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def JoinSums : Pass<"mt-join-sums", "::mlir::ModuleOp"> {
  let summary = "Join the terms of a gradient into one product, sum, table or concatenation";
  let description = [{
    A value with several readers, such as a variable that every step of a loop reads, has a gradient of several terms.
    Joined, they need one all-reduce (docs/ir.md, "One sum over the batch per variable").

        %2 = mt.matmul %a2, %b2 transpose_a : tensor<?x2xf32>, tensor<?x3xf32>
        %1 = mt.matmul %a1, %b1 transpose_a : tensor<?x2xf32>, tensor<?x3xf32>
        %0 = mt.matmul %a0, %b0 transpose_a : tensor<?x2xf32>, tensor<?x3xf32>
        %sum = ...                                                             // %2 + %1 + %0 : tensor<2x3xf32>

    becomes, with %as : tensor<?x3x2xf32> and %bs : tensor<?x3x3xf32> that hold one row per term

        %each = mt.matmul %as, %bs transpose_a : tensor<?x3x2xf32>, tensor<?x3x3xf32>
        %sum = mt.reduce sum, %each over [0] : tensor<?x2x3xf32>

    A sum over the batch of differences from the mean of the batch, or of a multiple of them, becomes zeros.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def ViewVariables : Pass<"mt-view-variables", "::mlir::ModuleOp"> {
  let summary = "Read and assign variables in the shape in which the program computes with them";
  let description = [{
    ```mlir
    %0 = mt.read "kernel" : tensor<32x4x8xf32>
    %1 = mt.reshape %0 : tensor<32x4x8xf32> to tensor<32x32xf32>
    ```
    becomes
    ```mlir
    %1 = mt.read "kernel" : tensor<32x32xf32>
    ```
    An assigned value that is computed element by element from reshapes of gradients, variables and scalars is computed
    in the shape of the gradients.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Precision : Pass<"mt-precision", "::mlir::ModuleOp"> {
  let summary = "Round the operands and results of contractions to bf16 or f16";
  let description = [{
    Inserts casts to the `precision` of the module's `mt.compilation`, unless it is f32 or tf32. Sums over the batch
    stay f32 (docs/precision.md section 1).

        %z = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>

    becomes, if several ops read %z

        %x1 = mt.cast %x : tensor<?x4xf32> to tensor<?x4xbf16>
        %w1 = mt.cast %w : tensor<4x6xf32> to tensor<4x6xbf16>
        %z0 = mt.matmul %x1, %w1 : tensor<?x4xbf16>, tensor<4x6xbf16>
        %z1 = mt.cast %z0 : tensor<?x6xf32> to tensor<?x6xbf16>
        %z = mt.cast %z1 : tensor<?x6xbf16> to tensor<?x6xf32>
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

def ShiftVariances : Pass<"mt-shift-variances", "::mlir::ModuleOp"> {
  let summary = "Sum the squares of batch normalization in the pass that sums the mean, for GPUs";
  let description = [{
    The squares are those of differences from the first pixel of each sample; a correction follows (docs/ir.md, "Batch
    normalization on GPUs").

        %d = mt.sub %x, %mean : tensor<?x8x8x16xf32>, tensor<16xf32>
        %q = mt.square %d : tensor<?x8x8x16xf32>
        %s = mt.reduce sum, %q over [1, 2] : tensor<?x8x8x16xf32>

    becomes, with %sum over the pixels of %x

        %f = mt.slice %x starts = [0, 0, 0] sizes = [1, 1, 16] : tensor<?x8x8x16xf32>
        %d = mt.sub %x, %f : tensor<?x8x8x16xf32>, tensor<?x1x1x16xf32>
        %a = mt.reduce sum, %d over [1, 2] : tensor<?x8x8x16xf32>
        %q = mt.square %d : tensor<?x8x8x16xf32>
        %b = mt.reduce sum, %q over [1, 2] : tensor<?x8x8x16xf32>

    and the sum of %b and what %a, %sum and %mean say about the rest.
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

// shard
def Annotate : Pass<"mt-annotate", "::mlir::ModuleOp"> {
  let summary = "Annotate inputs and targets as split, variables as replicated";
  let description = [{
    Adds the grid of shards. Propagation starts from these annotations.

        %x = mt.input "x" : tensor<?x4xf32>
        %w = mt.read "w" : tensor<4x3xf32>

    becomes, with `shard.grid @shards(shape = 8)` in the module

        %split = shard.sharding @shards split_axes = [[0]] : !shard.sharding
        %replicated = shard.sharding @shards split_axes = [[]] : !shard.sharding
        %x0 = mt.input "x" : tensor<?x4xf32>
        %x = shard.shard %x0 to %split : tensor<?x4xf32>
        %w0 = mt.read "w" : tensor<4x3xf32>
        %w = shard.shard %w0 to %replicated : tensor<4x3xf32>
  }];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
  let options = [Option<"shards", "shards", "int64_t", /*default=*/"0",
                        "number of shards, a power of two; 0: `shards` of the module's mt.compilation">];
}
def Propagate : Pass<"mt-propagate", "::mlir::ModuleOp"> {
  let summary = "Annotate every value as split or replicated";
  let description = [{
    Follows the annotations of operands through the indexing maps of MLIR's ShardingInterface. Fails if operands
    disagree, or if a reduction other than a sum crosses the split axis.

        %y = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>

    becomes, if %x is split and %w is replicated

        %y0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
        %y = shard.shard %y0 to %split : tensor<?x3xf32>
  }];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}
def Partition : Pass<"mt-partition", "::mlir::ModuleOp"> {
  let summary = "Rewrite programs to one shard's view, with an all-reduce after each sum over the batch";
  let description = [{
    Removes the annotations. Types do not change: `?` stands for the valid rows of one shard from here on.

        %d0 = mt.matmul %x, %g transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
        %d = shard.shard %d0 to %replicated : tensor<4x3xf32>

    becomes

        %p = mt.matmul %x, %g transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
        %d = shard.all_reduce %p on @shards grid_axes = [0] : tensor<4x3xf32> -> tensor<4x3xf32>
  }];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}
def Bucket : Pass<"mt-bucket", "::mlir::ModuleOp"> {
  let summary = "Group all-reduces into buckets, in one total order";
  let description = [{
    A bucket is one exchange between devices. There are as few buckets as dependencies between all-reduces and the limit
    `bucket-bytes` allow (docs/ir.md section 3).

        %d = shard.all_reduce %p on @shards grid_axes = [0] : tensor<4x3xf32> -> tensor<4x3xf32>

    becomes

        %d = shard.all_reduce %p on @shards grid_axes = [0] {mt.bucket = 1 : i64} : tensor<4x3xf32> -> tensor<4x3xf32>
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", /*default=*/"25 << 20",
                        "largest size in bytes of the last bucket, on which no all-reduce depends; a larger gradient "
                        "is "
                        "a bucket of its own">];
}

// fuse
def Fuse : Pass<"mt-fuse", "::mlir::ModuleOp"> {
  let summary = "Group ops into kernels";
  let description = [{
    Rewrites each program to mt.kernel ops and the ops that stay between kernels (docs/ir.md section 4). Fuse.cpp states
    the rules.

        %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x256xf32>
        %1 = mt.add %0, %b : tensor<?x256xf32>, tensor<256xf32>
        %2 = mt.relu %1 : tensor<?x256xf32>

    becomes

        %2 = mt.kernel "dense/matmul+add+relu" matmul (%a = %x : tensor<?x784xf32>, %c = %w : tensor<784x256xf32>,
                                                       %d = %b : tensor<256xf32>) -> (tensor<?x256xf32>) {
          %3 = mt.matmul %a, %c : tensor<?x784xf32>, tensor<784x256xf32>
          %4 = mt.add %3, %d : tensor<?x256xf32>, tensor<256xf32>
          %5 = mt.relu %4 : tensor<?x256xf32>
          mt.yield %5 : tensor<?x256xf32>
        }
  }];
  let options = [Option<"images", "images", "bool", "true",
                        "convolutions of few taps times channels may be fused into `rows` kernels">,
                 Option<"temporaryBytes", "temporary-bytes", "int64_t", "0",
                        "largest size in bytes of the temporaries of a `rows` or `single` kernel; 0: no limit">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

// recompute
def Recompute : Pass<"mt-recompute", "::mlir::ModuleOp"> {
  let summary = "Clone cheap kernels for late readers, until the step fits in a device's memory";
  let description = [{
    Rematerialization: a result that is read in the forward and in the backward pass need not stay in memory between the
    two. The clone is marked `recomputed`. Does nothing if `device-memory` is 0. The bits of all results stay the same.

        %h = mt.kernel "h" rows (...) -> (tensor<?x64xf32>) { ... }
        ...                                                             // the backward pass reads %h

    becomes

        %h = mt.kernel "h" rows (...) -> (tensor<?x64xf32>) { ... }
        ...
        %again = mt.kernel "h" rows (...) -> (tensor<?x64xf32>) recomputed { ... }
        ...                                                             // the backward pass reads %again
  }];
  // The pass allocates and generates code of a copy of the program, to find the scratch memory that kernels need.
  let dependentDialects = ["::mlir::mt::MtDialect", "::mlir::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"deviceMemory", "device-memory", "int64_t", /*default=*/"0",
                        "memory limit of a device in bytes; 0: no limit">,
                 Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
                        "number of micro-batches of a batch, which a device computes one after the other">,
                 Option<"gpus", "gpus", "bool", /*default=*/"false",
                        "the plan has code for GPUs, for which mt-schedule and mt-allocate have options">];
}

// schedule
def Schedule : Pass<"mt-schedule", "::mlir::ModuleOp"> {
  let summary = "Order kernels and all-reduces, and set the barrier before each kernel";
  let description = [{
    Sets `wait` of each kernel to the barrier before it (`none`, `device` or `all`), and `share` if the kernel writes
    memory that devices share. Adds a copy if a variable cannot be written in place. With `gpus`, a kernel that the last
    blocks of the kernel before it compute has the attribute `mt.tail`.

        %y = mt.kernel "a" rows (...) -> (tensor<?x4xf32>) { ... }
        %z = mt.kernel "b" rows (%i = %y : tensor<?x4xf32>) -> (tensor<?x4xf32>) { ... }

    becomes

        %y = mt.kernel "a" rows (...) -> (tensor<?x4xf32>) wait none { ... }
        %z = mt.kernel "b" rows (%i = %y : tensor<?x4xf32>) -> (tensor<?x4xf32>) wait device { ... }
  }];
  let dependentDialects = ["::mlir::mt::MtDialect"];
  let options = [Option<"gpus", "gpus", "bool", /*default=*/"false",
                        "copies of variables in 16 bits come first, together; kernels have tails">];
}

// allocate
def Allocate : Pass<"mt-allocate", "::mlir::ModuleOp"> {
  let summary = "Assign a buffer to every value, and rewrite programs to the plan dialect";
  let description = [{
    Packs the buffers of each variant (1, 2, 4 ... shards on a device) into an arena. Fails if no number of devices has
    enough `device-memory`.

        %y = mt.kernel "double" rows (%i = %x : tensor<?x16xf32>) -> (tensor<?x16xf32>) wait none { ... }

    becomes, with `plan.kernel @double` in the module

        %x = plan.buffer "x" signature [] of "x" : <tensor<?x16xf32>>
        %y = plan.buffer "y" arena [0] : <tensor<?x16xf32>>
        plan.launch @double wait none reads(%x : !plan.buffer<tensor<?x16xf32>>)
          writes(%y : !plan.buffer<tensor<?x16xf32>>) counts [0]
  }];
  // The pass generates code of the kernels, to find the scratch memory that they need.
  let dependentDialects = ["::mlir::mt::MtDialect", "::mlir::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"deviceMemory", "device-memory", "int64_t", /*default=*/"0",
                        "memory limit of a device in bytes; 0: no limit">,
                 Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
                        "number of micro-batches of a batch, which a device computes one after the other">,
                 Option<"segments", "segments", "bool", /*default=*/"false",
                        "launches of equal kernels of all kinds become one launch, as GPUs like it">];
}
def PlanCheck : Pass<"plan-check", "::mlir::ModuleOp"> {
  let summary = "Check that conflicting accesses to memory are ordered, in every variant";
  let description = [{
    Two accesses conflict if they touch the same byte and one of them writes. Fails at the later one of two
    conflicting accesses that no barrier orders, and at a read of a value that another launch has overwritten.
    Changes nothing.
  }];
  let dependentDialects = ["::mlir::plan::PlanDialect"];
}

// codegen
def LibraryCalls : Pass<"plan-library-calls", "::mlir::ModuleOp"> {
  let summary = "Mark kernels that a call of cuBLASLt or cuDNN can compute";
  let description = [{
    Sets `library_call`. The generated code of the kernel stays in the plan (docs/libraries.md).

        plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, ...} { ... }

    becomes

        plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, library_call = #plan.library_call<product, ...>}
  }];
}
def PlanCodegen : Pass<"plan-codegen", "::mlir::ModuleOp"> {
  let summary = "Set the grids of kernels, and generate machine code for every target";
  let description = [{
    Fails if a target is unknown, or if a kernel needs more registers or workgroup memory than a target has.

        plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, ...} { ... }

    becomes

        plan.kernel @dense attributes {inner_tiles = 4 : i64, rows_per_tile = 8 : i64, ...}
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
  let options = [ListOption<"cpus", "cpus", "std::string", "CPU targets, best first, with the names of `mtc --cpu`">,
                 ListOption<"gpus", "gpus", "std::string", "GPU targets: sm_75 or a newer architecture, or simulated">,
                 Option<"object", "object", "std::string", /*default=*/"\"\"",
                        "path of the shared object to write for the first CPU target; empty: no file">,
                 Option<"ptx", "ptx", "std::string", /*default=*/"\"\"", "path of the PTX file to write; empty: no "
                                                                         "file">,
                 Option<"keepGpuKernels", "keep-gpu-kernels", "bool", "false",
                        "leave the GPU kernels in the module as gpu.func ops">];
}
#endif
