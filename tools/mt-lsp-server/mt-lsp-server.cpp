// SPDX-License-Identifier: Apache-2.0
//
// Editors speak to it: errors as one types, hover, go to definition, in models and in what the stages dump.
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::shard::ShardDialect>();
  return mlir::asMainReturnCode(mlir::MlirLspServerMain(argc, argv, registry));
}
