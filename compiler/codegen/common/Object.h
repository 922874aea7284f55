// SPDX-License-Identifier: Apache-2.0
//
// Compiles MLIR kernel functions to an ELF shared object.
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

// Lock this mutex to change the MLIR context of a module while several tasks run: the context may be single-threaded.
std::mutex &contextMutex();

// Translates llvm.func with arith, scf and llvm ops to LLVM IR. Thread-safe.
llvm::Expected<std::unique_ptr<llvm::Module>> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context);

// An ELF relocatable object.
using Object = llvm::SmallVector<char, 0>;

// A second name for a symbol.
struct Alias {
  std::string name, symbol;
};

// Links objects, in order, into a shared object that depends on no library. Fails if a symbol is undefined.
// Thread-safe.
llvm::Expected<std::vector<char>> linkShared(llvm::ArrayRef<const Object *> objects, llvm::ArrayRef<Alias> aliases);

struct CompiledModule;

// Compiles modules of llvm.func to the objects of one shared object, in the threads of a pool, as they arrive. A module
// that this process has compiled before, for any plan, is not compiled again.
class ObjectCompiler {
public:
  ObjectCompiler(CpuTarget target, llvm::ThreadPoolInterface &pool);
  // Adds a module with one function, of any name, which the shared object exports as `name`. Blocks while the pool has
  // enough work, which limits the number of modules in memory.
  void addKernel(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name);
  // Adds a module whose functions keep their names.
  void add(mlir::OwningOpRef<mlir::ModuleOp> module);
  // Waits for all code and links it. Fails if a kernel and its callees need more than `maxStack` bytes of stack.
  llvm::Expected<std::vector<char>> link(uint64_t maxStack);

private:
  using Compiled = std::shared_future<std::shared_ptr<const CompiledModule>>;
  void add(mlir::OwningOpRef<mlir::ModuleOp> module, const std::string &hash);
  Compiled start(mlir::ModuleOp module, const std::string &key);

  CpuTarget target;
  llvm::ThreadPoolInterface &pool;
  std::vector<Compiled> compiled; // in order
  std::vector<Alias> kernels;
  size_t waited = 0; // number of elements of `compiled` that are complete
};

} // namespace mtc

#endif
