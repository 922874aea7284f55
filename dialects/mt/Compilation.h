// SPDX-License-Identifier: Apache-2.0
//
// Facts that stages tell later ones by attributes: parameters of the compilation, on the module, and marks on ops that are not of this dialect or
// not of one kind. How they are spelled (docs/ir.md) is known here alone.
#ifndef DIALECTS_MT_COMPILATION_H
#define DIALECTS_MT_COMPILATION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace mlir::mt {

// The compilation that a module is part of. A fact that the module does not have is what each function says.
class Compilation {
public:
  // Of `op`, or of the module that holds it.
  explicit Compilation(Operation *op);

  // Whether the module says how the batch is split.
  bool isSplit() const { return has("mt.shards") && has("mt.shard_rows"); }
  std::optional<int64_t> findBatch() const { return find("mt.batch"); }
  std::optional<int64_t> findShards() const { return find("mt.shards"); }
  int64_t getBatch() const { return findBatch().value_or(1); }
  // At least 1; 1 where there is none: what crosses no shards needs no tree.
  int64_t getShards() const;
  int64_t getShardRows() const { return find("mt.shard_rows").value_or(1); }
  int64_t getSeed() const { return find("mt.seed").value_or(1); }
  bool isFast() const { return has("mt.fast"); }
  bool hasLocalStatistics() const { return has("mt.local_statistics"); }
  bool limitsMemory() const { return has("mt.device_memory"); }
  // "f32", "tf32", "bf16" or "f16"; "f32" where there is none.
  StringRef getPrecision() const;
  // Of the model; empty where there is none.
  StringRef getName() const;
  // The fewest devices that the plan fits on: 1 unless memory is limited, 0 where it fits on none.
  int64_t getMinDevices() const { return find("mt.min_devices").value_or(1); }

  void setBatch(int64_t batch) { set("mt.batch", batch); }
  void setShards(int64_t shards, int64_t rows);
  void setSeed(int64_t seed) { set("mt.seed", seed); }
  void setFast() { mark("mt.fast"); }
  void setLocalStatistics() { mark("mt.local_statistics"); }
  void setDeviceMemory(int64_t bytes) { set("mt.device_memory", bytes); }
  void setPrecision(StringRef precision);
  void setName(StringRef name) { module->setAttr("mt.name", StringAttr::get(module->getContext(), name)); }
  void setMinDevices(int64_t devices) { set("mt.min_devices", devices); }

private:
  bool has(StringRef name) const { return module && module->hasAttr(name); }
  std::optional<int64_t> find(StringRef name) const;
  void set(StringRef name, int64_t value);
  void mark(StringRef name) { module->setAttr(name, UnitAttr::get(module->getContext())); }

  Operation *module; // null: none
};

// The precision of one op, where it differs from the module's; none where it does not.
StringAttr precisionOf(Operation *op);
void setPrecision(Operation *op, StringAttr precision); // none: as the module's

// The bucket of an all-reduce: all of one are one exchange, and a lower one comes first.
std::optional<int64_t> bucketOf(Operation *op);
void setBucket(Operation *op, int64_t bucket);

} // namespace mlir::mt

#endif
