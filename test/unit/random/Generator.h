// SPDX-License-Identifier: Apache-2.0
//
// Makes a random model: a graph that grows by steps from values [?, C] to new ones, elements of at most about 1.
#ifndef TEST_UNIT_RANDOM_GENERATOR_H
#define TEST_UNIT_RANDOM_GENERATOR_H

#include "dialects/mt/Expr.h"
#include "test/unit/random/RandomModel.h"
#include <random>

namespace mtc::test {

class Generator {
public:
  Generator(mlir::MLIRContext &context, uint32_t seed, int64_t classes)
      : seed(seed), classes(classes), random(seed), builder(&context), at(builder.getUnknownLoc()), turn(seed) {}
  RandomModel make();

private:
  using Expr = mlir::mt::Expr;
  using Value = mlir::Value;
  using Shape = llvm::ArrayRef<int64_t>;
  static constexpr int64_t dynamic = mlir::ShapedType::kDynamic;

  // ---- choices
  int64_t below(int64_t n) { return random() % n; }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> T oneOf(std::initializer_list<T> list) { return list.begin()[below(list.size())]; }
  double between(double low, double high) {
    return static_cast<float>(low + (high - low) * (random() % 10007) / 10007.0);
  }
  int64_t oddWidth() { return oneOf<int64_t>({1, 2, 3, 5, 7, 9, 11, 15, 15, 16, 17, 21, 33, 45, 67}); }

  // ---- parts
  Expr e(Value value) { return Expr(builder, at, value); }
  template <typename Op, typename... Args> Expr make(Args &&...args) {
    return e(Op::create(builder, at, std::forward<Args>(args)...));
  }
  mlir::RankedTensorType f32(Shape shape) { return mlir::RankedTensorType::get(shape, builder.getF32Type()); }
  mlir::RankedTensorType i32(Shape shape) { return mlir::RankedTensorType::get(shape, builder.getI32Type()); }
  static int64_t width(const Expr &x) { return x.type().getShape().back(); }
  Expr variable(Shape shape, bool varied = false); // varied: its elements do not start equal
  Expr constant(Shape shape);
  template <typename Op> Expr unary(const Expr &x) { return make<Op>(x.value()); }
  Expr tanh(const Expr &x) { return unary<mlir::mt::TanhOp>(x); }
  Expr reduce(mlir::mt::Reduction kind, const Expr &x, Shape dims) {
    return make<mlir::mt::ReduceOp>(kind, x.value(), dims);
  }
  // Sum, maximum or minimum, whose elements are again at most about 1.
  Expr anyReduction(const Expr &x, Shape dims);
  Expr reshape(const Expr &x, Shape shape) { return make<mlir::mt::ReshapeOp>(x.type().clone(shape), x.value()); }
  Expr transpose(const Expr &x, Shape order) { return make<mlir::mt::TransposeOp>(x.value(), order); }
  Expr matmul(const Expr &a, const Expr &b, bool transposeA = false, bool transposeB = false) {
    return make<mlir::mt::MatmulOp>(a.value(), b.value(), transposeA, transposeB);
  }
  Expr compare(mlir::mt::Compare kind, const Expr &a, const Expr &b) {
    return make<mlir::mt::CompareOp>(kind, a.value(), b.value());
  }
  // Keeps a differentiable path from x, and values small.
  Expr mix(const Expr &x, const Expr &other) { return tanh(x * 0.75 + other * 0.5); }
  // A value of the graph, recent ones more often; one of a given width; all of its elements in three or four axes.
  Expr any();
  Expr anyLike(const Expr &x);
  Expr cube(const Expr &x);
  Expr resized(const Expr &x, int64_t to);

  // ---- steps (Steps.cpp)
  Expr step();
  Expr unaryStep(const Expr &x);
  Expr binaryStep(const Expr &x);
  Expr layerStep(const Expr &x);
  Expr maskStep(const Expr &x);
  Expr shapeStep(const Expr &x);
  Expr attention(const Expr &box);
  Expr attentionStep(const Expr &x);
  Expr productStep(const Expr &x);
  Expr reductionStep(const Expr &x);
  Expr compositeStep(const Expr &x);
  Expr sourceStep(const Expr &x);
  Expr threefryStep(const Expr &x);
  Expr parameterStep(const Expr &x);
  Expr batchStep(const Expr &x);

  // ---- steps over images, and lookup (Spatial.cpp)
  Expr image(const Expr &x, int64_t channels);
  // x, changed by all elements of y.
  Expr flattened(const Expr &y, const Expr &x);
  Expr convolutionStep(const Expr &x);
  Expr poolStep(const Expr &x);
  Expr movementStep(const Expr &x);
  Expr lookupStep(const Expr &x);
  Expr takeStep(const Expr &x);

  // ---- loops (Sequences.cpp)
  Expr scanStep(const Expr &x);
  Expr cumsumStep(const Expr &x);

  // ---- steps and ends of what is in the registry (Layers.cpp)
  Expr functionStep(const Expr &x);
  Expr noiseStep(const Expr &x);
  Expr normalizationStep(const Expr &x);
  std::pair<Value, Value> anyCriteria(const Expr &p, Value target);
  Value anySchedule();
  void buildOptimizer();

  // ---- the end of a model
  Expr joined();
  void buildOutputs(const Expr &x);
  void buildLoss(const Expr &x, const std::string &name);
  void buildClassLoss(const Expr &x, const std::string &name);
  template <typename Op> Value criterion(const Expr &p, Value target) {
    return Op::create(builder, at, p.value(), target);
  }
  template <typename Op> Value crossEntropy(const Expr &p, Value target, bool logits) {
    return Op::create(builder, at, p.value(), target, logits);
  }
  Value input(llvm::StringRef name, int64_t width);
  Value target(llvm::StringRef name, mlir::RankedTensorType type, llvm::function_ref<double()> element);
  Value sampleWeight(const std::string &name);

  const uint32_t seed;
  const int64_t classes; // of a loss; 0: as the values have them
  std::mt19937 random;
  mlir::OpBuilder builder;
  mlir::Location at;
  int64_t variables = 0, streams = 0;
  uint32_t turn;                  // of the functions
  llvm::SmallVector<Expr> values; // the graph's, each [?, C]
  mtc::Step data;
};

} // namespace mtc::test

#endif
