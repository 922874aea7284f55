// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Compilation.h"

using namespace mlir;
using namespace mlir::mt;

static constexpr llvm::StringLiteral precisionName = "mt.precision", bucketName = "mt.bucket";

static IntegerAttr makeInteger(Operation *op, int64_t value) {
  return IntegerAttr::get(IntegerType::get(op->getContext(), 64), value);
}

Compilation::Compilation(Operation *op) : module(op) {
  if (module && !isa<ModuleOp>(module))
    module = module->getParentOfType<ModuleOp>();
}

std::optional<int64_t> Compilation::find(StringRef name) const {
  auto attribute = module ? module->getAttrOfType<IntegerAttr>(name) : IntegerAttr();
  return attribute ? std::optional(attribute.getInt()) : std::nullopt;
}

void Compilation::set(StringRef name, int64_t value) { module->setAttr(name, makeInteger(module, value)); }

int64_t Compilation::getShards() const { return std::max<int64_t>(1, findShards().value_or(1)); }

void Compilation::setShards(int64_t shards, int64_t rows) {
  set("mt.shards", shards);
  set("mt.shard_rows", rows);
}

StringRef Compilation::getPrecision() const {
  StringAttr precision = module ? precisionOf(module) : StringAttr();
  return precision ? precision.getValue() : "f32";
}

// f32 is the absence of the attribute.
void Compilation::setPrecision(StringRef precision) {
  mt::setPrecision(module, precision == "f32" ? StringAttr() : StringAttr::get(module->getContext(), precision));
}

StringRef Compilation::getName() const {
  auto name = module ? module->getAttrOfType<StringAttr>("mt.name") : StringAttr();
  return name ? name.getValue() : "";
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

void mlir::mt::setBucket(Operation *op, int64_t bucket) { op->setAttr(bucketName, makeInteger(op, bucket)); }
