// SPDX-License-Identifier: Apache-2.0
//
// The interface of a layer's builder: one call of the layer. A builder is a small function that reads the config,
// builds ops and returns the result, or null after an error. `LayerTable.h` has the table of builders.
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
  std::vector<std::string> keys = {}; // keys of a dictionary, whose values are in `list`
  mlir::Value mask = {};              // mask of the tensor's steps that exist, [?, T]; null: all
};

constexpr int64_t batch = mlir::ShapedType::kDynamic; // the size of the batch axis
constexpr int64_t maxUnits = int64_t{1} << 31;        // largest width of a layer
constexpr int64_t maxFactor = int64_t{1} << 20;       // largest kernel, stride, padding or repetition

// A location with the name of the layer.
mlir::Location locationOf(mlir::OpBuilder &builder, const Layer &layer);

class LayerBuilder {
public:
  using Value = mlir::Value;

  LayerBuilder(mlir::OpBuilder &builder, Layer &layer, std::vector<Operand> args,
               std::vector<std::pair<std::string, Operand>> kwargs, bool hasWeights);

  mlir::OpBuilder &builder;
  mlir::Location location; // with the name of the layer
  Layer &layer;
  Config config;
  llvm::StringRef precision = "f32"; // of the layer's dtype policy
  const bool hasWeights;             // the file has the values of all variables
  mlir::SmallVector<Value> others;   // results of the call after the first one
  Value outputMask;                  // mask of the first result; null: none

  // Emits an error at the layer, and returns null.
  Value fail(const std::string &message);
  // Finishes the call with `result`; returns whether all options and keyword arguments were read and valid.
  bool finish(Value result);

  // The single tensor of the call; emits an error and returns null if there is another number of tensors, or if its
  // rank is not `rank`.
  Value input(int64_t rank = -1);
  // The tensors of a single list, at least `least`.
  mlir::SmallVector<Value> inputs(size_t least = 1);
  llvm::ArrayRef<Operand> arguments() const { return args; }
  // The mask of the first tensor of the call, or the keyword argument `mask`; null: none.
  Value inputMask();
  bool readsMask() const { return mask.has_value(); }
  // Whether the mask is the keyword argument.
  bool isMaskGiven() const { return maskGiven; }
  // The masks of the tensors of the first argument; null: none.
  mlir::SmallVector<Value> masks() const;
  // A keyword argument; null if it is missing or null.
  const Operand *keyword(llvm::StringRef name);

  // An option with sizes from 1 to a limit.
  int64_t size(llvm::StringRef key, int64_t limit = maxUnits);
  mlir::SmallVector<int64_t> sizes(llvm::StringRef key, int64_t count, int64_t limit = maxFactor, int64_t least = 1);
  // Checks that `data_format` is channels_last.
  void expectChannelsLast();
  // An input of the layer with its channels last, whatever `data_format` says, and a result in the layer's own order.
  // Both keep null.
  Value channelsLast(Value input);
  Value ownOrder(Value result);

  // The layer's next variable, in Keras' order in files: trainable variables come first. Created by the first call of
  // the layer. `initializer` is a key of the config, or "" for zeros.
  Value variable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, llvm::StringRef initializer,
                 bool trainable = true);
  // The following variables belong to a layer inside of this one: `name` is added to their names, `weights` to their
  // paths in the file.
  void part(llvm::StringRef name, llvm::StringRef weights);
  // Skips a variable of the file that the model does not use.
  void skipVariable();
  // A variable that is initialized with a constant.
  Value constantVariable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, float value, bool trainable);

  // x + bias, if use_bias is set.
  Value addBias(Value value, int64_t units);

  mlir::mt::Expr expr(Value value) { return {builder, location, value}; }
  static mlir::RankedTensorType typeOf(Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  static llvm::ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }
  Value constant(mlir::DenseElementsAttr value);
  Value reshape(Value value, llvm::ArrayRef<int64_t> shape);
  // Converts integers to floats.
  Value toFloat(Value value);
  // A tensor, or a number or an array as a constant; emits an error and returns null for anything else.
  Value toFloat(const Operand &operand);
  // Whether an operand is an array of NumPy or of Keras' back end.
  static bool isArray(const Operand &operand);
  // The elements of an array as f32 or i1, without leading axes of size 1 unless `keepOnes`; emits an error and returns
  // null if the operand is not an array of numbers.
  Value array(const Operand &operand, bool keepOnes = false);
  // Emits an error and returns false if a constant would broadcast along the batch axis of the others.
  bool standBesideBatch(llvm::ArrayRef<Value> values);
  // An op with two operands that broadcast; emits an error and returns null if the shapes do not match.
  template <typename Op> Value binary(Value a, Value b) {
    llvm::SmallVector<mlir::Type> types;
    if (!a || !b || !standBesideBatch({a, b}) ||
        mlir::failed(Op::inferReturnTypes(builder.getContext(), location, mlir::ValueRange{a, b},
                                          mlir::DictionaryAttr(), nullptr, mlir::RegionRange(), types)))
      return {};
    return Op::create(builder, location, types[0], a, b);
  }

  // An op whose type is inferred from its operands and attributes; emits an error and returns null if that fails.
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
  // An op of a given type, which the verifier checks later.
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
  // Name of a stream of random numbers for this call alone.
  std::string stream();

private:
  // Adds a regularizer of the config to the loss.
  void penalize(Value value, llvm::StringRef key);
  Value addVariable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::mt::InitKind kind,
                    std::optional<float> value, bool trainable);
  // Path of variable number `index`.
  std::string pathOf(size_t index) const;
  std::pair<mlir::mt::InitKind, std::optional<float>> readInitializer(llvm::StringRef key);

  std::vector<Operand> args;
  std::vector<std::pair<std::string, Operand>> kwargs;
  std::deque<Operand> named; // keyword arguments that were read; pointers to them are in use
  size_t nextVariable = 0, firstOfPart = 0;
  std::string partName, partWeights;
  std::optional<Value> mask; // set by the first query
  bool maskGiven = false;
};

// While an object of this class lives, the builder reads the config of a layer or cell inside of its layer. The
// destructor emits an error for options that were not read.
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
