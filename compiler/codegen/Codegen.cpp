// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/KernelKinds.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "llvm/ADT/StringSet.h"
#include <thread>

using namespace mlir;
using namespace mtc;

char Reported::ID;

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
  options.doubles = mt::Compilation(module).isDouble();
  return options;
}

FailureOr<std::vector<TargetCode>> mtc::runTasks(ModuleOp module, ArrayRef<CodeTask> tasks) {
  std::vector<std::optional<llvm::Expected<std::vector<TargetCode>>>> results(tasks.size());
  llvm::DefaultThreadPool pool;
  std::vector<std::thread> threads;
  auto start = [&](bool assembles) {
    for (auto [task, result] : llvm::reverse(llvm::zip_equal(tasks, results)))
      if (task.assembles == assembles)
        threads.emplace_back([&task, &result, &pool] { result.emplace(task.run(pool)); });
  };
  start(/*assembles=*/true);
  start(/*assembles=*/false);
  for (std::thread &thread : threads)
    thread.join();
  std::vector<TargetCode> codes;
  llvm::Error errors = llvm::Error::success();
  for (auto &result : results)
    if (*result)
      llvm::move(**result, std::back_inserter(codes));
    else
      errors = llvm::joinErrors(std::move(errors), result->takeError());
  if (!errors)
    return codes;
  llvm::StringSet<> said; // targets may fail alike
  llvm::handleAllErrors(
      std::move(errors), [](const Reported &) {},
      [&](const llvm::ErrorInfoBase &error) {
        if (said.insert(error.message()).second)
          module.emitError(error.message());
      });
  return failure();
}
