// SPDX-License-Identifier: Apache-2.0
//
// What the builder of a layer works with: one call of the layer. A builder is a small function that reads its config,
// makes ops and returns the result; null after an error. `LayerTable.h` has the closed table of them.
#ifndef FRONTEND_KERAS_LAYERBUILDER_H
#define FRONTEND_KERAS_LAYERBUILDER_H

#include "frontend/keras/Graph.h"

#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include <deque>

namespace mtc::keras {

// An argument of a call, with its tensors.
struct Operand {
  mlir::Value tensor; // null: a list or a constant
  std::vector<Operand> list;
  const Json *constant = nullptr;
  std::vector<std::string> keys = {}; // of a dictionary, whose values the list has
  mlir::Value mask = {};              // of the tensor: which steps of a sample are there, [?, T]; null: all
};

constexpr int64_t batch = mlir::ShapedType::kDynamic; // the size of its axis
constexpr int64_t maxUnits = int64_t{1} << 31;        // of a layer's width
constexpr int64_t maxFactor = int64_t{1} << 20;       // of kernels, strides, paddings, repetitions

// A location with the name of the layer.
mlir::Location locationOf(mlir::OpBuilder &builder, const Layer &layer);

class LayerBuilder {
public:
  using Value = mlir::Value;

  LayerBuilder(mlir::OpBuilder &builder, Layer &layer, std::vector<Operand> args,
               std::vector<std::pair<std::string, Operand>> kwargs, bool hasWeights);

  mlir::OpBuilder &builder;
  mlir::Location location; // named after the layer
  Layer &layer;
  Config config;
  llvm::StringRef precision = "f32"; // of its policy
  const bool hasWeights;             // the file gives every variable's value
  mlir::SmallVector<Value> others;   // results of the call behind the first one
  Value outputMask;                  // of the first result; null: none

  // Reports an error at the layer; null.
  Value fail(const std::string &message);
  // The call's result is `result`: all options and keyword arguments were read, and none was wrong.
  bool finish(Value result);

  // The one tensor that the layer is called with; null and an error if there is another number, or its rank is not
  // `rank`.
  Value input(int64_t rank = -1);
  // One list of tensors; at least `least`.
  mlir::SmallVector<Value> inputs(size_t least = 1);
  llvm::ArrayRef<Operand> arguments() const { return args; }
  // The mask of the first tensor that the layer is called with, or the keyword argument `mask`; null: none.
  Value inputMask();
  bool readsMask() const { return mask.has_value(); }
  // Whether it is the keyword argument.
  bool isMaskGiven() const { return maskGiven; }
  // Of each tensor of the first argument; null: none.
  mlir::SmallVector<Value> masks() const;
  // A keyword argument; null if it is absent or null.
  const Operand *keyword(llvm::StringRef name);

  // Sizes from 1 to a limit.
  int64_t size(llvm::StringRef key, int64_t limit = maxUnits);
  mlir::SmallVector<int64_t> sizes(llvm::StringRef key, int64_t count, int64_t limit = maxFactor, int64_t least = 1);
  // `data_format` must be channels_last.
  void expectChannelsLast();

  // The layer's next variable, in the order in which Keras stores them: trainable ones first. Made when the layer is
  // called for the first time. `initializer` is a key of the config, or "" for zeros.
  Value variable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, llvm::StringRef initializer,
                 bool trainable = true);
  // The variables from here on are those of a layer inside this one: `name` stands in their names, `weights` in their
  // paths of the file.
  void part(llvm::StringRef name, llvm::StringRef weights);
  // The file has a value at the next index that the layer does without.
  void skipVariable();
  // A variable that starts at a constant.
  Value constantVariable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, float value, bool trainable);

  // x + bias, if use_bias.
  Value addBias(Value value, int64_t units);

  mlir::mt::Expr expr(Value value) { return {builder, location, value}; }
  static mlir::RankedTensorType typeOf(Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  static llvm::ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }
  Value constant(mlir::DenseElementsAttr value);
  Value reshape(Value value, llvm::ArrayRef<int64_t> shape);
  // Integers become floats.
  Value toFloat(Value value);
  // A tensor, or a number or an array as a constant; null and an error for anything else.
  Value toFloat(const Operand &operand);
  // Whether an operand is an array of NumPy or of Keras' back end.
  static bool isArray(const Operand &operand);
  // Its elements as f32 or i1, without leading axes of size 1 unless they are wanted; null and an error where it is no
  // array of numbers.
  Value array(const Operand &operand, bool keepOnes = false);
  // False and an error where a constant would lie along the batch axis of the others.
  bool standBesideBatch(llvm::ArrayRef<Value> values);
  // An op of two operands that broadcast; null and an error where they do not.
  template <typename Op> Value binary(Value a, Value b) {
    llvm::SmallVector<mlir::Type> types;
    if (!a || !b || !standBesideBatch({a, b}) ||
        mlir::failed(Op::inferReturnTypes(builder.getContext(), location, mlir::ValueRange{a, b},
                                          mlir::DictionaryAttr(), nullptr, mlir::RegionRange(), types)))
      return {};
    return Op::create(builder, location, types[0], a, b);
  }

  // An op whose type follows from its operands and attributes; null and an error where it does not.
  template <typename Op> Value inferred(mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes) {
    mlir::DictionaryAttr dictionary = builder.getDictionaryAttr(attributes);
    typename Op::Properties properties;
    llvm::SmallVector<mlir::Type> types;
    if (mlir::failed(Op::setPropertiesFromAttr(properties, dictionary, [&] { return mlir::emitError(location); })) ||
        mlir::failed(
            Op::inferReturnTypes(builder.getContext(), location, operands, dictionary, &properties, {}, types)))
      return fail("expected shapes that fit the layer");
    return Op::create(builder, location, mlir::TypeRange(types), operands, attributes)->getResult(0);
  }
  // An op of a given type; the verifier sees it later.
  template <typename Op>
  Value made(mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes, mlir::Type type) {
    return Op::create(builder, location, mlir::TypeRange(type), operands, attributes)->getResult(0);
  }
  mlir::NamedAttribute integers(llvm::StringRef name, llvm::ArrayRef<int64_t> values) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
  }
  mlir::NamedAttribute number(llvm::StringRef name, double value) {
    return builder.getNamedAttr(name, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  // A name for random numbers of this call alone.
  std::string stream();

private:
  // Adds a regulariser of the config to what is minimised.
  void penalize(Value value, llvm::StringRef key);
  Value addVariable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::mt::InitKind kind,
                    std::optional<float> value, bool trainable);
  // Of variable number `index`.
  std::string pathOf(size_t index) const;
  std::pair<mlir::mt::InitKind, std::optional<float>> readInitializer(llvm::StringRef key);

  std::vector<Operand> args;
  std::vector<std::pair<std::string, Operand>> kwargs;
  std::deque<Operand> named; // keyword arguments that were read: pointers to them are out
  size_t nextVariable = 0, firstOfPart = 0;
  std::string partName, partWeights;
  std::optional<Value> mask; // once it was asked for
  bool maskGiven = false;
};

// While it lives, the builder reads the config of a layer or a cell inside its layer. What nobody has read of that when
// it ends is an error.
class InnerConfig {
public:
  InnerConfig(LayerBuilder &layer, const Json &config);
  ~InnerConfig();

private:
  LayerBuilder &layer;
  Config outer;
  const bool frozen;
};

} // namespace mtc::keras

#endif
