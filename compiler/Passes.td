// SPDX-License-Identifier: Apache-2.0
//
// Every pass, in the order of the pipeline. Each has a source file and a lit test of its name.
#ifndef COMPILER_PASSES_TD
#define COMPILER_PASSES_TD

include "mlir/Pass/PassBase.td"

// differentiate
def RecognizeActivations : Pass<"mt-recognize-activations", "::mlir::ModuleOp"> {
  let summary = "Replace formulas of GELU, SiLU and Mish by the operations";
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
  let summary = "Replace loops over steps by the ops of all their steps";
  let options = [Option<"limit", "limit", "int64_t", /*default=*/"100000", "the most ops that a loop may become">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def DecomposeAttention : Pass<"mt-decompose-attention", "::mlir::ModuleOp"> {
  let summary = "Replace attentions that no kernel computes as one by products and softmax";
  let options = [Option<"all", "all", "bool", /*default=*/"true",
                        "every attention; else those without a batch axis or of too many channels">,
                 Option<"maxChannels", "max-channels", "int64_t", /*default=*/"0",
                        "the most channels of a head that kernels take; 0: any number">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def BlockLosses : Pass<"mt-block-losses", "::mlir::ModuleOp"> {
  let summary = "Choose the losses whose logits exist for a block of classes at a time";
  let options = [Option<"blockBytes", "block-bytes", "int64_t", /*default=*/"64 << 20",
                        "the most bytes of logits of the whole batch that are stored as a whole, and of a block's">,
                 Option<"blocks", "blocks", "int64_t", /*default=*/"0",
                        "of the largest logits, so many blocks at least; smaller ones have blocks of as many bytes">,
                 Option<"gpus", "gpus", "bool", /*default=*/"false",
                        "logits of a plan for GPUs: counted in their precision, of 256 classes at least">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def PadClasses : Pass<"mt-pad-classes", "::mlir::ModuleOp"> {
  let summary = "With the precision bf16 or f16: give logits of labels classes up to a multiple of 8, or of 64";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def PadChannels : Pass<"mt-pad-channels", "::mlir::ModuleOp"> {
  let summary = "With the precision bf16 or f16: give images of few channels more, and fold columns into them";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Differentiate : Pass<"mt-differentiate", "::mlir::ModuleOp"> {
  let summary = "Turn the model into declarations and the programs init, train_step, eval_step and predict";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def Decompose : Pass<"mt-decompose", "::mlir::ModuleOp"> {
  let summary = "Replace composites (softmax, losses, metrics) by the ops that they stand for";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def BlockLogits : Pass<"mt-block-logits", "::mlir::ModuleOp"> {
  let summary = "Compute logits of which only blocks of classes are read by blocks, and what becomes of their gradient";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def CropGradients : Pass<"mt-crop-gradients", "::mlir::ModuleOp"> {
  let summary = "Compute no more of a product over the batch than the part of it that is read";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
def JoinSums : Pass<"mt-join-sums", "::mlir::ModuleOp"> {
  let summary = "Join the gradients of a value that many ops read: parts, products and sums over the batch";
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
  let summary = "round what contractions read and compute to the module's mt.precision, bf16 or f16";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

// shard
def Annotate : Pass<"mt-annotate", "::mlir::ModuleOp"> {
  let summary = "say what is given: the grid of shards, signature values split, variables replicated";
  let dependentDialects = ["::mlir::shard::ShardDialect"];
  let options = [Option<"shards", "shards", "int64_t", /*default=*/"0",
                        "shards R, a power of two; 0: the module's mt.shards">];
}
def Propagate : Pass<"mt-propagate", "::mlir::ModuleOp"> {
  let summary = "annotate every value as split or replicated, as the loops of the ops demand";
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}
def Partition : Pass<"mt-partition", "::mlir::ModuleOp"> {
  let summary = "one shard's view: no annotations, an all-reduce after each sum over the batch";
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}
def Bucket : Pass<"mt-bucket", "::mlir::ModuleOp"> {
  let summary = "group the all-reduces into as few buckets as their dependencies and a limit allow, in one total order";
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", /*default=*/"25 << 20",
                        "the most bytes of a bucket that nothing waits for (gradients), but for a larger gradient "
                        "alone">];
}

// fuse
def Fuse : Pass<"mt-fuse", "::mlir::ModuleOp"> {
  let summary = "Group computations into kernels";
  let options = [Option<"images", "images", "bool", "true",
                        "convolutions of few taps times channels may be steps of kernels of rows">,
                 Option<"singleBytes", "single-bytes", "int64_t", "0",
                        "most bytes of values that a kernel of kind single keeps for itself; 0: no limit">];
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

// recompute
def Recompute : Pass<"mt-recompute", "::mlir::ModuleOp"> {
  let summary = "Run cheap kernels again before late readers, until the step fits in a device's memory";
  // The plan's, and those of code, which is written to know its scratch.
  let dependentDialects = ["::mlir::mt::MtDialect", "::mlir::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"deviceMemory", "device-memory", "int64_t", /*default=*/"0",
                        "bytes a device may use; 0: no limit">,
                 Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
                        "of the batch, which a device computes one after the other">];
}

// schedule
def Schedule : Pass<"mt-schedule", "::mlir::ModuleOp"> {
  let summary = "Order kernels and all-reduces, and say for what each kernel waits";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}

// allocate
def Allocate : Pass<"mt-allocate", "::mlir::ModuleOp"> {
  let summary = "Give every value a place, and turn programs into plan programs";
  // The plan's, and those of code, which is written to know its scratch.
  let dependentDialects = ["::mlir::mt::MtDialect", "::mlir::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"deviceMemory", "device-memory", "int64_t", /*default=*/"0",
                        "bytes a device may use; 0: no limit">,
                 Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
                        "of the batch, which a device computes one after the other">];
}
def PlanCheck : Pass<"plan-check", "::mlir::ModuleOp"> {
  let summary = "Prove that any two conflicting accesses to a byte are ordered, in every layout";
  let dependentDialects = ["::mlir::plan::PlanDialect"];
}

// codegen
def LibraryCalls : Pass<"plan-library-calls", "::mlir::ModuleOp"> {
  let summary = "Mark the kernels that a GPU library can compute in place of their code";
}
def PlanCodegen : Pass<"plan-codegen", "::mlir::ModuleOp"> {
  let summary = "Set the kernels' grids, and compile them to machine code for every target";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
  let options = [ListOption<"cpus", "cpus", "std::string", "CPU targets, best first: native, or names of CpuTarget.h">,
                 ListOption<"gpus", "gpus", "std::string", "GPU targets: sm_75 and newer, or simulated">,
                 Option<"object", "object", "std::string", /*default=*/"\"\"",
                        "file for the shared object of the first CPU target; empty: none">,
                 Option<"ptx", "ptx", "std::string", /*default=*/"\"\"", "file for PTX; empty: none">,
                 Option<"keepGpuKernels", "keep-gpu-kernels", "bool", "false",
                        "leave the kernels in the module as gpu.funcs">];
}
#endif
