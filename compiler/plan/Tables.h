// SPDX-License-Identifier: Apache-2.0
//
// Converts the plan dialect to the tables of plan.fbs.
#ifndef COMPILER_PLAN_TABLES_H
#define COMPILER_PLAN_TABLES_H

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/plan_generated.h"

namespace mtc {

namespace tables = ::mt::plan;

// Fills all tables but targets and sections: attributes of the module, variables, kernels and programs.
mlir::FailureOr<tables::PlanT> makeTables(mlir::ModuleOp module);

tables::DType dtypeOf(mlir::Type element);
int64_t bytesOfElement(mlir::Type element);
// Sizes of the axes; -1 stands for the batch axis.
std::vector<int64_t> shapeOf(mlir::RankedTensorType type);

// Converts the attribute `gpu_grid` of a plan.kernel.
std::unique_ptr<tables::GpuGridT> makeGpuGrid(mlir::plan::GpuGridAttr grid);

// Converts one plan.program. `kernels` and `variables` map symbols to indices in the plan's lists.
class ProgramTables {
public:
  // `layers`: names of layers, to which new names are appended.
  ProgramTables(const llvm::StringMap<unsigned> &kernels, const llvm::StringMap<unsigned> &variables,
                std::vector<std::string> &layers)
      : kernels(kernels), variables(variables), layers(layers) {}

  mlir::FailureOr<std::unique_ptr<tables::ProgramT>> make(mlir::plan::ProgramOp op);

private:
  void addSignature(mlir::plan::SignatureOp op);
  llvm::LogicalResult addBuffer(mlir::plan::BufferOp op);
  llvm::LogicalResult addLaunch(mlir::plan::LaunchOp op);
  void addReduce(mlir::plan::AllReduceOp op);
  void addResult(mlir::plan::ResultOp op);
  int32_t layerOf(mlir::Location location);
  std::vector<uint32_t> indices(mlir::ValueRange buffers) const;

  const llvm::StringMap<unsigned> &kernels, &variables;
  std::vector<std::string> &layers;
  llvm::StringMap<unsigned> layerNumbers;
  std::unique_ptr<tables::ProgramT> program;
  llvm::StringMap<unsigned> signature;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
};

} // namespace mtc

#endif
