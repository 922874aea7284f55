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
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mtc {

// To be held by what changes the MLIR context of a module while several tasks run: it may be one without locks.
std::mutex &contextMutex();

// llvm.func with arith, scf and llvm ops as LLVM IR. May run in several threads.
llvm::Expected<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context);

// An ELF relocatable object.
using Object = llvm::SmallVector<char, 0>;

// A second name of a symbol.
struct Alias {
  std::string name, symbol;
};

// Links objects, in their order, into a shared object without needed libraries; an undefined symbol is an error. May
// run in several threads.
llvm::Expected<std::vector<char>> linkShared(llvm::ArrayRef<const Object *> objects, llvm::ArrayRef<Alias> aliases);

struct CompiledModule;

// Compiles modules of llvm.func to the objects of one shared object, in the threads of a pool, as they come. A module
// that was compiled before in this process, for any plan, is not compiled again.
class ObjectCompiler {
public:
  ObjectCompiler(CpuTarget target, llvm::ThreadPoolInterface &pool);
  // Takes one function, of any name, which is visible outside of the shared object as `name`. Waits while the pool has
  // enough to do, so that few modules are in memory.
  void addKernel(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name);
  // Takes functions that keep their names.
  void add(mlir::OwningOpRef<mlir::ModuleOp> module);
  // Waits for all code and links it. A kernel that takes more than `maxStack` bytes of stack, with the functions that
  // it calls, is an error.
  llvm::Expected<std::vector<char>> link(uint64_t maxStack);

private:
  using Compiled = std::shared_future<std::shared_ptr<const CompiledModule>>;
  void add(mlir::OwningOpRef<mlir::ModuleOp> module, const std::string &hash);
  Compiled start(mlir::ModuleOp module, const std::string &key);

  CpuTarget target;
  llvm::ThreadPoolInterface &pool;
  std::vector<Compiled> compiled; // in order
  std::vector<Alias> kernels;
  size_t waited = 0; // of `compiled`
};

} // namespace mtc

#endif
