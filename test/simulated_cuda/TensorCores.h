// SPDX-License-Identifier: Apache-2.0
//
// What a warp does together with tensor cores. Threads show one another their words between two barriers. Blocks that
// take turns have a number each.
#ifndef TEST_SIMULATED_CUDA_TENSORCORES_H
#define TEST_SIMULATED_CUDA_TENSORCORES_H

#include "runtime/abi/gpu_kernel.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace simulated {

inline float halfOf(uint16_t bits, bool isBf16) {
  return isBf16 ? std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)
                : static_cast<float>(std::bit_cast<_Float16>(bits));
}

// A lane's words of the left and the right side hold numbers of its row or column; `number(word, k)` is the one for k
// of a word that lane % 4 == k % 4 or, in pairs, k / 2 % 4 chooses. Sums are chains in order of k.
template <int block, uint32_t depth, class Number>
void multiplyPiece(const mt_sim_thread *thread, uint32_t *words, Number number) {
  constexpr uint32_t perLane = depth / 8; // numbers per word
  static const uint32_t *shown[1024];
  shown[thread->thread] = words;
  thread->barrier(thread);
  const uint32_t *const *warp = shown + thread->thread / 32 * 32;
  uint32_t lane = thread->thread % 32, sums[4];
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    float sum = std::bit_cast<float>(words[6 + i]);
    for (uint32_t k = 0; k < depth; ++k) {
      uint32_t holder = k / perLane % 4, half = k / (depth / 2), part = k % perLane;
      sum = std::fma(number(warp[row % 8 * 4 + holder][row / 8 + half * 2], part),
                     number(warp[column * 4 + holder][4 + half], part), sum);
    }
    sums[i] = std::bit_cast<uint32_t>(sum);
  }
  thread->barrier(thread);
  for (uint32_t i = 0; i < 4; ++i)
    words[6 + i] = sums[i];
}

// mt_sim_thread::multiply.
template <int block = 0> void multiplyPieces(const mt_sim_thread *thread, uint32_t *words) {
  multiplyPiece<block, 8>(thread, words, [](uint32_t word, uint32_t) { return std::bit_cast<float>(word); });
}

// mt_sim_thread::multiply_halves.
template <int block = 0> void multiplyHalves(const mt_sim_thread *thread, uint32_t *words, uint32_t isBf16) {
  multiplyPiece<block, 16>(thread, words, [isBf16](uint32_t word, uint32_t part) {
    return halfOf(static_cast<uint16_t>(word >> (16 * part)), isBf16 != 0);
  });
}

// mt_sim_thread::load_matrices. Lane l gets numbers 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each matrix, or of its
// column.
template <int block = 0>
void loadMatrices(const mt_sim_thread *thread, const void *row, uint32_t count, uint32_t transposed, uint32_t *words) {
  static const void *shown[1024];
  shown[thread->thread] = row;
  thread->barrier(thread);
  const void *const *warp = shown + thread->thread / 32 * 32;
  uint32_t lane = thread->thread % 32, loaded[4];
  for (uint32_t i = 0; i < count; ++i) {
    uint16_t pair[2];
    for (uint32_t j = 0; j < 2; ++j) {
      uint32_t line = transposed ? lane % 4 * 2 + j : lane / 4, place = transposed ? lane / 4 : lane % 4 * 2 + j;
      std::memcpy(&pair[j], static_cast<const char *>(warp[8 * i + line]) + 2 * place, 2);
    }
    loaded[i] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
  }
  thread->barrier(thread);
  std::memcpy(words, loaded, 4 * count);
}

// Where a descriptor (its two words, without the address) and an address from a multiple of 1024 bytes on say that
// number (line, k) of a side lies (PTX ISA, wgmma, swizzle of 128 bytes).
inline uint16_t numberAt(const char *from, uint32_t low, uint32_t high, bool across, uint32_t line, uint32_t k) {
  uint32_t lines = (low >> 16 & 0x3fff) * 16, rows = (high & 0x3fff) * 16;
  auto address = reinterpret_cast<uintptr_t>(from);
  address += across ? line / 64 * lines + k / 8 * rows + k % 8 * 128 + line % 64 * 2
                    : line / 8 * rows + line % 8 * 128 + k * 2;
  address ^= (address >> 7 & 7) << 4;
  uint16_t bits;
  std::memcpy(&bits, reinterpret_cast<const void *>(address), 2);
  return bits;
}

// WarpgroupForm of compiler/codegen/gpu/TensorCores.h, a word for each number.
struct WarpgroupForm {
  uint32_t blocks, columns, steps, leftLow, rightLow, high, leftStep, rightStep, block, leftAcross, rightAcross, isBf16;
};

// mt_sim_thread::multiply_by_warpgroup. Sums are chains in order of k.
inline void multiplyByWarpgroup(const mt_sim_thread *thread, const void *left, const void *right, uint32_t *words,
                                uint32_t count) {
  WarpgroupForm form;
  std::memcpy(&form, words + count, sizeof form);
  uint32_t each = form.columns / 2, lane = thread->thread % 32;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t place = i % each, row = thread->thread / 32 % 4 * 16 + lane / 4 + place % 4 / 2 * 8;
    uint32_t column = place / 4 * 8 + lane % 4 * 2 + place % 2;
    float sum = std::bit_cast<float>(words[i]);
    for (uint32_t step = 0; step < form.steps; ++step) {
      const char *a = static_cast<const char *>(left) + i / each * form.block + step * form.leftStep;
      const char *b = static_cast<const char *>(right) + step * form.rightStep;
      for (uint32_t k = 0; k < 16; ++k)
        sum = std::fma(halfOf(numberAt(a, form.leftLow, form.high, form.leftAcross, row, k), form.isBf16),
                       halfOf(numberAt(b, form.rightLow, form.high, form.rightAcross, column, k), form.isBf16), sum);
    }
    words[i] = std::bit_cast<uint32_t>(sum);
  }
}

// Sets the calls of a thread.
template <int block = 0> void setTensorCores(mt_sim_thread &thread) {
  thread.multiply = multiplyPieces<block>;
  thread.multiply_halves = multiplyHalves<block>;
  thread.load_matrices = loadMatrices<block>;
  thread.multiply_by_warpgroup = multiplyByWarpgroup;
}

} // namespace simulated

#endif
