// SPDX-License-Identifier: Apache-2.0
//
// From MLIR kernel functions to the bytes of an ELF shared object.
#ifndef COMPILER_CODEGEN_COMMON_OBJECT_H
#define COMPILER_CODEGEN_COMMON_OBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mtc {

// An instruction set that code is made for.
struct TargetCpu {
  std::string name;                  // of the plan's target
  std::string cpu;                   // LLVM's name of the instruction set
  std::string tune;                  // LLVM's name of the CPU to schedule for
  std::vector<std::string> features; // what the running CPU must have
  bool avx512 = false;
};

// "x86-64-v3", "x86-64-v4" or "native"; anything else, or a host below x86-64-v3 for "native", is an error.
llvm::Expected<TargetCpu> findTarget(llvm::StringRef name);

// llvm.func with arith, scf and llvm ops as LLVM IR. May run in several threads.
llvm::Expected<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context);

// Lowers `module` and compiles it to an ELF relocatable object. An external function that takes more than `maxStack` bytes of stack is
// an error. May run in several threads.
llvm::Expected<llvm::SmallVector<char, 0>> compileObject(mlir::ModuleOp module, const TargetCpu &target, uint64_t maxStack);

// Links one object into a shared object without needed libraries; an undefined symbol is an error. May run in several threads.
llvm::Expected<std::vector<char>> linkShared(llvm::ArrayRef<char> object);

} // namespace mtc

#endif
