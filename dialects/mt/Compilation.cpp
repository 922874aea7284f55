// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Tails.h"
#include "dialects/mt/Types.h"
#include "dialects/mt/VariableMarks.h"

using namespace mlir;
using namespace mlir::mt;

static constexpr llvm::StringLiteral compilationName = "mt.compilation", precisionName = "mt.precision",
                                     bucketName = "mt.bucket";
static constexpr int64_t maxShards = 1 << 16; // limit of a plan file (docs/plan-format.md section 4)

Compilation::Compilation(Operation *op) : module(op) {
  if (auto parent = op->getParentOfType<ModuleOp>(); parent && !isa<ModuleOp>(op))
    module = parent;
}

Compilation::Fields Compilation::fields() const {
  auto found = module->getAttrOfType<CompilationAttr>(compilationName);
  if (!found)
    return {};
  return {found.getName(),  found.getBatch(),        found.getShards(),    found.getShardRows(),
          found.getSeed(),  found.getPrecision(),    found.getMode(),      found.getLocalStatistics(),
          found.getKinks(), found.getDeviceMemory(), found.getMinDevices()};
}

void Compilation::change(llvm::function_ref<void(Fields &)> body) {
  Fields f = fields();
  body(f);
  MLIRContext *context = module->getContext();
  context->getOrLoadDialect<MtDialect>(); // a module without ops of the dialect has not loaded it
  module->setAttr(compilationName,
                  CompilationAttr::get(context, f.name, f.batch, f.shards, f.shardRows, f.seed, f.precision, f.mode,
                                       f.localStatistics, f.kinks, f.deviceMemory, f.minDevices));
}

Type Compilation::realType() const {
  MLIRContext *context = module->getContext();
  return isDouble() ? Type(Float64Type::get(context)) : Float32Type::get(context);
}

void Compilation::setName(StringRef name) {
  change([&](Fields &fields) { fields.name = StringAttr::get(module->getContext(), name); });
}
void Compilation::setBatch(int64_t batch) {
  change([&](Fields &fields) { fields.batch = batch; });
}
void Compilation::setShards(int64_t shards, int64_t rows) {
  change([&](Fields &fields) { fields.shards = shards, fields.shardRows = rows; });
}
void Compilation::setSeed(int64_t seed) {
  change([&](Fields &fields) { fields.seed = seed; });
}
void Compilation::setFast() {
  change([&](Fields &fields) { fields.mode = Mode::fast; });
}
void Compilation::setLocalStatistics() {
  change([&](Fields &fields) { fields.localStatistics = true; });
}
void Compilation::setKinks(StringRef kinks) {
  change([&](Fields &fields) { fields.kinks = *symbolizeKinks(kinks); });
}
void Compilation::setDeviceMemory(int64_t bytes) {
  change([&](Fields &fields) { fields.deviceMemory = bytes; });
}
void Compilation::setPrecision(StringRef precision) {
  change([&](Fields &fields) { fields.precision = *symbolizePrecisionClass(precision); });
}
void Compilation::setMinDevices(int64_t devices) {
  change([&](Fields &fields) { fields.minDevices = devices; });
}

LogicalResult CompilationAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t batch,
                                      int64_t shards, int64_t shardRows, int64_t, PrecisionClass, Mode, bool, Kinks,
                                      int64_t deviceMemory, int64_t minDevices) {
  if (batch < 0 || shardRows < 0 || deviceMemory < 0 || minDevices < 0)
    return emitError() << "expected numbers of 0 or more in `mt.compilation`, found " << batch << ", " << shardRows
                       << ", " << deviceMemory << ", " << minDevices;
  if (shards < 0 || shards > maxShards || (shards && !llvm::isPowerOf2_64(shards)))
    return emitError() << "expected the number of shards to be a power of two up to " << maxShards << ", found "
                       << shards;
  return success();
}

LogicalResult MtDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == compilationName)
    return isa<ModuleOp>(op) && isa<CompilationAttr>(value)
               ? success()
               : op->emitError("expected `mt.compilation` to be a #mt.compilation of a module, found ") << value;
  if (name == precisionName)
    return op->hasTrait<Contraction>() && isa<StringAttr>(value)
               ? success()
               : op->emitError("expected `mt.precision` to be a string at a contraction, found ") << value;
  if (name == bucketName)
    return isa<IntegerAttr>(value) ? success() : op->emitError("expected an integer mt.bucket, found ") << value;
  if (name == tailAttribute)
    return isa<UnitAttr>(value) ? success() : op->emitError("expected no value of `mt.tail`, found ") << value;
  if (name == blocksAttribute || name == turnAttribute) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(value);
    return numbers && numbers.size() == 2 ? success()
                                          : op->emitError("expected two numbers in ") << name << ", found " << value;
  }
  if (llvm::is_contained(variableMarks, name)) {
    auto mark = dyn_cast<FloatAttr>(value);
    return isa<VariableOp>(op) && mark && isReal(mark.getType()) && mark.getValue().isFinite() &&
                   !mark.getValue().isNegative()
               ? success()
               : op->emitError("expected `")
                     << name << "` to be a finite f32 of 0 or more at a variable, found " << value;
  }
  if (isa<ModuleOp>(op) && name == fixedBatchAttribute) {
    auto rows = dyn_cast<IntegerAttr>(value);
    return rows && rows.getType().isInteger(64) && rows.getInt() >= 1
               ? success()
               : op->emitError("expected `") << name << "` to be an i64 of 1 or more, found " << value;
  }
  if (isa<ModuleOp>(op) && (name == classNamesAttribute || name == vocabularyAttribute ||
                            (name == columnsAttribute && isa<StringAttr>(value))))
    return success();
  return op->emitError("expected an attribute that the dialect mt has, found `") << name << '`';
}

StringAttr mlir::mt::precisionOf(Operation *op) {
  return dyn_cast_or_null<StringAttr>(op->getDiscardableAttr(precisionName));
}

void mlir::mt::setPrecision(Operation *op, StringAttr precision) {
  if (precision)
    op->setDiscardableAttr(precisionName, precision);
  else
    op->removeDiscardableAttr(precisionName);
}

std::optional<int64_t> mlir::mt::bucketOf(Operation *op) {
  auto bucket = op->getAttrOfType<IntegerAttr>(bucketName);
  return bucket ? std::optional(bucket.getInt()) : std::nullopt;
}

void mlir::mt::setBucket(Operation *op, int64_t bucket) {
  op->setAttr(bucketName, IntegerAttr::get(IntegerType::get(op->getContext(), 64), bucket));
}

std::optional<double> mlir::mt::markOf(Operation *variable, StringRef name) {
  auto mark = dyn_cast_or_null<FloatAttr>(variable->getDiscardableAttr(name));
  return mark ? std::optional(number(mark.getValue())) : std::nullopt;
}
