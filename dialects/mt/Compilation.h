// SPDX-License-Identifier: Apache-2.0
//
// Attributes by which passes communicate: parameters of the compilation, on the module, and marks on ops. Their
// spelling (docs/ir.md) is known in this file only.
#ifndef DIALECTS_MT_COMPILATION_H
#define DIALECTS_MT_COMPILATION_H

#include "dialects/mt/MtDialect.h"

#include <optional>

namespace mlir::mt {

// Attributes of the module: names of a model's labels, and characters of its tokens (frontend/ClassNames.h).
inline constexpr llvm::StringLiteral classNamesAttribute = "mt.class_names", vocabularyAttribute = "mt.vocabulary",
                                     columnsAttribute = "mt.columns";
// Attribute of the module: the number of samples of every step, where numbers of the model follow from it.
inline constexpr llvm::StringLiteral fixedBatchAttribute = "mt.fixed_batch";
// Attributes of ops; dialects/mt/Blocks.h reads and sets them.
inline constexpr llvm::StringLiteral blocksAttribute = "mt.blocks", turnAttribute = "mt.turn";

// The attribute `mt.compilation` of a module, with defaults for what it does not state.
class Compilation {
public:
  // `op` is a module, or an op inside of the module.
  explicit Compilation(Operation *op);

  // Whether the number of shards and their rows are known.
  bool isSplit() const { return fields().shards > 0 && fields().shardRows > 0; }
  std::optional<int64_t> findBatch() const { return known(fields().batch); }
  std::optional<int64_t> findShards() const { return known(fields().shards); }
  // These return 1 if the number is unknown.
  int64_t getBatch() const { return findBatch().value_or(1); }
  int64_t getShards() const { return findShards().value_or(1); }
  int64_t getShardRows() const { return known(fields().shardRows).value_or(1); }
  int64_t getSeed() const { return fields().seed; }
  bool isFast() const { return fields().mode == Mode::fast; }
  bool hasLocalStatistics() const { return fields().localStatistics; }
  Kinks getKinks() const { return fields().kinks; }
  bool limitsMemory() const { return fields().deviceMemory > 0; }
  StringRef getPrecision() const { return stringifyPrecisionClass(fields().precision); }
  // Whether the operands of products have 16 bits.
  bool isHalf() const { return getPrecision() == "bf16" || getPrecision() == "f16"; }
  // Whether everything is computed in f64 (docs/precision.md).
  bool isDouble() const { return fields().precision == PrecisionClass::f64; }
  // The type of numbers: f32, or f64.
  Type realType() const;
  // Name of the model; empty if unknown.
  StringRef getName() const { return fields().name ? fields().name.getValue() : StringRef(); }
  // Smallest number of devices that the plan fits on: 1 if memory is not limited, 0 if it fits on no number of devices.
  int64_t getMinDevices() const { return fields().minDevices; }

  void setName(StringRef name);
  void setBatch(int64_t batch);
  void setShards(int64_t shards, int64_t rows);
  void setSeed(int64_t seed);
  void setFast();
  void setLocalStatistics();
  void setKinks(StringRef kinks); // a name of the enum
  void setDeviceMemory(int64_t bytes);
  void setPrecision(StringRef precision); // f32, tf32, bf16, f16 or f64
  void setMinDevices(int64_t devices);

private:
  struct Fields {
    StringAttr name;
    int64_t batch = 0, shards = 0, shardRows = 0, seed = 1; // 0: unknown
    PrecisionClass precision = PrecisionClass::f32;
    Mode mode = Mode::exact;
    bool localStatistics = false;
    Kinks kinks = Kinks::tensorflow;
    int64_t deviceMemory = 0, minDevices = 1;
  };
  static std::optional<int64_t> known(int64_t value) { return value ? std::optional(value) : std::nullopt; }
  Fields fields() const;
  void change(llvm::function_ref<void(Fields &)> body);

  Operation *module; // `op` itself if no module contains it
};

// Precision of one contraction; null if it is the module's precision.
StringAttr precisionOf(Operation *op);
void setPrecision(Operation *op, StringAttr precision); // null: the module's precision

// Bucket of an all-reduce. All all-reduces of a bucket are one exchange; buckets run in increasing order.
std::optional<int64_t> bucketOf(Operation *op);
void setBucket(Operation *op, int64_t bucket);

} // namespace mlir::mt

#endif
