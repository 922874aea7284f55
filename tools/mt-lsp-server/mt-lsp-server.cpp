// SPDX-License-Identifier: Apache-2.0
//
// The language server for editors: diagnostics, hover and go to definition in models and in the IR of all stages.
#include "dialects/graph/GraphDialect.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::graph::GraphDialect, mlir::shard::ShardDialect>();
  return mlir::asMainReturnCode(mlir::MlirLspServerMain(argc, argv, registry));
}
