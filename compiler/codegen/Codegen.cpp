// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/KernelKinds.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include <thread>

using namespace mlir;
using namespace mtc;

LogicalResult mtc::setGrids(ModuleOp module) {
  Builder builder(module.getContext());
  for (auto op : module.getOps<plan::KernelOp>()) {
    // Emitters rely on the contract of the kernel kind. Bodies of mt.kernels satisfy it, but this module may come from
    // text.
    if (failed(mt::infoOf(op.getKind()).verify(op.getBody().front(), [&] { return op.emitOpError(); })))
      return failure();
    Grid grid = codeOf(op).cpuGrid(op);
    if (grid.elementsPerTile) {
      op.setElementsPerTileAttr(builder.getI64IntegerAttr(grid.elementsPerTile));
      continue;
    }
    op.setRowsPerTileAttr(builder.getI64IntegerAttr(grid.rowsPerTile));
    op.setInnerTilesAttr(builder.getI64IntegerAttr(grid.innerTiles));
  }
  return success();
}

CodegenOptions mtc::codegenOptions(ModuleOp module, std::vector<std::string> targets) {
  CodegenOptions options;
  options.targets = std::move(targets);
  options.shardRows = mt::Compilation(module).getShardRows();
  options.fast = mt::Compilation(module).isFast();
  return options;
}

FailureOr<std::vector<TargetCode>> mtc::runTasks(ModuleOp module, ArrayRef<CodeTask> tasks) {
  struct Work {
    std::vector<TargetCode> codes;
    std::optional<std::string> error; // empty: the error has been emitted
  };
  std::vector<Work> works(tasks.size());
  llvm::DefaultThreadPool pool;
  std::vector<std::thread> threads;
  auto start = [&](bool assembles) {
    for (auto [task, work] : llvm::reverse(llvm::zip_equal(tasks, works)))
      if (task.assembles == assembles)
        threads.emplace_back([&task, &work, &pool] {
          auto codes = task.run(pool);
          if (codes)
            work.codes = std::move(*codes);
          else
            work.error = llvm::toString(codes.takeError());
        });
  };
  start(/*assembles=*/true);
  start(/*assembles=*/false);
  for (std::thread &thread : threads)
    thread.join();
  std::vector<TargetCode> codes;
  for (Work &work : works) {
    if (work.error)
      return work.error->empty() ? failure() : LogicalResult(module.emitError(*work.error));
    llvm::move(work.codes, std::back_inserter(codes));
  }
  return codes;
}
