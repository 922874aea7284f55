// SPDX-License-Identifier: Apache-2.0
//
// The CPUs that code is made for: one description per instruction set. The sizes of tiles follow from its vector unit.
#ifndef COMPILER_CODEGEN_COMMON_CPUTARGET_H
#define COMPILER_CODEGEN_COMMON_CPUTARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

// Elements of the vectors that kernels are written in, whatever the CPU: sums have the same bits on all.
constexpr int64_t lanes = 16;

// The vector registers of a CPU, and how many partial sums of a product's tile stay in them.
struct VectorUnit {
  int64_t bits = 256;     // of a register
  int64_t registers = 16; // that an instruction can name

  // Vectors of 16 floats that the registers hold: 8 for AVX2 and NEON, 32 for AVX-512.
  int64_t vectors() const { return registers * bits / (32 * lanes); }
  // Whether a tile may be several vectors wide, and several sets of partial sums be in registers at once.
  bool isWide() const { return vectors() >= 32; }

  // The tile of a product: vectors of 16 columns, and rows for each number of vectors. Of eight vectors one holds a row
  // of b and one an element of a; the six others are sums. Of 32 the rows are those that measured fastest on Zen 4 and
  // Sapphire Rapids: more rows than 12 gain nothing, since two loads feed each FMA unit by then.
  int64_t tileVectors() const { return isWide() ? 4 : 1; }
  int64_t tileRows(int64_t vectors) const {
    constexpr int64_t rows[] = {0, 8, 12, 8, 6};
    return isWide() ? rows[vectors] : 6;
  }
  // The same where `sets` partial sums of each element are in registers at once.
  int64_t tileRows(int64_t vectors, int64_t sets) const { return std::min(tileRows(vectors), 26 / (vectors * sets)); }
};

struct CpuTarget {
  std::string name;   // of the plan's target, and of --cpu
  std::string triple; // LLVM's: architecture, vendor, system
  std::string cpu;    // LLVM's name of the instruction set
  // What the running CPU must have; the runtime knows them (runtime/device/CpuFeatures.cpp).
  std::vector<std::string> features;
  VectorUnit vectors;
  std::string tune; // LLVM's name of the CPU to schedule for; empty: none in particular
};

// All descriptions; of one architecture the best first.
llvm::ArrayRef<CpuTarget> cpuTargets();

// The description of that name; "native": the best that this machine runs, under this machine's name. Anything else, or
// a machine that runs none, is an error.
llvm::Expected<CpuTarget> findTarget(llvm::StringRef name);

// What a plan has code for where nobody says: all of the architecture that this program was built for.
std::vector<std::string> defaultCpuTargets();

// What --cpu takes: "native, x86-64-v4, ... or ...".
std::string cpuTargetNames();

} // namespace mtc

#endif
