// SPDX-License-Identifier: Apache-2.0
//
// Compiles plan.kernel text, loads the objects and runs kernels on memory that ends at an unreadable page.
#ifndef TEST_UNIT_CODEGEN_HARNESS_H
#define TEST_UNIT_CODEGEN_HARNESS_H

#include "runtime/abi/kernel.h"
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace codegentest {

// Memory of exactly `bytes` bytes: its end (or its start) touches a page that cannot be accessed.
class Guarded {
public:
  explicit Guarded(size_t bytes, bool atEnd = true);
  ~Guarded();
  Guarded(Guarded &&other) noexcept;
  Guarded(const Guarded &) = delete;
  template <typename T> T *as() const { return reinterpret_cast<T *>(data); }

private:
  char *map = nullptr;
  size_t mapped = 0;
  char *data = nullptr;
};

template <typename T> Guarded guarded(const std::vector<T> &values, bool atEnd = true) {
  Guarded memory(values.size() * sizeof(T), atEnd);
  for (size_t i = 0; i < values.size(); ++i)
    memory.as<T>()[i] = values[i];
  return memory;
}

// n floats in (-1, 1), the same for the same seed.
std::vector<float> randoms(size_t n, unsigned seed);

// Text of a plan.kernel; `body` has its arguments' block head, its operations, and mt.yield.
std::string kernelText(const std::string &name, const std::string &kind, const std::string &body);

struct Grid {
  int64_t rowsPerTile = 0, innerTiles = 0, elementsPerTile = 0;
  int64_t scratchBytes = 0;
  int64_t tiles(const mt_kernel_params &params) const;
};

// Memory for params.scratch, 64-byte aligned, that ends at an unreadable page.
Guarded scratchOf(int64_t bytes);

// A module's kernels on one target.
class Code {
public:
  Code(const std::string &target, const std::vector<char> &image, std::map<std::string, Grid> grids);
  ~Code();
  Code(const Code &) = delete;
  std::string target;
  std::vector<char> image; // the shared object
  // Runs the whole grid, cut in `shares` parts.
  void run(const std::string &kernel, const mt_kernel_params &params, const std::vector<void *> &buffers,
           int64_t shares = 1) const;
  mt_kernel_fn find(const std::string &kernel) const;
  int64_t tiles(const std::string &kernel, const mt_kernel_params &params) const;
  int64_t scratchBytes(const std::string &kernel) const;

private:
  int file = -1;
  void *library = nullptr;
  std::map<std::string, Grid> grids;
};

struct Options {
  int64_t shardRows = 1;
  int64_t shards = 8;
  bool fast = false;
  bool dots = false; // also for the target with products of bf16 pairs
};

// Compiles for every target that this CPU runs, best first. Aborts with the diagnostics on an error.
std::vector<std::unique_ptr<Code>> compile(const std::string &kernels, const Options &options = {});

} // namespace codegentest

#endif
