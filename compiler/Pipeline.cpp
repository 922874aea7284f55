// SPDX-License-Identifier: Apache-2.0
#include "compiler/Pipeline.h"
#include "compiler/Legality.h"
#include "compiler/Passes.h"
#include "compiler/plan/Serialize.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mtc {

namespace {

void buildNothing(OpPassManager &, Compilation &) {}

void buildDifferentiate(OpPassManager &passes, Compilation &compilation) {
  DecomposeAttentionOptions attention;
  attention.all = false;
  attention.maxChannels = compilation.gpus.empty() ? 0 : maxGpuHeadChannels;
  passes.addPass(createRecognizeActivations());
  passes.addPass(createRecognizeSoftmax());
  passes.addPass(createRecognizeNormalization());
  passes.addPass(createRecognizeAttention());
  passes.addPass(createUnroll());
  passes.addPass(createDecomposeAttention(attention));
  BlockLossesOptions blocks;
  blocks.gpus = !compilation.gpus.empty();
  blocks.blockBytes = blocks.gpus ? compilation.gpuLogitBytes : compilation.logitBytes;
  blocks.blocks = compilation.logitBlocks;
  if (blocks.gpus) {
    passes.addPass(createPadClasses());
    passes.addPass(createPadChannels());
  }
  passes.addPass(createBlockLosses(blocks));
  passes.addPass(createDifferentiate());
  passes.addPass(createDecompose());
  passes.addPass(createBlockLogits());
  passes.addPass(createCropGradients());
  passes.addPass(createJoinSums());
  passes.addPass(createViewVariables());
  passes.addPass(createPrecision());
  passes.addPass(createCSEPass());
}

void buildShard(OpPassManager &passes, Compilation &) {
  passes.addPass(createAnnotate());
  passes.addPass(createPropagate());
  passes.addPass(createPartition());
  passes.addPass(createBucket());
}

void buildFuse(OpPassManager &passes, Compilation &compilation) {
  FuseOptions options;
  options.images = compilation.gpus.empty(); // a block of a GPU has no memory for a sample's image
  options.singleBytes = compilation.cpus.empty() ? 0 : maxTemporaryBytes;
  passes.addPass(createFuse(options));
}

// What stages before `codegen` ask of it. `compilation` outlives the answer.
KernelScratch scratchOf(const Compilation &compilation) {
  return [&cpus = compilation.cpus](ModuleOp module) { return maxScratch(module, codegenOptions(module, cpus)); };
}

void buildRecompute(OpPassManager &passes, Compilation &compilation) {
  if (StringRef(compilation.options.recompute) != "auto")
    return;
  RecomputeOptions options;
  options.deviceMemory = compilation.options.device_memory;
  options.microBatches = std::max(compilation.options.micro_batches, 1);
  passes.addPass(createRecompute(options, scratchOf(compilation)));
}

void buildSchedule(OpPassManager &passes, Compilation &) { passes.addPass(createSchedule()); }

void buildAllocate(OpPassManager &passes, Compilation &compilation) {
  AllocateOptions options;
  options.deviceMemory = compilation.options.device_memory;
  options.microBatches = std::max(compilation.options.micro_batches, 1);
  passes.addPass(createAllocate(options, scratchOf(compilation)));
  passes.addPass(createPlanCheck());
}

void buildCodegen(OpPassManager &passes, Compilation &compilation) {
  if (!compilation.gpus.empty())
    passes.addPass(createLibraryCalls());
  passes.addPass(createCodegenPass(compilation.cpus, compilation.gpus, compilation.code));
}

LogicalResult checkNothing(ModuleOp) { return success(); }

// The pipeline. Between two rows stands what holds from there on; `check` enforces it.
constexpr Stage table[] = {
    {"import", "read the file: one mt.model", buildNothing, checkImport},
    // One mt.model, as the user wrote it.
    {"differentiate", "backward pass, optimizer, losses and metrics: declarations and four programs",
     buildDifferentiate, checkDifferentiate},
    // Pure programs of primitive ops over the global batch; variables are read and assigned by name.
    {"shard", "one shard's view: an all-reduce after each sum over the batch, in buckets", buildShard, checkShard},
    // `?` is a shard's rows. Each sum over the batch has exactly one all-reduce, each all-reduce a bucket, buckets
    // one order.
    {"fuse", "group computations into kernels", buildFuse, checkFuse},
    // Every computation is inside an mt.kernel that keeps the contract of its kind. Assigned values are elementwise
    // kernels' results.
    {"recompute", "under a limit of memory: run cheap kernels again in place of keeping what they computed",
     buildRecompute, checkFuse},
    // The same kernels, some of them twice.
    {"schedule", "order kernels and all-reduces, and what each waits for", buildSchedule, checkSchedule},
    // Program order is the order of execution; `wait` and all-reduces order every pair of kernels that must be.
    {"allocate", "give every value a place: in-place updates, one arena layout for each number of shards",
     buildAllocate, checkAllocate},
    // Only the plan dialect is left. Any two conflicting accesses to a byte are ordered, in every layout (plan-check).
    {"codegen", "machine code of every kernel for each target", buildCodegen, checkCodegen},
    // Every kernel has a grid, and code for every target.
    {"plan", "write the plan file", buildPlan, checkNothing},
};

} // namespace

llvm::ArrayRef<Stage> stages() { return table; }

// Whether a list of --print-ir-before or --print-ir-after names a pass.
static bool names(const char *list, StringRef pass) {
  SmallVector<StringRef> parts;
  StringRef(list ? list : "").split(parts, ',');
  return llvm::is_contained(parts, pass) || llvm::is_contained(parts, "all");
}

std::vector<std::string> passNames(MLIRContext &context, Compilation &compilation) {
  std::vector<std::string> all;
  for (const Stage &stage : stages()) {
    PassManager passes(&context, ModuleOp::getOperationName(), OpPassManager::Nesting::Explicit);
    stage.build(passes, compilation);
    for (Pass &pass : passes.getPasses())
      if (!pass.getArgument().empty())
        all.push_back(pass.getArgument().str());
  }
  return all;
}

LogicalResult runStage(const Stage &stage, ModuleOp module, Compilation &compilation) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName(), OpPassManager::Nesting::Explicit);
  stage.build(passes, compilation);
  const mtc_options &options = compilation.options;
  if (options.print_ir_before || options.print_ir_after)
    passes.enableIRPrinting(
        [&](Pass *pass, Operation *) { return names(options.print_ir_before, pass->getArgument()); },
        [&](Pass *pass, Operation *) { return names(options.print_ir_after, pass->getArgument()); },
        /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false);
  if (failed(passes.run(module)))
    return failure();
  return stage.check(module);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<mt::MtDialect, plan::PlanDialect, shard::ShardDialect>();
}

} // namespace mtc
