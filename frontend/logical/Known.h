// SPDX-License-Identifier: Apache-2.0
//
// What is known when the model is read: constants, and shapes, whose numbers may be multiples of the batch. Exporters
// compute the shapes of reshapes by ops of the model; these are computed here.
#ifndef FRONTEND_LOGICAL_KNOWN_H
#define FRONTEND_LOGICAL_KNOWN_H

#include "frontend/logical/Values.h"

#include <functional>

namespace mtc::logical {

using Indices = llvm::SmallVector<int64_t, 4>;

struct Known {
  enum class Type { Float, Integer, Boolean } type = Type::Float;
  Indices shape;
  std::vector<double> numbers;  // row major
  std::vector<bool> timesBatch; // which numbers are multiples of the batch; empty: none
  int width = 64;               // bits of integers, which wrap around; below 0: they have no sign

  static Known scalar(double number, Type type);
  static Known list(llvm::ArrayRef<int64_t> integers);
  static Known shapeOf(llvm::ArrayRef<Size> shape);
  // An array of this shape, all zeros; refused where it has too many elements.
  static Known zeros(llvm::ArrayRef<int64_t> shape, Type type);

  int64_t count() const { return static_cast<int64_t>(numbers.size()); }
  bool hasBatch() const;
  Size size(int64_t index) const;
  // All numbers, which must be whole and known; in int64, the extremes saturate.
  llvm::SmallVector<int64_t> integers() const;
  Shape sizes() const;
  // Element i of the result is element from(i's indices) of this one, in row major order.
  Known remapped(llvm::ArrayRef<int64_t> shape, llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> from) const;
  Known reshaped(llvm::ArrayRef<int64_t> shape) const;
  // Axis i of the result is axis order[i], which are all axes.
  Known transposed(llvm::ArrayRef<int64_t> order) const;
  // Repeated as NumPy does.
  Known expanded(llvm::ArrayRef<int64_t> shape) const;
  // Where the element at some indices lies; they may have more axes, whose index counts where the size is not 1.
  int64_t place(llvm::ArrayRef<int64_t> indices) const;
  // As a constant; numbers of booleans as i1, integers as i32.
  Value lift(Ops &ops) const;
  // Rounded to the type.
  void round();
};

// Whether a comparison of two numbers holds.
bool holds(mlir::mt::Compare kind, double a, double b);
// A whole number as integers of so many bits have it, as Known::width.
double wrapped(double number, int width);
mlir::Type elementOf(mlir::Builder &builder, Known::Type type);
// The shape that all broadcast to.
Indices commonSizes(llvm::ArrayRef<const Known *> operands);
// A function of numbers, element by element. Where an operand is a multiple of the batch, it is refused.
Known computed(llvm::ArrayRef<const Known *> operands, Known::Type type,
               llvm::function_ref<double(llvm::ArrayRef<double>)> function);

} // namespace mtc::logical

#endif
