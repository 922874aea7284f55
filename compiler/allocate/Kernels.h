// SPDX-License-Identifier: Apache-2.0
//
// The module's kernels: bodies outlined from programs, equal ones once.
#pragma once

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mtc {

// What a kernel computes, as text: equal for kernels that can share code. Of elementwise kernels' types only "scalar or
// element" counts.
std::string kernelKey(mlir::mt::KernelOp kernel);

class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  // The plan.kernel for a key, outlined from `kernel` (whose body is moved away) the first time.
  mlir::FlatSymbolRefAttr outline(mlir::mt::KernelOp kernel, llvm::StringRef key);

private:
  mlir::plan::KernelOp create(mlir::Location location, llvm::StringRef name, mlir::mt::KernelKind kind,
                              mlir::Region &body);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  llvm::StringMap<mlir::FlatSymbolRefAttr> byKey;
  llvm::StringMap<std::string> nameByKey; // of kernels that share code: what their names have in common
  llvm::StringSet<> symbols;              // of functions, taken
  llvm::StringMap<unsigned> taken;        // by a name, the last number that it was given
};

} // namespace mtc
