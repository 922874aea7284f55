// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Emitter.h"
#include "compiler/codegen/common/ContentHash.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/abi/kernel.h"
#include "llvm/ADT/STLExtras.h"
#include <cstddef>
#include <utility>

using namespace mlir;
using namespace mtc;

Value Emitter::splatConstant(TypedAttr scalar) {
  auto type = cast<VectorType>(vectorOf(scalar.getType()));
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, Attribute(scalar)));
}

Value Emitter::laneNumbers() {
  SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth));
  return arith::ConstantOp::create(*this,
                                   DenseElementsAttr::get(cast<VectorType>(vectorOf(getI32Type())), ArrayRef(numbers)));
}

// An index of a GEP is a constant if it is small, else a value.
static LLVM::GEPArg argumentOf(Emitter &emit, int64_t index) {
  if (llvm::isInt<LLVM::kGEPConstantBitWidth>(index))
    return static_cast<int32_t>(index);
  return emit.integer(index);
}

Value Emitter::address(Value base, Type element, Value index, int64_t constant) {
  Value moved = LLVM::GEPOp::create(*this, pointer(), stored(element), base, ArrayRef<LLVM::GEPArg>{index});
  return address(moved, element, constant);
}
Value Emitter::address(Value base, Type element, int64_t constant) {
  if (constant == 0)
    return base;
  return LLVM::GEPOp::create(*this, pointer(), stored(element), base,
                             ArrayRef<LLVM::GEPArg>{argumentOf(*this, constant)});
}

Value Emitter::loadPointer(Value base, int64_t index) {
  Value address =
      LLVM::GEPOp::create(*this, pointer(), pointer(), base, ArrayRef<LLVM::GEPArg>{argumentOf(*this, index)});
  return LLVM::LoadOp::create(*this, pointer(), address, 8);
}
Value Emitter::loadPointer(Value base, Value index) {
  return LLVM::LoadOp::create(*this, pointer(), address(base, pointer(), index), 8);
}
Value Emitter::loadInteger(Value base, int64_t index) {
  return LLVM::LoadOp::create(*this, getI64Type(), address(base, getI64Type(), index), 8);
}

static Type withElement(Value value, Type element) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? Type(vector.clone(element)) : element;
}

static Value sixteen(Emitter &emit, Type i32) {
  TypedAttr number = emit.getI32IntegerAttr(16);
  if (auto vector = dyn_cast<VectorType>(i32))
    number = DenseElementsAttr::get(vector, Attribute(number));
  return arith::ConstantOp::create(emit, number);
}

Value Emitter::extend(Type element, Value value) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, value, zeros(value.getType()));
  if (!isHalf(element))
    return value;
  Type f32 = withElement(value, getF32Type()), i32 = withElement(value, getI32Type());
  if (element.isF16())
    return arith::ExtFOp::create(*this, f32,
                                 arith::BitcastOp::create(*this, withElement(value, element), value).getResult());
  Value bits = arith::ShLIOp::create(*this, arith::ExtUIOp::create(*this, i32, value), sixteen(*this, i32));
  return arith::BitcastOp::create(*this, f32, bits);
}

// The value was rounded to the type before, so the conversion is exact.
Value Emitter::truncate(Type element, Value value) {
  if (element.isInteger(1))
    return arith::ExtUIOp::create(*this, withElement(value, getI8Type()), value);
  if (!isHalf(element) || getElementTypeOrSelf(value.getType()) == stored(element))
    return value;
  Type i16 = withElement(value, getI16Type()), i32 = withElement(value, getI32Type());
  if (element.isF16())
    return arith::BitcastOp::create(*this, i16,
                                    arith::TruncFOp::create(*this, withElement(value, element), value).getResult());
  Value bits = arith::BitcastOp::create(*this, i32, value);
  return arith::TruncIOp::create(*this, i16, arith::ShRUIOp::create(*this, bits, sixteen(*this, i32)));
}

Value Emitter::load(Type element, Value address) {
  return extend(element, LLVM::LoadOp::create(*this, stored(element), address, bytes(element)));
}
void Emitter::store(Type element, Value value, Value address) {
  LLVM::StoreOp::create(*this, truncate(element, value), address, bytes(element));
}

// The number of lanes of a mask that is the constant maskBelow(number).
static std::optional<int64_t> lanesBelow(Value mask) {
  DenseElementsAttr known;
  if (!mask || !matchPattern(mask, m_Constant(&known)))
    return {};
  return llvm::count(known.getValues<bool>(), true);
}

// The other lanes are no zeros of a shuffle: LLVM 22 takes a quotient of lanes that it knows to be zeros for a zero,
// and so drops what replaces it in a sum.
Value Emitter::loadLanes(Type element, Value address, Value mask, Value others) {
  Type type = vectorOf(stored(element));
  unsigned alignment = bytes(element);
  Value value;
  if (mask)
    value = LLVM::MaskedLoadOp::create(*this, type, address, mask, others ? others : zeros(type), alignment);
  else
    value = LLVM::LoadOp::create(*this, type, address, alignment);
  return extend(element, value);
}

// A mask makes stores slower, on some CPUs much. One store of a known number of elements needs none.
static bool isOneStore(std::optional<int64_t> count) { return count && llvm::isPowerOf2_64(*count); }

// Stores the first `count` elements of a vector: 8, 4, 2 and 1 at a time.
void Emitter::storeFirst(Value value, int64_t count, Value address, unsigned alignment) {
  Type element = getElementTypeOrSelf(value.getType());
  int32_t first = 0;
  for (int32_t size = vectorWidth; size >= 1; size /= 2) {
    if (!(count & size))
      continue;
    Value part = size == 1 ? Value(LLVM::ExtractElementOp::create(*this, value, integer(first)))
                           : Value(LLVM::ShuffleVectorOp::create(
                                 *this, value, value, llvm::to_vector(llvm::seq<int32_t>(first, first + size))));
    LLVM::StoreOp::create(*this, part, this->address(address, element, first), alignment);
    first += size;
  }
}

void Emitter::storeLanes(Type element, Value value, Value address, Value mask) {
  value = truncate(element, value);
  unsigned alignment = bytes(element);
  // LLVM 22 turns a masked store of one element into a scalar store, but of four bytes, even for a value that was
  // truncated to two bytes. The masked stores of AVX2 take many times as long as others, so any known number of
  // elements is stored in parts.
  std::optional<int64_t> known = lanesBelow(mask);
  if (isOneStore(known) || (known && !vectors.isWide()))
    storeFirst(value, *known, address, alignment);
  else if (mask)
    LLVM::MaskedStoreOp::create(*this, value, address, mask, alignment);
  else
    LLVM::StoreOp::create(*this, value, address, alignment);
}

// Half of the stack that a kernel may use; the other half is for spilled registers.
constexpr int64_t maxOnStack = MT_KERNEL_STACK_BYTES / 2;

Value Emitter::array(Type element, int64_t count) {
  assert(arrays.allowed && "an internal function's arrays are its caller's");
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(entry);
  int64_t padded = (count + lanes - 1) / lanes * lanes, size = llvm::alignTo(padded * bytes(element), 64);
  if (arrays.onStack + size <= maxOnStack) {
    arrays.onStack += size;
    return LLVM::AllocaOp::create(*this, pointer(), stored(element), integer(padded), 64);
  }
  if (!arrays.scratch)
    arrays.scratch = loadPointer(entry->getArgument(0), offsetof(mt_kernel_params, scratch) / sizeof(void *));
  setInsertionPointAfterValue(arrays.scratch);
  int64_t offset = arrays.inScratch;
  arrays.inScratch += size;
  return address(arrays.scratch, getF32Type(), offset / 4);
}

LLVM::GlobalOp Emitter::makeGlobal(DenseElementsAttr values, StringRef name, bool isShared) {
  Type element = values.getElementType();
  Attribute data;
  if (element.isInteger(1)) {
    SmallVector<int8_t> flags;
    for (bool flag : values.getValues<bool>())
      flags.push_back(flag);
    data = DenseElementsAttr::get(VectorType::get({values.getNumElements()}, getI8Type()), ArrayRef(flags));
  } else {
    data = values.reshape(RankedTensorType::get({values.getNumElements()}, element));
  }
  Type type = LLVM::LLVMArrayType::get(stored(element), values.getNumElements());
  auto linkage = isShared ? LLVM::Linkage::External : LLVM::Linkage::Internal;
  auto makeOp = [&](Attribute value) {
    auto made = LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, linkage, name, value, /*alignment=*/64);
    if (isShared)
      made.setVisibility_(LLVM::Visibility::Hidden);
    return made;
  };
  OpBuilder::InsertionGuard guard(*this);
  if (isShared && shared->tables.insert(name).second) {
    shared->modules.push_back(ModuleOp::create(module.getLoc()));
    setInsertionPointToStart(shared->modules.back()->getBody());
    makeOp(data);
  }
  setInsertionPointToStart(home);
  return makeOp(isShared ? Attribute() : data);
}

// The name of a table that modules share is a hash of its content.
static std::string nameOfTable(DenseElementsAttr values) {
  std::string content;
  llvm::raw_string_ostream(content) << values.getType() << (values.isSplat() ? " splat " : " ");
  content.append(values.getRawData().begin(), values.getRawData().end());
  return "table_" + contentHash(content);
}

Value Emitter::global(DenseElementsAttr values) {
  constexpr int64_t minBytes = 512; // size from which tables are shared
  LLVM::GlobalOp &known = globals[values];
  if (!known) {
    bool isShared = shared && values.getNumElements() * bytes(values.getElementType()) >= minBytes;
    std::string name = isShared ? nameOfTable(values) : "constant_" + std::to_string(globals.size());
    known = makeGlobal(values, name, isShared);
  }
  return LLVM::AddressOfOp::create(*this, known);
}

void Emitter::tail(int64_t count, llvm::function_ref<void(Value)> body) {
  int64_t outer = std::exchange(vectorWidth, static_cast<int64_t>(llvm::PowerOf2Ceil(count)));
  body(count < vectorWidth ? maskBelow(count) : Value());
  vectorWidth = outer;
}

Value Emitter::first(Value vector) {
  if (cast<VectorType>(vector.getType()).getDimSize(0) == vectorWidth)
    return vector;
  return LLVM::ShuffleVectorOp::create(*this, vector, vector, llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth)));
}

Value Emitter::splat(Value scalar) {
  Type type = vectorOf(scalar.getType());
  Value undefined = LLVM::PoisonOp::create(*this, type);
  Value zero = arith::ConstantOp::create(*this, getI32IntegerAttr(0));
  Value one = LLVM::InsertElementOp::create(*this, undefined, scalar, zero);
  return LLVM::ShuffleVectorOp::create(*this, one, undefined, SmallVector<int32_t>(vectorWidth, 0));
}

// Calls an intrinsic of LLVM; `result` is null for one without a result.
Value Emitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  StringAttr text = getStringAttr(name);
  if (result)
    return LLVM::CallIntrinsicOp::create(*this, result, text, operands).getResult(0);
  LLVM::CallIntrinsicOp::create(*this, text, operands);
  return {};
}

Value Emitter::dot(Value a, Value b, Value c) {
  Type halves = VectorType::get({2 * lanes}, getBF16Type());
  auto cast = [&](Value pairs) -> Value { return LLVM::BitcastOp::create(*this, halves, pairs); };
  return intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", c.getType(), {c, cast(a), cast(b)});
}

Value Emitter::extract(Value vector, int64_t lane) {
  Value index = arith::ConstantOp::create(*this, getI32IntegerAttr(lane));
  return LLVM::ExtractElementOp::create(*this, vector, index);
}

Value Emitter::maskBelow(Value count) {
  if (IntegerAttr known; matchPattern(count, m_Constant(&known)))
    return maskBelow(std::clamp<int64_t>(known.getInt(), 0, vectorWidth));
  Value narrow = arith::TruncIOp::create(*this, getI32Type(), min(count, integer(vectorWidth)));
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, laneNumbers(), splat(narrow));
}
Value Emitter::maskBelow(int64_t count) {
  SmallVector<bool> bits;
  for (int64_t lane = 0; lane < vectorWidth; ++lane)
    bits.push_back(lane < count);
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(cast<VectorType>(vectorOf(getI1Type())), ArrayRef<bool>(bits)));
}

Value Emitter::fold(Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t width = lanes / 2; width >= 1; width /= 2) {
    SmallVector<int32_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(width + lane);
    }
    vector = combine(LLVM::ShuffleVectorOp::create(*this, vector, vector, low),
                     LLVM::ShuffleVectorOp::create(*this, vector, vector, high));
  }
  return extract(vector, 0);
}

Emitter::Values Emitter::loop(Value from, Value to, int64_t step, ValueRange carried, Body body) {
  auto loop = scf::ForOp::create(*this, from, to, integer(step), carried);
  OpBuilder::InsertionGuard guard(*this);
  Block *block = loop.getBody();
  if (carried.empty())
    setInsertionPoint(block->getTerminator());
  else
    setInsertionPointToEnd(block);
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(*this, next);
  return Values(loop.getResults());
}
void Emitter::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value index, ValueRange) {
    body(index);
    return Values();
  });
}

void Emitter::when(Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
  if (!otherwise)
    return;
  setInsertionPoint(branch.elseBlock()->getTerminator());
  otherwise();
}

void Emitter::flushed(llvm::function_ref<void()> body) {
  if (vectors.control == VectorUnit::Control::fpcr) {
    constexpr int64_t flushToZero = 1 << 24; // FZ
    Value before = intrinsic("llvm.aarch64.get.fpcr", getI64Type(), {});
    intrinsic("llvm.aarch64.set.fpcr", {}, arith::OrIOp::create(*this, before, integer(flushToZero)).getResult());
    body();
    intrinsic("llvm.aarch64.set.fpcr", {}, before);
    return;
  }
  constexpr int32_t flushToZero = 0x8040; // FTZ and DAZ
  Type i32 = getI32Type();
  auto slot = [&]() -> Value {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(entry);
    return LLVM::AllocaOp::create(*this, pointer(), i32, integer(1), 4);
  };
  Value before = slot(), changed = slot();
  intrinsic("llvm.x86.sse.stmxcsr", {}, before);
  Value bits = arith::ConstantOp::create(*this, getI32IntegerAttr(flushToZero));
  store(arith::OrIOp::create(*this, load(i32, before), bits), changed);
  intrinsic("llvm.x86.sse.ldmxcsr", {}, changed);
  body();
  intrinsic("llvm.x86.sse.ldmxcsr", {}, before);
}

static LLVM::LLVMFuncOp hidden(Emitter &emit, StringRef name, LLVM::LLVMFunctionType type) {
  auto function = LLVM::LLVMFuncOp::create(emit, name, type, LLVM::Linkage::External);
  function.setVisibility_(LLVM::Visibility::Hidden);
  return function;
}

LLVM::LLVMFuncOp Emitter::lookup(StringRef name) {
  if (Operation *known = SymbolTable::lookupSymbolIn(home->getParentOp(), name))
    return dyn_cast<LLVM::LLVMFuncOp>(known);
  LLVM::LLVMFunctionType type = shared ? shared->functions.lookup(name) : LLVM::LLVMFunctionType();
  if (!type)
    return nullptr;
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToEnd(home);
  return hidden(*this, name, type); // another module defines it
}

LLVM::LLVMFuncOp Emitter::define(StringRef name, FunctionType type, bool internal,
                                 llvm::function_ref<Value(ValueRange)> body) {
  OpBuilder::InsertionGuard guard(*this);
  bool isShared = internal && shared;
  ModuleOp outerModule = module;
  llvm::DenseMap<Attribute, LLVM::GlobalOp> outerGlobals;
  OwningOpRef<ModuleOp> own;
  if (isShared) {
    shared->functions.insert({name, type});
    own = ModuleOp::create(module.getLoc());
    module = *own;
    home = module.getBody();
    outerGlobals.swap(globals);
  }
  setInsertionPointToEnd(home);
  auto linkage = internal ? LLVM::Linkage::Internal : LLVM::Linkage::External;
  auto function = isShared ? hidden(*this, name, type) : LLVM::LLVMFuncOp::create(*this, name, type, linkage);
  Block *outer = entry;
  Arrays outerArrays = std::exchange(arrays, Arrays());
  arrays.allowed = !internal;
  entry = function.addEntryBlock(*this);
  setInsertionPointToStart(entry);
  Value result = body(entry->getArguments());
  LLVM::ReturnOp::create(*this, result ? ValueRange(result) : ValueRange());
  if (!internal)
    scratchTaken = arrays.inScratch;
  arrays = outerArrays;
  entry = outer;
  if (!isShared)
    return function;
  shared->modules.push_back(std::move(own));
  module = outerModule;
  home = module.getBody();
  globals.swap(outerGlobals);
  return lookup(name);
}

LLVM::LLVMFuncOp Emitter::function(StringRef name, ArrayRef<Type> arguments, bool internal,
                                   llvm::function_ref<void(ValueRange)> body) {
  auto type = FunctionType::get(LLVM::LLVMVoidType::get(getContext()), arguments);
  return define(name, type, internal, [&](ValueRange values) { return body(values), Value(); });
}

LLVM::LLVMFuncOp Emitter::function(StringRef name, ArrayRef<Type> arguments, Type result,
                                   llvm::function_ref<Value(ValueRange)> body) {
  return define(name, FunctionType::get(result, arguments), /*internal=*/true, body);
}
