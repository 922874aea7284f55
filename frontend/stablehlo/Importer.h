// SPDX-License-Identifier: Apache-2.0
//
// A function of a StableHLO file as ops of `mt`: its arguments are inputs and variables, and calls are followed.
#ifndef FRONTEND_STABLEHLO_IMPORTER_H
#define FRONTEND_STABLEHLO_IMPORTER_H

#include "frontend/stablehlo/Call.h"
#include "frontend/stablehlo/StepArguments.h"
#include "frontend/training/Training.h"

#include <map>
#include <set>

namespace mtc::stablehlo {

constexpr int64_t maxEvaluated = 500000; // ops, in all calls and steps of loops

class Importer {
public:
  Importer(mlir::OpBuilder &builder, mlir::ModuleOp file) : builder(builder), file(file) {}

  // Makes the ops of the public function. Its results are the outputs, or one mean over the samples is the loss. Errors
  // are at the ops.
  llvm::LogicalResult run(std::vector<training::Output> &outputs, std::vector<MeanTerm> &loss);
  // Makes the variables and inputs of a whole training step, and its update.
  llvm::LogicalResult runStep(const StepArguments &given);

private:
  using Values = llvm::DenseMap<mlir::Value, Operand>;

  llvm::LogicalResult findFunctions();
  llvm::LogicalResult checkOps();
  llvm::LogicalResult makeArguments(std::vector<Operand> &arguments);
  std::string nameOf(mlir::BlockArgument argument) const;
  // Evaluates one function, and gives the operands of its return.
  llvm::LogicalResult evaluate(mlir::Operation *function, std::vector<Operand> arguments,
                               std::vector<Operand> &results);
  // The operations of a block but its terminator, whose operands are the results. `values` has what stands outside of
  // the block.
  llvm::LogicalResult evaluateBlock(mlir::Block &body, llvm::ArrayRef<Operand> arguments, Values &values,
                                    std::vector<Operand> &results);
  llvm::LogicalResult evaluateOp(mlir::Operation &op, Values &values);
  // Loops.cpp
  using States = std::vector<std::vector<Operand>>; // of a loop before each step, and after the last one
  llvm::LogicalResult loop(mlir::Operation &op, Values &values, std::vector<Operand> state,
                           std::vector<Operand> &results);
  llvm::LogicalResult unrollLoop(mlir::Operation &op, Values &values, std::vector<Operand> state,
                                 std::vector<Operand> &results);
  bool followLoop(mlir::Operation &op, Values &values, llvm::ArrayRef<Operand> start, States &states);
  bool buildLoop(mlir::Operation &op, Values &values, llvm::ArrayRef<Operand> state, std::vector<Operand> &results);
  llvm::LogicalResult buildOfSteps(mlir::Operation &op, std::vector<Operand> operands, std::vector<Operand> &results);
  // Control.cpp
  llvm::LogicalResult branch(mlir::Operation &op, Values &values, const Operand &index, std::vector<Operand> &results);
  llvm::LogicalResult call(mlir::Operation &op, std::vector<Operand> arguments, std::vector<Operand> &results);
  // Build the ops of `mt` for one op: `build` also takes operands that are numbers of the steps of a loop.
  llvm::LogicalResult build(mlir::Operation &op, std::vector<Operand> operands, std::vector<Operand> &results);
  llvm::LogicalResult buildOnce(mlir::Operation &op, std::vector<Operand> operands, std::vector<Operand> &results);
  llvm::LogicalResult makeResults(llvm::ArrayRef<Operand> results, std::vector<training::Output> &outputs,
                                  std::vector<MeanTerm> &loss);
  // Step.cpp
  llvm::LogicalResult findBatch(const StepArguments &given);
  llvm::LogicalResult makeStepArguments(const StepArguments &given);
  llvm::LogicalResult makeStepResults(const StepArguments &given, llvm::ArrayRef<Operand> results,
                                      mlir::OpBuilder::InsertPoint variables);
  llvm::LogicalResult replace(int64_t number, const StepArgument &argument, const Operand &result);
  std::string nameOfResult(int64_t number, bool only);
  llvm::LogicalResult report(const std::string &name, const Operand &result, mlir::OpBuilder::InsertPoint variables);

  mlir::OpBuilder &builder;
  mlir::ModuleOp file;
  std::map<std::string, mlir::Operation *> functions;
  mlir::Operation *entry = nullptr;
  int64_t depth = 0, evaluated = 0, knownElements = 0;
  int64_t budget = logical::Ops::maxBudget;
  int64_t skipped = 0;            // ops of which nothing is computed while a loop is followed
  bool followsKnown = false;      // computes what is known alone: results of all other ops are not there
  logical::Loop *built = nullptr; // the innermost loop whose body is made
  bool isStep = false;
  BatchAxes batches;                   // of a step whose shapes are all numbers
  std::vector<mlir::Value> stepValues; // inputs and variables, by argument
};

// Whether an op is a loop or a branch, whose regions are evaluated.
bool isLoop(mlir::Operation &op);
bool isBranch(mlir::Operation &op);
// JAX' location "jit(f)/Model/Dense_0/dot_general" names the layer "Model/Dense_0".
mlir::Location locationOf(mlir::Operation &op);

} // namespace mtc::stablehlo

#endif
