// SPDX-License-Identifier: Apache-2.0
#include "compiler/SizeText.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace mtc {

static std::string scaled(double value, double step, std::initializer_list<const char *> units) {
  auto unit = units.begin();
  while (value >= 0.9995 * step && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  std::string text;
  const char *format = unit == units.begin() || value >= 100 ? "%.0f %s" : value >= 10 ? "%.1f %s" : "%.2f %s";
  llvm::raw_string_ostream(text) << llvm::format(format, value, *unit);
  return text;
}

std::string bytesText(uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string flopsText(uint64_t flops) {
  return scaled(static_cast<double>(flops), 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"});
}

} // namespace mtc
