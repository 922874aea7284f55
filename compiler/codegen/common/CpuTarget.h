// SPDX-License-Identifier: Apache-2.0
//
// CPU targets: one description per instruction set. Tile sizes follow from the vector unit of the target.
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

// Number of elements of the vectors in kernel code. It is the same for all CPUs, so that sums have the same bits.
constexpr int64_t lanes = 16;

// The vector registers of a CPU, and the number of partial sums of a product's tile that stay in them.
struct VectorUnit {
  int64_t bits = 256;     // of a register
  int64_t registers = 16; // that an instruction can address
  // Whether an instruction adds two products of bf16 elements to each float of a register: VDPBF16PS.
  bool dots = false;
  // The register that says what is done with subnormal numbers: of x86-64, or of AArch64.
  enum class Control { mxcsr, fpcr } control = Control::mxcsr;

  // Whether the numbers of the plan are doubles. A register holds half as many doubles as floats.
  bool doubles = false;

  // Number of vectors of 16 floats that the registers hold: 8 for AVX2 and NEON, 32 for AVX-512.
  int64_t vectors() const { return registers * bits / (32 * lanes); }
  // Whether a tile may be several vectors wide, and several sets of partial sums may be in registers at the same time.
  bool isWide() const { return vectors() >= 32; }

  // Tile of a product: its number of vectors of 16 columns, and its number of rows for each number of vectors. With 8
  // vectors in registers, one holds a row of b, one an element of a, and six hold sums. With 32 vectors, the numbers of
  // rows are the fastest that were measured on Zen 4 and Sapphire Rapids. More than 12 rows gain nothing, because two
  // loads per FMA unit already keep it busy. A tile of doubles has half the numbers.
  int64_t tileVectors() const { return !isWide() ? 1 : doubles ? 2 : 4; }
  int64_t tileRows(int64_t vectors) const {
    constexpr int64_t rows[] = {0, 8, 12, 8, 6}, rowsOfDoubles[] = {0, 12, 6, 4, 3};
    if (doubles)
      return isWide() ? rowsOfDoubles[vectors] : 2;
    return isWide() ? rows[vectors] : 6;
  }
  // Number of rows if `sets` partial sums of each element are in registers at the same time.
  int64_t tileRows(int64_t vectors, int64_t sets) const {
    if (doubles)
      return std::max<int64_t>(1, isWide() ? std::min(tileRows(vectors), 13 / (vectors * sets))
                                           : tileRows(vectors) / sets);
    return isWide() ? std::min(tileRows(vectors), 26 / (vectors * sets)) : tileRows(vectors) / sets;
  }
};

struct CpuTarget {
  std::string name;   // name of the target in a plan and for --cpu
  std::string triple; // LLVM's triple: architecture, vendor, system
  std::string cpu;    // LLVM's name of the instruction set
  // Features that the CPU must have at run time; runtime/device/CpuFeatures.cpp checks them.
  std::vector<std::string> features;
  VectorUnit vectors;
  std::string tune;            // LLVM's name of the CPU for scheduling; empty: generic
  std::string extensions = ""; // features that `cpu` does not have, as LLVM writes them
};

// All targets; the targets of an architecture are ordered from best to worst.
llvm::ArrayRef<CpuTarget> cpuTargets();

// The target with this name. For "native", the best target that this machine supports, with the name of its CPU. Fails
// for any other name, and if the machine supports no target.
llvm::Expected<CpuTarget> findTarget(llvm::StringRef name);

// Default CPU targets: all targets of the architecture for which this program was built. Without `bf16`, targets
// that differ from others only in products of bf16 elements are left out.
std::vector<std::string> defaultCpuTargets(bool bf16);

// Text for messages and help: "native, x86-64-v4, ... or ...".
std::string cpuTargetNames();

} // namespace mtc

#endif
