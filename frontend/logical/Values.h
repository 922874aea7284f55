// SPDX-License-Identifier: Apache-2.0
//
// Values of importers whose files have another order of axes than `mt`: a logical shape, which the file speaks of, over
// a stored tensor. A transpose, a broadcast or an axis of size 1 changes the logical shape alone; the tensor is
// rearranged where an op needs it in an order. So images may have their channels first in the file and last in memory.
#ifndef FRONTEND_LOGICAL_VALUES_H
#define FRONTEND_LOGICAL_VALUES_H

#include "dialects/mt/Elementwise.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

#include <optional>
#include <stdexcept>
#include <string>

namespace mtc::logical {

// What `mt` cannot do, or what a file says wrongly; the text says what. Importers catch it at the op of the file.
class Refused : public std::runtime_error {
public:
  explicit Refused(const std::string &message) : std::runtime_error(message) {}
};

// The product of sizes; refused where it is no count of elements that a tensor can have.
int64_t multiply(int64_t a, int64_t b);

// A number of elements: `times`, or that many for each sample of the batch.
struct Size {
  int64_t times = 1;
  bool batch = false;

  Size(int64_t times = 1, bool batch = false) : times(times), batch(batch) {}
  bool operator==(const Size &) const = default;
  bool isOne() const { return times == 1 && !batch; }
  bool isBatch() const { return times == 1 && batch; }
  std::string text() const; // "3", "b", "3*b"
};
inline Size batchSize() { return {1, true}; }

// The axis, which must be one of so many. Every builder asks before it looks at an axis that a file names.
size_t checkAxis(int64_t axis, size_t rank);
// Different axes of so many.
void checkAxes(llvm::ArrayRef<int64_t> axes, size_t rank);
// A number for each axis.
void checkCount(size_t numbers, size_t rank);

using Shape = llvm::SmallVector<Size, 4>;
std::string describe(llvm::ArrayRef<Size> shape); // "[b, 3, 224, 224]"

// A part of a logical axis. `place` is its axis of the stored tensor; -1: the elements along it are equal, and stored
// once. The batch is a part of its own. Only a part that is not stored may have k times the batch: how the batch lies
// in it is then open. Stored tensors have no axes of size 1.
struct Axis {
  Size size;
  int place = -1;

  bool isStored() const { return place >= 0; }
};
using Parts = llvm::SmallVector<Axis, 1>;
Size sizeOf(llvm::ArrayRef<Axis> parts);

struct Value {
  mlir::Value stored;
  llvm::SmallVector<Parts, 4> axes; // the parts of each logical axis, row major

  explicit operator bool() const { return static_cast<bool>(stored); }
  size_t rank() const { return axes.size(); }
  Size size(size_t axis) const { return sizeOf(axes[checkAxis(static_cast<int64_t>(axis), rank())]); }
  Shape shape() const;
  llvm::SmallVector<Axis> flat() const; // the parts of all axes
  mlir::RankedTensorType type() const { return llvm::cast<mlir::RankedTensorType>(stored.getType()); }
  mlir::Type element() const { return type().getElementType(); }
  bool isFloat() const { return mlir::mt::isReal(element()); }
  bool isInteger() const { return element().isInteger(32); }
  bool isBoolean() const { return element().isInteger(1); }
};
// Which of the parts is the batch, or a multiple of it; -1: none.
int batchOf(llvm::ArrayRef<Axis> flat);

// Returns the elements of a constant; null if the tensor is not a constant.
mlir::DenseElementsAttr elementsOf(mlir::Value stored);

// What makes ops, and where they come from.
struct Ops {
  mlir::OpBuilder &builder;
  mlir::Location location;
  // How many elements of constants, and other things that a short text makes many of, may still be made; null: any.
  int64_t *budget = nullptr;
  static constexpr int64_t maxBudget = int64_t{1} << 27;
  void charge(int64_t elements) const;
  // Whether so many may be made, which are then charged.
  bool affords(int64_t elements) const;

  // The type of numbers: f32, or f64 in a module of precision f64.
  mlir::Type real() const;
  mlir::Type i32() const { return builder.getI32Type(); }
  mlir::Type i1() const { return builder.getI1Type(); }
  // The logical axes are those of the tensor, whose first axis may be the batch.
  Value value(mlir::Value stored);
  // Takes axes of size 1 out of the stored tensor.
  Value tidy(Value value);
  // A constant of all equal elements.
  Value number(double number, mlir::Type element, llvm::ArrayRef<Size> shape = {});
  // A constant of rank 0 or more in its own shape.
  Value constant(mlir::DenseElementsAttr elements);
  // The number of samples times a factor, as a number.
  Value count(Size size);
  // The same elements, row major, in another stored shape; ShapedType::kDynamic is the batch.
  mlir::Value reshapeStored(mlir::Value stored, llvm::ArrayRef<int64_t> shape);
};

} // namespace mtc::logical

#endif
