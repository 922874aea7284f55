// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the module: bodies outlined from programs, equal bodies once.
#pragma once

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mtc {

// Text of what a kernel computes, equal for kernels that can share code. For types in elementwise kernels, the text
// only distinguishes scalars from elements.
std::string kernelKey(mlir::mt::KernelOp kernel);

class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  // The plan.kernel for a key, and for the keys of its tails, whose code it has too. The first call with these outlines
  // `kernel`, whose body moves to the plan.kernel.
  mlir::FlatSymbolRefAttr outline(mlir::mt::KernelOp kernel, llvm::StringRef key, llvm::StringRef tails);

private:
  mlir::plan::KernelOp create(mlir::Location location, llvm::StringRef name, mlir::mt::KernelKind kind,
                              mlir::Region &body);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  llvm::StringMap<mlir::FlatSymbolRefAttr> byKey;
  llvm::StringMap<std::string> nameByKey; // the common name of kernels that share code
  llvm::StringSet<> symbols;              // names of functions in use
  llvm::StringMap<unsigned> taken;        // for each name, the last number that was appended to it
};

} // namespace mtc
