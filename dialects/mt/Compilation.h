// SPDX-License-Identifier: Apache-2.0
//
// Facts that stages tell later ones by attributes: parameters of the compilation, on the module, and marks on ops that
// are not of this dialect or not of one kind. How they are spelled (docs/ir.md) is known here alone.
#ifndef DIALECTS_MT_COMPILATION_H
#define DIALECTS_MT_COMPILATION_H

#include "dialects/mt/MtDialect.h"

#include <optional>

namespace mlir::mt {

// Of the module: names of a model's labels and characters of its tokens (frontend/ClassNames.h).
inline constexpr llvm::StringLiteral classNamesAttribute = "mt.class_names", vocabularyAttribute = "mt.vocabulary";
// Of ops: dialects/mt/Blocks.h reads and sets them.
inline constexpr llvm::StringLiteral blocksAttribute = "mt.blocks", turnAttribute = "mt.turn";

// The compilation that a module is part of: its `mt.compilation`, and what holds where it has none.
class Compilation {
public:
  // Of `op`, or of the module that holds it.
  explicit Compilation(Operation *op);

  // Whether the module says how the batch is split.
  bool isSplit() const { return fields().shards > 0 && fields().shardRows > 0; }
  std::optional<int64_t> findBatch() const { return known(fields().batch); }
  std::optional<int64_t> findShards() const { return known(fields().shards); }
  // At least 1; 1 where there is none: what crosses no shards needs no tree.
  int64_t getBatch() const { return findBatch().value_or(1); }
  int64_t getShards() const { return findShards().value_or(1); }
  int64_t getShardRows() const { return known(fields().shardRows).value_or(1); }
  int64_t getSeed() const { return fields().seed; }
  bool isFast() const { return fields().mode == Mode::fast; }
  bool hasLocalStatistics() const { return fields().localStatistics; }
  Kinks getKinks() const { return fields().kinks; }
  bool limitsMemory() const { return fields().deviceMemory > 0; }
  // "f32", "tf32", "bf16" or "f16".
  StringRef getPrecision() const { return stringifyPrecisionClass(fields().precision); }
  // Whether products have operands of 16 bits.
  bool isHalf() const { return getPrecision() == "bf16" || getPrecision() == "f16"; }
  // Of the model; empty where there is none.
  StringRef getName() const { return fields().name ? fields().name.getValue() : StringRef(); }
  // The fewest devices that the plan fits on: 1 unless memory is limited, 0 where it fits on none.
  int64_t getMinDevices() const { return fields().minDevices; }

  void setName(StringRef name);
  void setBatch(int64_t batch);
  void setShards(int64_t shards, int64_t rows);
  void setSeed(int64_t seed);
  void setFast();
  void setLocalStatistics();
  void setKinks(StringRef kinks); // one of the enum
  void setDeviceMemory(int64_t bytes);
  void setPrecision(StringRef precision); // one of four, as above
  void setMinDevices(int64_t devices);

private:
  struct Fields {
    StringAttr name;
    int64_t batch = 0, shards = 0, shardRows = 0, seed = 1; // 0: not known
    PrecisionClass precision = PrecisionClass::f32;
    Mode mode = Mode::exact;
    bool localStatistics = false;
    Kinks kinks = Kinks::tensorflow;
    int64_t deviceMemory = 0, minDevices = 1;
  };
  static std::optional<int64_t> known(int64_t value) { return value ? std::optional(value) : std::nullopt; }
  Fields fields() const;
  void change(llvm::function_ref<void(Fields &)> body);

  Operation *module; // `op`, if no module holds it
};

// The precision of one contraction, where it differs from the module's; none where it does not.
StringAttr precisionOf(Operation *op);
void setPrecision(Operation *op, StringAttr precision); // none: as the module's

// The bucket of an all-reduce: all of one are one exchange, and a lower one comes first.
std::optional<int64_t> bucketOf(Operation *op);
void setBucket(Operation *op, int64_t bucket);

} // namespace mlir::mt

#endif
