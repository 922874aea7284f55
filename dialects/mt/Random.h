// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of mt.random_uniform and mt.threefry in plain C++, the reference for generated code.
#ifndef DIALECTS_MT_RANDOM_H
#define DIALECTS_MT_RANDOM_H

#include <array>
#include <cstdint>
#include <string_view>

namespace mlir::mt {

// Philox 4x32-10 (Salmon et al., SC'11).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
// Threefry 2x32-20 (Salmon et al., SC'11).
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);
// The 32-bit FNV-1a hash of a stream's name.
uint32_t hashStream(std::string_view stream);
// Random number in [0, 1) of an element, a multiple of 2^-24.
double uniformElement(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);

} // namespace mlir::mt

#endif
