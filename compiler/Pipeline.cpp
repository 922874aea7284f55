// SPDX-License-Identifier: Apache-2.0
#include "compiler/Pipeline.h"
#include "compiler/Legality.h"
#include "compiler/Passes.h"
#include "compiler/Reproducer.h"
#include "compiler/plan/Serialize.h"
#include "runtime/support/suggest.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc {

namespace {

void buildNothing(OpPassManager &, Compilation &) {}

void buildDifferentiate(OpPassManager &passes, Compilation &compilation) {
  DecomposeAttentionOptions attention;
  attention.all = false;
  attention.maxChannels = compilation.gpus.empty() ? 0 : maxGpuHeadChannels;
  passes.addPass(createAddBeforeSplit());
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
    passes.addPass(createPoolBorders());
  }
  passes.addPass(createBlockLosses(blocks));
  passes.addPass(createExpandOptimizer());
  passes.addPass(createDifferentiate());
  passes.addPass(createDecompose());
  passes.addPass(createBlockLogits());
  passes.addPass(createCropGradients());
  passes.addPass(createJoinSums());
  passes.addPass(createViewVariables());
  passes.addPass(createPrecision());
  if (blocks.gpus)
    passes.addPass(createShiftVariances());
  passes.addPass(createCSEPass());
}

void buildShard(OpPassManager &passes, Compilation &compilation) {
  BucketOptions bucket;
  if (compilation.options.bucket_bytes)
    bucket.bucketBytes = compilation.options.bucket_bytes;
  passes.addPass(createAnnotate());
  passes.addPass(createPropagate());
  passes.addPass(createPartition());
  passes.addPass(createBucket(bucket));
}

void buildFuse(OpPassManager &passes, Compilation &compilation) {
  FuseOptions options;
  options.images = compilation.gpus.empty(); // a GPU block has no memory for the feature map of a sample
  options.temporaryBytes = compilation.cpus.empty() ? 0 : fusedTemporaryBytes;
  passes.addPass(createFuse(options));
}

// Computes the scratch memory for passes before `codegen`. `compilation` outlives the function.
KernelScratch scratchOf(const Compilation &compilation) {
  return [&cpus = compilation.cpus](ModuleOp module) { return maxScratch(module, codegenOptions(module, cpus)); };
}

void buildRecompute(OpPassManager &passes, Compilation &compilation) {
  if (StringRef(compilation.options.recompute) != "auto")
    return;
  RecomputeOptions options;
  options.gpus = !compilation.gpus.empty();
  options.deviceMemory = compilation.options.device_memory;
  options.microBatches = std::max(compilation.options.micro_batches, 1);
  passes.addPass(createRecompute(options, scratchOf(compilation)));
}

void buildSchedule(OpPassManager &passes, Compilation &compilation) {
  ScheduleOptions options;
  options.gpus = !compilation.gpus.empty();
  passes.addPass(createSchedule(options));
}

void buildAllocate(OpPassManager &passes, Compilation &compilation) {
  AllocateOptions options;
  options.segments = !compilation.gpus.empty();
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

// The pipeline. The comment between two rows states what holds between the two stages; `check` checks it.
constexpr Stage table[] = {
    {"import", "read the model", buildNothing, checkImport},
    // The module holds one mt.model, as the user wrote it.
    {"differentiate", "add backward pass, optimizer, losses and metrics: one program per entry point",
     buildDifferentiate, checkDifferentiate},
    // Programs are pure and hold primitive ops over the global batch; they read and assign variables by name.
    {"shard", "rewrite programs to one shard's view, with all-reduces in buckets", buildShard, checkShard},
    // `?` is the number of rows of a shard. Exactly one all-reduce follows each sum over the batch, each all-reduce has
    // a bucket, and the buckets are ordered.
    {"fuse", "group ops into kernels", buildFuse, checkFuse},
    // Every computation is inside of an mt.kernel that satisfies the contract of its kind. Assigned values are results
    // of elementwise kernels.
    {"recompute", "under a memory limit, repeat cheap kernels instead of keeping their results", buildRecompute,
     checkFuse},
    // The same as before; some kernels occur twice.
    {"schedule", "order kernels and all-reduces, and set barriers", buildSchedule, checkSchedule},
    // Program order is the order of execution. `wait` and all-reduces order two kernels if one of them depends on the
    // other.
    {"allocate", "assign buffers, with one arena layout per number of shards", buildAllocate, checkAllocate},
    // Only the plan dialect is left. Conflicting accesses to a byte are ordered, in every variant (plan-check).
    {"codegen", "generate machine code of every kernel for each target", buildCodegen, checkCodegen},
    // Every kernel has a grid, and code for every target.
    {"plan", "write the plan file", buildPlan, checkNothing},
};

} // namespace

llvm::ArrayRef<Stage> stages() { return table; }

// Items of a list of --print-ir-before or --print-ir-after.
static SmallVector<StringRef> itemsOf(const char *list) {
  SmallVector<StringRef> items;
  StringRef(list ? list : "").split(items, ',', -1, /*KeepEmpty=*/false);
  return items;
}

static bool names(const char *list, StringRef pass) {
  SmallVector<StringRef> items = itemsOf(list);
  return llvm::is_contained(items, pass) || llvm::is_contained(items, "all");
}

namespace {
struct StagePasses : PassManager {
  StagePasses(const Stage &stage, MLIRContext &context, Compilation &compilation)
      : PassManager(&context, ModuleOp::getOperationName(), Nesting::Explicit) {
    stage.build(*this, compilation);
  }
};
} // namespace

std::string checkPassList(const char *list, MLIRContext &context, Compilation &compilation) {
  std::vector<std::string> all;
  for (const Stage &stage : stages()) {
    StagePasses passes(stage, context, compilation);
    for (Pass &pass : passes.getPasses())
      if (!pass.getArgument().empty())
        all.push_back(pass.getArgument().str());
  }
  for (StringRef item : itemsOf(list))
    if (item != "all" && !llvm::is_contained(all, item))
      return "all or passes of this compilation, " + llvm::join(all, ", ") + "; found '" + item.str() + "'" +
             mtrun::didYouMean(item.str(), all);
  return "";
}

std::string inputOf(const Stage &stage, ModuleOp module, Compilation &compilation) {
  for (const Stage *next = &stage; next != stages().end(); ++next)
    if (StagePasses passes(*next, *module.getContext(), compilation); !passes.empty())
      return reproducer(module, passes);
  return printedModule(module);
}

LogicalResult runStage(const Stage &stage, ModuleOp module, Compilation &compilation) {
  StagePasses passes(stage, *module.getContext(), compilation);
  if (passes.empty())
    return stage.check(module);
  FaultFinder finder(module, passes);
  const mtc_options &options = compilation.options;
  if (options.print_ir_before || options.print_ir_after)
    passes.enableIRPrinting(
        [&](Pass *pass, Operation *) { return names(options.print_ir_before, pass->getArgument()); },
        [&](Pass *pass, Operation *) { return names(options.print_ir_after, pass->getArgument()); },
        /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false);
  bool ran = succeeded(passes.run(module));
  return ran && succeeded(stage.check(module)) ? success() : finder.fail(stage.name, ran);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<mt::MtDialect, plan::PlanDialect, shard::ShardDialect>();
}

} // namespace mtc
