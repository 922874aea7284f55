// SPDX-License-Identifier: Apache-2.0
//
// What the builder of a StableHLO op works with: one op of the file, which is not registered here, so its attributes
// are dictionaries and texts.
#ifndef FRONTEND_STABLEHLO_CALL_H
#define FRONTEND_STABLEHLO_CALL_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"
#include "frontend/logical/Loops.h"
#include "frontend/stablehlo/Attributes.h"
#include "frontend/stablehlo/Batch.h"

#include <map>
#include <memory>

namespace mtc::stablehlo {

using logical::Known;
using logical::Refused;
using logical::Size;

// A mean over the samples: the sum of `scale` times the values [?], divided by the number of samples.
struct MeanTerm {
  mlir::Value values;
  double scale;
};

// A value some parts of which were replaced, along one axis, one after the other: what the steps of a loop write. It
// becomes one value when something reads all of it.
struct Assembly {
  logical::Value base;
  size_t axis = 0;
  std::map<int64_t, logical::Value> parts; // by their first index; they do not overlap

  logical::Value whole(logical::Ops &ops) const;
  // The part with these elements along the axis; null: they are not one part.
  const logical::Value *find(int64_t start, int64_t size) const;
};

// What each step of a loop writes to a value that goes from step to step: the parts follow one another along an axis.
struct StepWrite {
  size_t carry; // number of the value
  size_t axis;
  int64_t first; // the lowest index along the axis
  logical::Loop::Output part;
};

// A value of the file: known when it is read, or computed by the model, or a sum of means over the samples. With an
// assembly, `value` is its base. In a loop that is built it may be numbers of the steps, or what a step writes: neither
// is there for an op until the importer takes it apart.
struct Operand {
  std::shared_ptr<const Known> known = nullptr;
  logical::Value value = {};
  std::vector<MeanTerm> means = {};
  std::shared_ptr<const Assembly> assembly = nullptr;
  std::shared_ptr<const logical::StepNumbers> steps = nullptr;
  std::shared_ptr<const StepWrite> write = nullptr;
  bool isThere() const { return known || value || !means.empty(); }
  Operand withValue(const logical::Value &made) const { return {nullptr, made}; }
  // As one value of the model, whatever it is but a mean.
  logical::Value lift(logical::Ops &ops) const {
    return known ? known->lift(ops) : assembly ? assembly->whole(ops) : value;
  }
};

class Call {
public:
  using Value = logical::Value;

  Call(logical::Ops &ops, mlir::Operation &op, std::vector<Operand> operands);

  logical::Ops &ops;
  mlir::Operation &op;
  std::vector<Operand> operands;
  std::vector<Operand> results;
  bool isStep = false; // of a whole training step, in which a mean over the samples is a number as any other
  const BatchAxes *batches = nullptr; // of a file whose shapes are all numbers; null: open sizes are the batch

  // An operand as a value, whatever it is.
  Value value(size_t index);
  const Known *known(size_t index) const;
  const Known &expectKnown(size_t index, const char *what) const;
  logical::Shape shape(size_t index) const;
  // The type of the only result; its sizes, of which none is open.
  mlir::RankedTensorType resultType() const;
  llvm::SmallVector<int64_t> resultSizes() const;
  logical::Shape resultShape() const; // of sizes that are known, or the batch
  // Sizes of parts of an operand as the file has them: all of an axis is the batch where that is it.
  logical::Shape partSizes(size_t index, llvm::ArrayRef<int64_t> sizes) const;
  bool hasOpenResult() const { return !resultType().hasStaticShape(); }

  mlir::Attribute attribute(llvm::StringRef name) const; // null: none
  llvm::SmallVector<int64_t> integers(llvm::StringRef name, size_t count = 0, int64_t otherwise = 0) const;
  int64_t integer(llvm::StringRef name, int64_t otherwise) const;
  // What stands in #stablehlo<...> or #stablehlo.name<...>; empty: no such attribute.
  std::string text(llvm::StringRef name) const;
  // The op that the region of a reduction is: "stablehlo.add".
  llvm::StringRef reducer() const;

  // Results as the types in the file say: integers wrap around, floats of 16 bits are rounded. Refused where the shape
  // or the kind of elements is another.
  void settle();

  void give(const Value &value) { results.push_back({nullptr, value, {}, nullptr}); }
  void give(Known known) { results.push_back({std::make_shared<const Known>(std::move(known)), {}, {}, nullptr}); }
};

Known::Type knownTypeOf(mlir::Type element);
// Bits of integers, below 0 of those without a sign.
int widthOf(mlir::Type element);

using BuildOp = void (*)(Call &);
constexpr int anyNumber = -1;
struct OpEntry {
  const char *name; // without "stablehlo."
  BuildOp build;
  int operands; // how many it has
};
// Each family's part of the table, in ops/.
llvm::ArrayRef<OpEntry> elementwiseOps();
llvm::ArrayRef<OpEntry> functionOps();
llvm::ArrayRef<OpEntry> shapeOps();
llvm::ArrayRef<OpEntry> updateOps();
llvm::ArrayRef<OpEntry> reductionOps();
llvm::ArrayRef<OpEntry> gatherOps();
llvm::ArrayRef<OpEntry> productOps();
llvm::ArrayRef<OpEntry> normalizationOps();
llvm::ArrayRef<OpEntry> scatterOps();
llvm::ArrayRef<OpEntry> linearOps();
llvm::ArrayRef<OpEntry> sortingOps();
llvm::ArrayRef<OpEntry> bitOps();
// The elements of each value's own last axis by ids: [b, i..., n] and [b, i..., k...] give [b, i..., k...].
logical::Value takeOwn(logical::Ops &ops, const logical::Value &value, const logical::Value &ids);
// A reduction that is an argmax; false: it is none.
bool buildArgmax(Call &call);
// Whether an "and" of integers takes the sign bit of a float.
bool isSignBit(const Call &call);
// Null where the op is not known.
const OpEntry *findOp(llvm::StringRef name);

} // namespace mtc::stablehlo

#endif
