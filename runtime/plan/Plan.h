// SPDX-License-Identifier: Apache-2.0
//
// A verified plan in memory. It is immutable, so any number of threads may read it.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/abi/plan_verify.h"
#include "runtime/support/status.h"

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// The bytes of a plan file in page-aligned memory. They are a copy, so verified bytes stay valid when the file changes.
class PlanBytes {
public:
  Status read(const std::string &path);       // MT_IO, MT_NO_MEMORY
  Status copy(const void *data, size_t size); // MT_NO_MEMORY
  std::span<const uint8_t> bytes() const { return {data_.get(), size_}; }

private:
  Status allocate(size_t size);

  struct Release {
    void operator()(uint8_t *bytes) const { ::operator delete(bytes, std::align_val_t(MT_PLAN_ALIGNMENT)); }
  };
  std::unique_ptr<uint8_t, Release> data_;
  size_t size_ = 0;
};

class Plan {
public:
  // Reads and verifies a plan; docs/plan-format.md section 4 lists the checks. MT_CORRUPT, MT_IO.
  static Status load(const std::string &path, std::unique_ptr<Plan> &plan);
  static Status loadMemory(const void *data, size_t size, std::unique_ptr<Plan> &plan);

  const mt::plan::Plan &tables() const { return *view_.tables; }
  std::span<const uint8_t> section(uint32_t index) const { return view_.section(index); }
  // Returns the bytes of the constants section; empty if the plan has none.
  std::span<const uint8_t> constants() const;
  // Returns the bytes of the section of initial values; empty if the plan has none.
  std::span<const uint8_t> initialValues() const;

  // Returns the hash of the tables, which include the hash of every section: equal hashes mean equal plans.
  Hash128 hash() const;
  // Returns the hash of the tables that determine the bits of a step. Plans that differ only in CPU targets or initial
  // values have the same hash. For older plans it is hash().
  Hash128 stepsHash() const;

  uint64_t batch() const { return tables().batch(); }          // B: samples in the global batch
  uint32_t shards() const { return tables().shards(); }        // R: number of shards
  uint64_t shardRows() const { return tables().shard_rows(); } // samples per shard

  // MT_INVALID if a step may not have n samples: it has 1 to batch() of them, or as many as numbers of the model need.
  Status checkRows(int64_t n) const;
  // Return null and -1 if there is no program or variable of this name.
  const mt::plan::Program *program(std::string_view name) const;
  int variable(std::string_view name) const;

private:
  Status open();

  PlanBytes bytes_;
  PlanFileView view_;
};

} // namespace mtrun
