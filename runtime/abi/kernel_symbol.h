// SPDX-License-Identifier: Apache-2.0
//
// The symbols of kernel functions.
#ifndef MT_KERNEL_SYMBOL_H
#define MT_KERNEL_SYMBOL_H

#include <string>
#include <string_view>

namespace mtrun {

// Returns the symbol of a kernel's function in the code of every target: the kernel's name with an underscore in place
// of every byte that a C identifier cannot have. Symbols are unique in a plan.
inline std::string kernelSymbol(std::string_view name) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  std::string symbol = name.empty() || isDigit(name.front()) ? "_" : "";
  for (char c : name) {
    bool allowed = isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    symbol += allowed ? c : '_';
  }
  return symbol;
}

// The elementwise kernel of every plan that adds two partial sums: buffers a, b, out; out may be a. Its name equals its
// symbol, which no other kernel has.
inline constexpr std::string_view sumKernelName = "mt_sum";

} // namespace mtrun

#endif
