// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/LayerBuilder.h"

#include "frontend/keras/Precision.h"

using namespace mlir;

namespace mtc::keras {

Location locationOf(OpBuilder &builder, const Layer &layer) { return NameLoc::get(builder.getStringAttr(layer.name)); }

LayerBuilder::LayerBuilder(OpBuilder &builder, Layer &layer, std::vector<Operand> args,
                           std::vector<std::pair<std::string, Operand>> kwargs, bool hasWeights)
    : builder(builder), location(locationOf(builder, layer)), layer(layer),
      config(*layer.config, [this](const std::string &message) { emitError(location) << message; }),
      hasWeights(hasWeights), args(std::move(args)), kwargs(std::move(kwargs)) {
  if (!layer.inner.empty())
    partName = layer.inner + "/";
  // Names and shapes of the layer, which the graph already has.
  config.ignore(
      {"name", "trainable", "build_input_shape", "batch_input_shape", "batch_shape", "input_shape", "is_quantized"});
  config.expectAbsent({"kernel_constraint", "bias_constraint", "quantization_config", "lora_rank", "gptq_config"});
  if (const Json *dtype = config.find("dtype")) {
    const Json *policy = member(*dtype, "config");
    std::string name = dtype->is_string() ? dtype->get<std::string>()
                       : policy           ? textMember(*policy, "name")
                                          : describe(*dtype);
    if (name.empty()) // a policy of a kind without a name
      name = "a " + textMember(*dtype, "class_name");
    precision = precisionOf(name);
    if (precision.empty())
      config.error("expected dtype float32, mixed_bfloat16 or mixed_float16, found " + name +
                   ": build the model under keras.config.set_dtype_policy(\"float32\")");
  }
}

Value LayerBuilder::fail(const std::string &message) {
  config.error(message);
  return {};
}

bool LayerBuilder::finish(Value result) {
  if (result)
    penalize(result, "activity_regularizer");
  // After an error, options that the builder did not read are not reported.
  if (result || !config.failed())
    config.finish();
  // Keras serializes the defaults of a call's arguments. Other values would change the result.
  for (const auto &[name, operand] : kwargs)
    // The model sets the training flag, whatever value the call was traced with.
    if (name == "training" && operand.constant && operand.constant->is_boolean())
      continue;
    else if (operand.tensor || !operand.list.empty() || !operand.constant || !operand.constant->is_null())
      fail("expected a call without " + name + ", found " +
           (operand.tensor ? "a tensor" : describe(*operand.constant)) + ", which is not supported");
  return !config.failed();
}

Value LayerBuilder::input(int64_t rank) {
  // Some layers take their single tensor in a list.
  const Operand *operand = args.size() == 1 ? &args[0] : nullptr;
  if (operand && !operand->tensor && operand->list.size() == 1)
    operand = &operand->list[0];
  if (!operand || !operand->tensor)
    return fail("expected a call with one tensor, found " + std::to_string(args.size()) + " arguments");
  if (int64_t found = typeOf(operand->tensor).getRank(); rank >= 0 && found != rank)
    return fail("expected an input of " + std::to_string(rank) + " axes with the batch, found " +
                std::to_string(found));
  return operand->tensor;
}

SmallVector<Value> LayerBuilder::inputs(size_t least) {
  SmallVector<Value> tensors;
  for (const Operand &operand : args.size() == 1 && !args[0].tensor ? llvm::ArrayRef(args[0].list) : arguments())
    if (operand.tensor)
      tensors.push_back(operand.tensor);
    else
      fail("expected a list of tensors, found something else in it");
  if (tensors.size() < least && !config.failed())
    fail("expected " + std::to_string(least) + " tensors or more, found " + std::to_string(tensors.size()));
  return config.failed() ? SmallVector<Value>() : tensors;
}

const Operand *LayerBuilder::keyword(llvm::StringRef name) {
  for (auto &[key, operand] : kwargs)
    if (key == name) {
      static const Json null;
      named.push_back(std::move(operand)); // kept alive, and no longer counted as unread
      operand = Operand{{}, {}, &null};
      return named.back().constant && named.back().constant->is_null() ? nullptr : &named.back();
    }
  return nullptr;
}

Value LayerBuilder::inputMask() {
  if (mask)
    return *mask;
  mask = Value();
  // The file has null for a mask that came with the tensor.
  const Operand *given = keyword("mask");
  maskGiven = given && given->tensor;
  if (maskGiven)
    mask = given->tensor;
  else if (SmallVector<Value> all = masks(); !all.empty())
    mask = all[0];
  if (*mask && (!typeOf(*mask).getElementType().isInteger(1) || typeOf(*mask).getRank() != 2))
    fail("expected a mask of one flag for each step of a sample, found another");
  return *mask;
}

SmallVector<Value> LayerBuilder::masks() const {
  SmallVector<Value> masks;
  if (!args.empty() && args[0].tensor)
    masks.push_back(args[0].mask);
  else if (!args.empty())
    for (const Operand &operand : args[0].list)
      masks.push_back(operand.mask);
  return masks;
}

InnerConfig::InnerConfig(LayerBuilder &layer, const Json &config)
    : layer(layer), outer(layer.config), frozen(layer.layer.frozen) {
  // Errors are reported with the name of the outer layer.
  Config *reported = &outer;
  layer.config = Config(config, [reported](const std::string &message) { reported->error(message); });
  layer.config.ignore({"name", "dtype", "build_input_shape", "batch_input_shape"});
  const Json *trainable = layer.config.find("trainable");
  layer.layer.frozen |= trainable && *trainable == false;
}

InnerConfig::~InnerConfig() {
  if (!layer.config.failed())
    layer.config.finish();
  layer.config = outer;
  layer.layer.frozen = frozen;
}

int64_t LayerBuilder::size(llvm::StringRef key, int64_t limit) {
  int64_t value = config.integer(key);
  if (value >= 1 && value <= limit)
    return value;
  fail("expected " + key.str() + " from 1 to " + std::to_string(limit) + ", found " + std::to_string(value));
  return 1;
}

SmallVector<int64_t> LayerBuilder::sizes(llvm::StringRef key, int64_t count, int64_t limit, int64_t least) {
  SmallVector<int64_t> values = config.integers(key, count);
  for (int64_t &value : values)
    if (value < least || value > limit) {
      fail("expected " + key.str() + " from " + std::to_string(least) + " to " + std::to_string(limit) + ", found " +
           std::to_string(value));
      value = least;
    }
  return values;
}

void LayerBuilder::expectChannelsLast() {
  if (const Json *format = config.find("data_format"); format && *format != "channels_last")
    config.error(
        "expected data_format channels_last, found " + describe(*format) +
        ": build the model with channels last, and images in that order (keras.layers.Permute((2, 3, 1)) moves them)");
}

static bool isChannelsFirst(Config &config) {
  const Json *format = config.find("data_format");
  if (format && *format != "channels_last" && *format != "channels_first")
    config.error("expected data_format channels_last or channels_first, found " + describe(*format));
  return format && *format == "channels_first";
}

Value LayerBuilder::channelsLast(Value input) {
  if (!isChannelsFirst(config) || !input || typeOf(input).getRank() < 3)
    return input;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(input).getRank()));
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return mt::TransposeOp::create(builder, location, input, order);
}

Value LayerBuilder::ownOrder(Value result) {
  if (!isChannelsFirst(config) || !result || typeOf(result).getRank() < 3)
    return result;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(result).getRank()));
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return mt::TransposeOp::create(builder, location, result, order);
}

std::pair<mt::InitKind, std::optional<float>> LayerBuilder::readInitializer(llvm::StringRef key) {
  const Json *value = config.find(key);
  if (!value)
    return {mt::InitKind::zeros, {}};
  std::string name = value->is_string() ? value->get<std::string>() : textMember(*value, "class_name");
  const Json *options = member(*value, "config");
  static constexpr std::pair<const char *, mt::InitKind> kinds[] = {{"Zeros", mt::InitKind::zeros},
                                                                    {"zeros", mt::InitKind::zeros},
                                                                    {"Ones", mt::InitKind::ones},
                                                                    {"ones", mt::InitKind::ones},
                                                                    {"GlorotUniform", mt::InitKind::glorot_uniform},
                                                                    {"glorot_uniform", mt::InitKind::glorot_uniform},
                                                                    {"GlorotNormal", mt::InitKind::glorot_normal},
                                                                    {"glorot_normal", mt::InitKind::glorot_normal},
                                                                    {"HeUniform", mt::InitKind::he_uniform},
                                                                    {"he_uniform", mt::InitKind::he_uniform},
                                                                    {"HeNormal", mt::InitKind::he_normal},
                                                                    {"he_normal", mt::InitKind::he_normal},
                                                                    {"LecunUniform", mt::InitKind::lecun_uniform},
                                                                    {"lecun_uniform", mt::InitKind::lecun_uniform},
                                                                    {"LecunNormal", mt::InitKind::lecun_normal},
                                                                    {"lecun_normal", mt::InitKind::lecun_normal}};
  for (auto [known, kind] : kinds)
    if (name == known)
      return {kind, {}};
  if (name == "Constant")
    if (const Json *number = options ? member(*options, "value") : nullptr; number && number->is_number())
      return {mt::InitKind::constant, number->get<float>()};
  // An initializer is needed only for a model without weights.
  if (!hasWeights)
    fail("expected " + key.str() +
         " to be one of Zeros, Ones, Constant, GlorotUniform, GlorotNormal, HeUniform, HeNormal, "
         "LecunUniform and LecunNormal, found " +
         describe(*value) + ": save the model with its weights, as model.keras");
  return {mt::InitKind::zeros, {}};
}

Value LayerBuilder::variable(llvm::StringRef name, ArrayRef<int64_t> shape, llvm::StringRef initializer,
                             bool trainable) {
  auto [kind, value] = readInitializer(initializer);
  bool first = nextVariable >= layer.variables.size();
  Value result = addVariable(name, shape, kind, value, trainable);
  llvm::StringRef stem = initializer;
  if (stem.consume_back("_initializer")) {
    std::string key = (stem + "_regularizer").str();
    // One regularizer per variable, even if the layer is called several times; none if the layer is frozen.
    if (first && result && !layer.frozen)
      penalize(result, key);
    else
      config.ignore({key});
  }
  return result;
}

void LayerBuilder::skipVariable() {
  size_t index = nextVariable++;
  if (index >= layer.variables.size())
    layer.variables.push_back({"", pathOf(index), Value(), false});
}

void LayerBuilder::part(llvm::StringRef name, llvm::StringRef weights) {
  firstOfPart = nextVariable;
  partName = name.str() + "/";
  partWeights = "/" + weights.str();
}

std::string LayerBuilder::pathOf(size_t index) const {
  return layer.weights + partWeights + "/vars/" + std::to_string(index - firstOfPart);
}

Value LayerBuilder::constantVariable(llvm::StringRef name, ArrayRef<int64_t> shape, float value, bool trainable) {
  return addVariable(name, shape, mt::InitKind::constant, value, trainable);
}

Value LayerBuilder::addVariable(llvm::StringRef name, ArrayRef<int64_t> shape, mt::InitKind kind,
                                std::optional<float> value, bool trainable) {
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  size_t index = nextVariable++;
  if (index < layer.variables.size()) {
    Value known = layer.variables[index].value;
    if (!known)
      return fail("expected the same variables in every call of the layer");
    if (known.getType() != type)
      return fail("expected the same shapes in every call of the layer, found another for its " + name.str());
    return known;
  }
  std::string full = layer.scope + layer.name + "/" + partName + name.str();
  bool frozen = layer.frozen || !trainable;
  auto op = mt::VariableOp::create(builder, location, type, full, kind,
                                   value ? builder.getF32FloatAttr(*value) : FloatAttr(), frozen);
  layer.variables.push_back({full, pathOf(index), op.getResult(), trainable});
  return op.getResult();
}

void LayerBuilder::penalize(Value value, llvm::StringRef key) {
  const Json *given = config.find(key);
  if (!given)
    return;
  std::string name = textMember(*given, "class_name");
  const Json *options = member(*given, "config");
  if (!options || (name != "L1" && name != "L2" && name != "L1L2"))
    return config.error("expected " + key.str() + " to be L1, L2 or L1L2, found " + describe(*given));
  Config amounts(*options, [&](const std::string &message) { config.error(key.str() + ": " + message); });
  NamedAttribute attributes[] = {number("l1", amounts.real("l1", 0)), number("l2", amounts.real("l2", 0))};
  amounts.finish();
  mt::RegularizerOp::create(builder, location, TypeRange(), ValueRange(value), attributes);
}

Value LayerBuilder::addBias(Value value, int64_t units) {
  if (!config.boolean("use_bias", true)) {
    config.ignore({"bias_initializer", "bias_regularizer"});
    return value;
  }
  Value bias = variable("bias", {units}, "bias_initializer");
  return bias ? binary<mt::AddOp>(value, bias) : bias;
}

Value LayerBuilder::constant(DenseElementsAttr value) {
  return mt::ConstantOp::create(builder, location, value.getType(), value);
}

std::string LayerBuilder::stream() {
  std::string name = layer.scope + layer.name;
  return layer.streams++ ? name + "#" + std::to_string(layer.streams - 1) : name;
}

Value LayerBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  return type == value.getType() ? value : mt::ReshapeOp::create(builder, location, type, value).getResult();
}

Value LayerBuilder::toFloat(Value value) {
  if (!value || typeOf(value).getElementType().isF32())
    return value;
  return mt::CastOp::create(builder, location, typeOf(value).clone(builder.getF32Type()), value);
}

Value LayerBuilder::toFloat(const Operand &operand) {
  if (operand.tensor)
    return toFloat(operand.tensor);
  if (isArray(operand)) {
    Value values = array(operand);
    return values && typeOf(values).getElementType().isInteger(1)
               ? mt::CastOp::create(builder, location, typeOf(values).clone(builder.getF32Type()), values).getResult()
               : values;
  }
  if (!operand.constant || !operand.constant->is_number())
    return fail("expected tensors, numbers and arrays, found something else");
  auto type = RankedTensorType::get({}, builder.getF32Type());
  return constant(DenseElementsAttr::get(type, operand.constant->get<float>()));
}

bool LayerBuilder::isArray(const Operand &operand) {
  std::string name = operand.constant && !operand.tensor ? textMember(*operand.constant, "class_name") : "";
  return name == "__numpy__" || name == "__tensor__";
}

// Flattens nested lists of equal lengths.
static bool readElements(const Json &value, size_t depth, SmallVectorImpl<int64_t> &shape,
                         std::vector<float> &elements) {
  constexpr size_t maxAxes = 8, maxElements = size_t{1} << 24;
  if (!value.is_array()) {
    if (depth != shape.size() || elements.size() == maxElements || !(value.is_number() || value.is_boolean()))
      return false;
    elements.push_back(value.is_boolean() ? static_cast<float>(value.get<bool>()) : value.get<float>());
    return true;
  }
  auto size = static_cast<int64_t>(value.size());
  if (depth == shape.size() && depth < maxAxes && elements.empty() && size > 0)
    shape.push_back(size);
  return depth < shape.size() && shape[depth] == size &&
         llvm::all_of(value, [&](const Json &item) { return readElements(item, depth + 1, shape, elements); });
}

Value LayerBuilder::array(const Operand &operand, bool keepOnes) {
  const Json *config = member(*operand.constant, "config");
  const Json *value = config ? member(*config, "value") : nullptr;
  SmallVector<int64_t> shape;
  std::vector<float> elements;
  if (!value || !readElements(*value, 0, shape, elements))
    return fail("expected an array of numbers of at most 8 axes and 2^24 elements, found " +
                describe(*operand.constant));
  std::string dtype = textMember(*config, "dtype");
  if (textMember(*operand.constant, "class_name") == "__tensor__" && dtype.starts_with("float") && elements.size() > 1)
    emitWarning(location) << "takes a constant of " << elements.size()
                          << " numbers that Keras computed while the model was built, and that no training changes; "
                             "for positions that are learnt, call "
                             "Embedding on ops.zeros_like(ids) + ops.arange(length), and for a head that shares the "
                             "table of an embedding, ReversibleEmbedding";
  while (!keepOnes && !shape.empty() && shape[0] == 1)
    shape.erase(shape.begin());
  if (dtype != "bool")
    return constant(
        DenseElementsAttr::get(RankedTensorType::get(shape, builder.getF32Type()), ArrayRef<float>(elements)));
  SmallVector<bool> flags;
  for (float element : elements)
    flags.push_back(element != 0);
  return constant(DenseElementsAttr::get(RankedTensorType::get(shape, builder.getI1Type()), ArrayRef<bool>(flags)));
}

bool LayerBuilder::standBesideBatch(ArrayRef<Value> values) {
  int64_t rank = 0;
  for (Value value : values)
    if (!typeOf(value).hasStaticShape())
      rank = std::max(rank, typeOf(value).getRank());
  for (Value value : values)
    if (typeOf(value).hasStaticShape() && typeOf(value).getRank() >= rank && rank > 0) {
      fail("expected a constant of fewer axes than the tensor, whose first is the batch, found " +
           std::to_string(typeOf(value).getRank()) + " and " + std::to_string(rank));
      return false;
    }
  return true;
}

} // namespace mtc::keras
