// SPDX-License-Identifier: Apache-2.0
//
// How the operands of a product are packed. The chain of a product of bf16 operands is, for each pair of adjacent
// terms,
//
//     sum = fma(x0, y0, fma(x1, y1, sum))
//
// with subnormal numbers taken as zero; a last term without a partner is a single FMA (docs/precision.md). CPUs that
// have an instruction for a pair get pairs of 32 bits instead of floats. Other CPUs get floats in the order of
// the FMAs, and the same tiles as products of floats.
#ifndef COMPILER_CODEGEN_CPU_TERMS_H
#define COMPILER_CODEGEN_CPU_TERMS_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

enum class Terms {
  single,  // floats, in the order of the terms: a product of operands that are not both bf16
  swapped, // floats; of each pair the second term comes first
  pairs,   // i32: the first term in the lower half, the second in the upper one
};

// For operands of these types in a kernel of products.
Terms termsOf(const Emitter &emit, mlir::Type left, mlir::Type right);

// Number of packed floats or pairs of `count` terms. A pair without a second term is complete: its missing terms are +0
// on the left side and -0 on the right side, whose product changes no sum.
int64_t unitsOf(Terms terms, int64_t count);
mlir::Value unitsOf(Emitter &emit, Terms terms, mlir::Value count);

// Number of terms of a float or a pair.
inline int64_t termsOfUnit(Terms terms) { return terms == Terms::pairs ? 2 : 1; }

// Type of a float or a pair; suffix of the names of tiles.
mlir::Type unitType(Emitter &emit, Terms terms);
inline llvm::StringRef suffixOf(Terms terms) { return terms == Terms::pairs ? "_pairs" : ""; }

// sum + a * b for 16 floats, or 16 pairs.
mlir::Value addProduct(Emitter &emit, Terms terms, mlir::Value a, mlir::Value b, mlir::Value sum);

// Emits products of these terms: calls and loops, after which memory is read.
void emitChains(Emitter &emit, Terms terms, llvm::function_ref<void()> body);

// The value of a side's missing terms: 16 elements, as 16-bit integers.
enum class TermSide { left, right };
mlir::Value missingTerms(Emitter &emit, TermSide side);

// A vector with the elements of each pair exchanged.
mlir::Value exchanged(Emitter &emit, mlir::Value vector);

// Stores the first and the second terms of 16 pairs (16-bit integers), or of the pairs that `mask` selects: one vector
// of pairs at `to`, or two vectors of floats at a distance of `step`.
void storePairs(Emitter &emit, Terms terms, mlir::Value first, mlir::Value second, mlir::Value to, int64_t step,
                mlir::Value mask = {});

// Calls each(term, unit, alone) for the pairs of `count` terms: the number of the first term and of the packed row.
// `alone`: the second term is missing.
void forPairs(Emitter &emit, Terms terms, mlir::Value count,
              llvm::function_ref<void(mlir::Value term, mlir::Value unit, bool alone)> each);

// Packs terms that are rows in memory: rows [0, rows) of `columns` 16-bit elements each, with a stride of `stride`
// elements. The packed rows have the stride `step`, in floats; full vectors are written.
void packRows(Emitter &emit, Terms terms, TermSide side, mlir::Value from, int64_t stride, mlir::Value rows,
              mlir::Value columns, mlir::Value to, int64_t step);

} // namespace mtc

#endif
