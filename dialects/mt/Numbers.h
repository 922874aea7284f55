// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_NUMBERS_H
#define DIALECTS_MT_NUMBERS_H

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <charconv>

namespace mlir::mt {

// Whether x comes before `best` as the largest element: it is larger, or the first NaN.
inline bool beats(double x, double best) { return x > best || (x != x && best == best); }
// A NaN if one of the two is; of equal ones a.
inline double larger(double a, double b) { return beats(b, a) ? b : a; }
inline double smaller(double a, double b) { return beats(-b, -a) ? b : a; }
// The place of the first of the largest.
inline int64_t firstLargest(llvm::ArrayRef<double> elements) {
  int64_t best = 0;
  for (size_t i = 1; i < elements.size(); ++i)
    if (beats(elements[i], elements[best]))
      best = i;
  return best;
}

// An attribute of type float32.
inline double number(const llvm::APFloat &x) { return x.convertToFloat(); }

// 1 - x as Python computes it from the shortest decimal of x: Keras subtracts in double before it rounds to float32. (1
// - 0.9f is not 0.1f.)
inline double oneMinus(const llvm::APFloat &x) {
  char text[64];
  char *end = std::to_chars(text, text + sizeof(text), x.convertToFloat()).ptr;
  double decimal = 0;
  std::from_chars(text, end, decimal);
  return 1.0 - decimal;
}

// A decimal number, all of `text`: false if it is none. Of any length, unlike LLVM's APFloat, which writes past an
// array of its own where there are tens of thousands of digits.
inline bool readNumber(llvm::StringRef text, double &number) {
  text.consume_front("+");
  auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  return error == std::errc() && end == text.end();
}

} // namespace mlir::mt

#endif
