// SPDX-License-Identifier: Apache-2.0
//
// Packs the sides of products.
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// Packs pairs of rows.
static void packPairs(Emitter &emit, Panel panel, Value b, int64_t stride, Value depth, Value packed, Terms terms) {
  Type f32 = emit.realType(), i16 = emit.getI16Type();
  Value mask = panel.last < lanes ? emit.maskBelow(panel.last) : Value();
  forPairs(emit, terms, depth, [&](Value row, Value unit, bool alone) {
    Value from = emit.address(b, i16, emit.mul(row, stride));
    Value to = emit.address(packed, f32, emit.mul(unit, panel.width()));
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      auto load = [&](int64_t offset) {
        return emit.loadLanes(i16, emit.address(from, i16, vector * lanes + offset),
                              vector + 1 == panel.vectors ? mask : Value());
      };
      Value first = load(0), second = alone ? missingTerms(emit, TermSide::right) : load(stride);
      storePairs(emit, terms, first, second, emit.address(to, f32, vector * lanes), panel.width());
    }
  });
}

void mtc::emitPack(Emitter &emit, Panel panel, Value b, int64_t stride, Value depth, Value packed, Type element,
                   Terms terms) {
  if (terms != Terms::single)
    return packPairs(emit, panel, b, stride, depth, packed, terms);
  Type f32 = emit.realType();
  element = element ? element : f32;
  Value mask = panel.last < lanes ? emit.maskBelow(panel.last) : Value();
  emit.loop(emit.integer(0), depth, 1, [&](Value k) {
    Value from = emit.address(b, element, emit.mul(k, stride));
    Value to = emit.address(packed, f32, emit.mul(k, panel.width()));
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      Value taken = emit.loadLanes(element, emit.address(from, element, vector * lanes),
                                   vector + 1 == panel.vectors ? mask : Value());
      emit.storeLanes(taken, emit.address(to, f32, vector * lanes));
    }
  });
}

// 16 floats, or 16 pairs of which 32 terms are loaded, from term `k` of `depth` terms on. Terms after the last one are
// missing terms of the right side.
static Value loadTerms(Emitter &emit, Terms terms, Type element, Value from, Value depth, Value k) {
  Value rest = emit.sub(depth, k);
  if (terms == Terms::single)
    return emit.loadLanes(element, from, emit.maskBelow(rest));
  if (terms == Terms::swapped)
    return emit.extend(
        element, emit.loadLanes(emit.getI16Type(), from, emit.maskBelow(rest), missingTerms(emit, TermSide::right)));
  constexpr int64_t count = 2 * lanes;
  auto vectorOf = [&](Type type) { return VectorType::get({count}, type); };
  Type i16 = emit.getI16Type();
  SmallVector<int16_t> numbers = llvm::to_vector(llvm::seq<int16_t>(0, count));
  Value known = arith::ConstantOp::create(emit, DenseElementsAttr::get(vectorOf(i16), ArrayRef(numbers)));
  Value few = arith::TruncIOp::create(emit, i16, emit.min(rest, emit.integer(count)));
  Value first = LLVM::InsertElementOp::create(emit, LLVM::PoisonOp::create(emit, vectorOf(i16)), few,
                                              arith::ConstantOp::create(emit, emit.getI32IntegerAttr(0)));
  Value mask = arith::CmpIOp::create(emit, arith::CmpIPredicate::slt, known,
                                     LLVM::ShuffleVectorOp::create(emit, first, first, SmallVector<int32_t>(count, 0)));
  Value missing = arith::ConstantOp::create(
      emit, DenseElementsAttr::get(vectorOf(i16), Attribute(emit.getI16IntegerAttr(INT16_MIN))));
  Value taken = LLVM::MaskedLoadOp::create(emit, vectorOf(i16), from, mask, missing, 2);
  return LLVM::BitcastOp::create(emit, emit.vectorOf(emit.getI32Type()), taken);
}

// The function for one vector of columns: (b, stride, depth, packed). Packed rows are `width` floats wide and have the
// stride `step` rows; with swapped terms this is the stride of pairs of rows, in pairs.
static LLVM::LLVMFuncOp packTransposedFunction(Emitter &emit, int64_t columns, int64_t step, int64_t width,
                                               Type element, Terms terms) {
  std::string name = (Twine("pack_transposed_") + Twine(columns) + "_" + Twine(step * width)).str();
  if (Emitter::isHalf(element))
    name += element.isBF16() ? "_bf16" : "_f16";
  if (terms != Terms::single)
    name += terms == Terms::pairs ? "_pairs" : "_swapped" + std::to_string(width);
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  return emit.function(name, {pointer, i64, i64, pointer}, /*internal=*/true, [&](ValueRange arguments) {
    Value b = arguments[0], stride = arguments[1], depth = arguments[2], packed = arguments[3];
    emit.loop(emit.integer(0), depth, lanes * termsOfUnit(terms), [&](Value k) {
      Value from = emit.address(b, element, k);
      Emitter::Values vectors;
      for (int64_t column = 0; column < lanes; ++column)
        vectors.push_back(column < columns ? loadTerms(emit, terms, element,
                                                       emit.address(from, element, emit.mul(stride, column)), depth, k)
                                           : emit.zeros(emit.vectorOf(unitType(emit, terms))));
      transposeInRegisters(emit, vectors);
      Value unit = terms == Terms::pairs ? emit.div(k, emit.integer(2)) : k,
            to = emit.address(packed, f32, emit.mul(unit, step * width));
      for (auto [row, vector] : llvm::enumerate(vectors)) {
        int64_t index = row, position = index * step;
        if (terms == Terms::swapped)
          position = index / 2 * 2 * step + 1 - index % 2;
        emit.storeLanes(vector, emit.address(to, f32, position * width));
      }
    });
  });
}

void mtc::emitPackTransposed(Emitter &emit, Panel panel, Value b, int64_t stride, Value depth, Value packed,
                             int64_t toStride, Type element, Terms terms) {
  Type f32 = emit.realType();
  element = element ? element : f32;
  for (int64_t vector = 0; vector < panel.vectors; ++vector) {
    int64_t columns = vector + 1 == panel.vectors ? panel.last : lanes;
    emit.call(packTransposedFunction(emit, columns, toStride, panel.width(), element, terms),
              {emit.address(b, element, vector * lanes * stride), emit.integer(stride), depth,
               emit.address(packed, f32, vector * lanes)});
  }
}

void mtc::emitExtend(Emitter &emit, Type element, Value from, int64_t stride, Value to, int64_t toStride, Value rows,
                     Value columns, Terms terms) {
  Type f32 = emit.realType(), i16 = emit.getI16Type();
  emit.loop(emit.integer(0), rows, 1, [&](Value row) {
    Value source = emit.address(from, element, emit.mul(row, stride)),
          target = emit.address(to, f32, emit.mul(row, toStride));
    forChunks(emit, emit.integer(0), columns, [&](Value index, Value mask) {
      Value address = emit.address(source, element, index);
      if (terms == Terms::single)
        return emit.storeLanes(emit.loadLanes(element, address, mask), emit.address(target, f32, index), mask);
      // Missing terms of the left side are zeros, as what a mask leaves out.
      if (terms == Terms::pairs)
        return emit.storeLanes(emit.loadLanes(i16, address, mask), emit.address(target, i16, index));
      Value taken = emit.loadLanes(element, address, mask);
      emit.storeLanes(exchanged(emit, taken), emit.address(target, f32, index));
    });
  });
}
