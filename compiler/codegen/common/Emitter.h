// SPDX-License-Identifier: Apache-2.0
//
// Builder of kernel code: arith and scf ops on i64 indices and vectors of 16 elements, and memory accesses through LLVM
// pointers. Vectors have 16 elements on every CPU; LLVM splits them.
#ifndef COMPILER_CODEGEN_COMMON_EMITTER_H
#define COMPILER_CODEGEN_COMMON_EMITTER_H

#include "compiler/codegen/common/CpuTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace mtc {

// Functions and tables that several kernels of a shared object use. Each is emitted once, into a module of its own.
struct SharedCode {
  llvm::StringMap<mlir::LLVM::LLVMFunctionType> functions = {}; // types of the functions, by name
  llvm::StringSet<> tables = {};                                // names
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules = {};  // modules that were emitted and not yet taken, in order
};

class Emitter : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using ValueRange = mlir::ValueRange;
  using Values = mlir::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<Values(Value index, ValueRange carried)>;

  // `shared`: functions and tables that all modules of one shared object share; null: none.
  Emitter(mlir::ModuleOp module, const VectorUnit &vectors, SharedCode *shared = nullptr)
      : ImplicitLocOpBuilder(module.getLoc(), module.getBodyRegion()), module(module), home(module.getBody()),
        vectors(vectors), shared(shared) {}

  mlir::ModuleOp module;
  mlir::Block *home;  // the block of globals
  VectorUnit vectors; // of the target CPU

  Type pointer() { return mlir::LLVM::LLVMPointerType::get(getContext()); }
  Type vectorOf(Type element) { return mlir::VectorType::get({vectorWidth}, element); }
  // The type of numbers of the plan: f32, or f64.
  Type realType() { return vectors.doubles ? Type(getF64Type()) : getF32Type(); }
  mlir::FloatAttr realAttr(double number) { return getFloatAttr(realType(), number); }
  // Types in memory: i1 is a byte, bf16 and f16 are two bytes. In registers bf16 and f16 are f32.
  static bool isHalf(Type element) { return element.isBF16() || element.isF16(); }
  Type stored(Type element) {
    return element.isInteger(1) ? Type(getI8Type()) : isHalf(element) ? Type(getI16Type()) : element;
  }
  static int64_t bytes(Type element) { return element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8; }

  // Constants.
  Value integer(int64_t value) { return mlir::arith::ConstantOp::create(*this, getI64IntegerAttr(value)); }
  Value zeros(Type type) {
    return mlir::arith::ConstantOp::create(*this, getZeroAttr(isHalf(type) ? Type(getF32Type()) : type));
  }
  Value splatConstant(mlir::TypedAttr scalar);
  // The vector 0, 1, ... of i32.
  Value laneNumbers();

  // i64 arithmetic.
  Value add(Value a, Value b) { return mlir::arith::AddIOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulIOp::create(*this, a, b); }
  Value div(Value a, Value b) { return mlir::arith::DivUIOp::create(*this, a, b); }
  Value rem(Value a, Value b) { return mlir::arith::RemUIOp::create(*this, a, b); }
  Value min(Value a, Value b) { return mlir::arith::MinSIOp::create(*this, a, b); }
  Value max(Value a, Value b) { return mlir::arith::MaxSIOp::create(*this, a, b); }
  Value add(Value a, int64_t b) { return b ? add(a, integer(b)) : a; }
  Value mul(Value a, int64_t b) { return b == 1 ? a : mul(a, integer(b)); }
  Value ceilDiv(Value a, int64_t b) { return div(add(a, b - 1), integer(b)); }
  Value less(Value a, Value b) { return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::slt, a, b); }
  Value equal(Value a, Value b) { return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::eq, a, b); }

  // Memory. `index` and `constant` are in elements of type `element`.
  Value address(Value base, Type element, Value index, int64_t constant = 0);
  Value address(Value base, Type element, int64_t constant);
  Value loadPointer(Value base, int64_t index);
  Value loadPointer(Value base, Value index);
  Value loadInteger(Value base, int64_t index);
  // One element; a boolean is an i1. A value that is stored as bf16 or f16 must have been rounded to that type.
  Value load(Type element, Value address);
  void store(Type element, Value value, Value address);
  void store(Value value, Value address) { store(value.getType(), value, address); }
  // A vector, or the elements of it that `mask` (a vector of i1; null: all) selects, and the elements of `others` (as
  // stored; null: zeros).
  Value loadLanes(Type element, Value address, Value mask = {}, Value others = {});
  void storeLanes(Type element, Value value, Value address, Value mask = {});
  void storeLanes(Value value, Value address, Value mask = {}) {
    storeLanes(getElementTypeOrSelf(value.getType()), value, address, mask);
  }
  // Memory of the calling thread, aligned to 64 bytes, with a size rounded up to full vectors: on the stack if it is
  // small, else in the scratch memory of the kernel. Not available in internal functions.
  Value array(Type element, int64_t count);
  // Bytes of scratch memory that the arrays of the last kernel use.
  int64_t scratchBytes() const { return scratchTaken; }
  // A constant in the object; equal constants are stored once.
  Value global(mlir::DenseElementsAttr values);

  // Vectors.
  // Calls `body` for the last `count` elements of a line, 1 to 16, and emits its code with vectors of as few elements
  // as hold them, a power of two. `mask`: of these elements; null: all elements of the vectors.
  void tail(int64_t count, llvm::function_ref<void(Value mask)> body);
  // The first elements of a vector that may be wider.
  Value first(Value vector);
  Value splat(Value scalar);
  Value fma(Value a, Value b, Value c) { return mlir::LLVM::FMAOp::create(*this, a, b, c); }
  // fma(a0, b0, fma(a1, b1, c)) for vectors of pairs of bf16 elements, each pair an i32 whose lower half is element 0.
  // Subnormal numbers are taken as zero. Only some CPUs have this instruction.
  Value dot(Value a, Value b, Value c);
  Value extract(Value vector, int64_t lane);
  // Mask of the elements below `count`, an i64 or a constant.
  Value maskBelow(Value count);
  Value maskBelow(int64_t count);
  // Reduces a vector of 16 elements in the order 8, 4, 2, 1 by `combine(low, high)`.
  Value fold(Value vector, llvm::function_ref<Value(Value low, Value high)> combine);

  // Control flow. A loop carries values; its body returns their next values.
  Values loop(Value from, Value to, int64_t step, ValueRange carried, Body body);
  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value index)> body);
  void when(Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise = nullptr);
  // In the code of `body`, subnormal operands and results are taken as zero. LLVM does not order arithmetic on
  // registers with the change, so `body` consists of calls and loops, and what follows reads memory.
  void flushed(llvm::function_ref<void()> body);

  // Defines a function with `body`. Internal functions can be looked up by name (`lookup`), also from other modules
  // that share functions. The name of an internal function must determine its code.
  mlir::LLVM::LLVMFuncOp function(llvm::StringRef name, llvm::ArrayRef<Type> arguments, bool internal,
                                  llvm::function_ref<void(ValueRange arguments)> body);
  // Defines an internal function whose result `body` returns.
  mlir::LLVM::LLVMFuncOp function(llvm::StringRef name, llvm::ArrayRef<Type> arguments, Type result,
                                  llvm::function_ref<Value(ValueRange arguments)> body);
  mlir::LLVM::LLVMFuncOp lookup(llvm::StringRef name);
  void call(mlir::LLVM::LLVMFuncOp callee, ValueRange arguments) {
    mlir::LLVM::CallOp::create(*this, callee, arguments);
  }

  // Converts a value in memory to its type in registers: bytes to i1, 16-bit floats to f32.
  Value extend(Type element, Value value);
  // The inverse of extend.
  Value truncate(Type element, Value value);

private:
  using FunctionType = mlir::LLVM::LLVMFunctionType;
  mlir::LLVM::LLVMFuncOp define(llvm::StringRef name, FunctionType type, bool internal,
                                llvm::function_ref<Value(ValueRange arguments)> body);

  void storeFirst(Value value, int64_t count, Value address, unsigned alignment);
  Value intrinsic(llvm::StringRef name, Type result, ValueRange operands);
  mlir::LLVM::GlobalOp makeGlobal(mlir::DenseElementsAttr values, llvm::StringRef name, bool isShared);

  SharedCode *shared;
  int64_t vectorWidth = lanes; // fewer within `tail`
  mlir::Block *entry = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::LLVM::GlobalOp> globals;
  // Arrays of the function under construction.
  struct Arrays {
    int64_t onStack = 0, inScratch = 0; // in bytes
    Value scratch;                      // mt_kernel_params.scratch; null: not loaded yet
    bool allowed = false;
  };
  Arrays arrays;
  int64_t scratchTaken = 0;
};

} // namespace mtc

#endif
