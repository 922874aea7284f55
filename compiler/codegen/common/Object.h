// SPDX-License-Identifier: Apache-2.0
//
// From MLIR kernel functions to the bytes of an ELF shared object.
#ifndef COMPILER_CODEGEN_COMMON_OBJECT_H
#define COMPILER_CODEGEN_COMMON_OBJECT_H

#include "compiler/codegen/common/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ThreadPool.h"
#include <string>
#include <vector>

namespace mtc {

// llvm.func with arith, scf and llvm ops as LLVM IR. May run in several threads.
llvm::Expected<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context);

// Functions of kernels. They are compiled in parts, in parallel. A part ends behind so many ops, so what is in it
// depends on the kernels alone. Smaller parts would spend more on what each has of its own.
using KernelModules = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;
inline constexpr int64_t opsOfPart = 2500;

// An ELF relocatable object.
using Object = llvm::SmallVector<char, 0>;

// Lowers each module and compiles it to an object, in the threads of a pool. An external function that takes more than
// `maxStack` bytes of stack, with the functions of these modules that it calls, is an error. May run in several
// threads.
llvm::Expected<std::vector<Object>> compileObjects(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules,
                                                   const CpuTarget &target, uint64_t maxStack,
                                                   llvm::ThreadPoolInterface &pool);

// Links objects into a shared object without needed libraries; an undefined symbol is an error. May run in several
// threads.
llvm::Expected<std::vector<char>> linkShared(llvm::ArrayRef<Object> objects);

} // namespace mtc

#endif
