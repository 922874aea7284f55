// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_SIZETEXT_H
#define COMPILER_SIZETEXT_H

#include <cstdint>
#include <string>

namespace mtc {

// Text with three digits and a unit: "3.2 MiB", "1.5 GFLOP".
std::string bytesText(uint64_t bytes);
std::string flopsText(uint64_t flops);

} // namespace mtc

#endif
