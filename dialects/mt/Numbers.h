// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_NUMBERS_H
#define DIALECTS_MT_NUMBERS_H

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <charconv>

namespace mlir::mt {

// Whether x replaces `best` as the largest element: x is larger, or the first NaN.
inline bool beats(double x, double best) { return x > best || (x != x && best == best); }
// Maximum and minimum; NaN if either is NaN, and a if they are equal.
inline double larger(double a, double b) { return beats(b, a) ? b : a; }
inline double smaller(double a, double b) { return beats(-b, -a) ? b : a; }
// Index of the first largest element.
inline int64_t firstLargest(llvm::ArrayRef<double> elements) {
  int64_t best = 0;
  for (size_t i = 1; i < elements.size(); ++i)
    if (beats(elements[i], elements[best]))
      best = i;
  return best;
}

// Value of an attribute of f32 or f64.
inline double number(const llvm::APFloat &x) { return x.convertToDouble(); }

// The shortest decimal that rounds to x: the number that was written where 0.9f stands for 0.9.
inline double decimalOf(const llvm::APFloat &x) {
  if (&x.getSemantics() != &llvm::APFloat::IEEEsingle())
    return x.convertToDouble();
  char text[64];
  char *end = std::to_chars(text, text + sizeof(text), x.convertToFloat()).ptr;
  double decimal = 0;
  std::from_chars(text, end, decimal);
  return decimal;
}
// 1 - x in double precision: Keras subtracts Python floats and then rounds to float32, and 1 - 0.9f is not 0.1f.
inline double oneMinus(const llvm::APFloat &x) { return 1.0 - decimalOf(x); }

// Reads a decimal number; false if `text` is not one as a whole. The number may have any length. (LLVM's APFloat writes
// out of bounds for tens of thousands of digits.)
inline bool readNumber(llvm::StringRef text, double &number) {
  text.consume_front("+");
  auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  return error == std::errc() && end == text.end();
}

} // namespace mlir::mt

#endif
