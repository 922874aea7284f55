// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;
using Numbers = SmallVector<int64_t>;

Attribute opaque(Builder &builder, const std::string &text) {
  return OpaqueAttr::get(builder.getStringAttr("stablehlo"), text, builder.getNoneType());
}

// The text of one op.
class OpText {
public:
  OpText(OpAsmParser &parser, OperationState &state)
      : parser(parser), state(state), builder(parser.getBuilder()), name(state.name.stripDialect()) {}

  ParseResult parse() {
    if (name == "constant")
      return constant();
    if (name == "reduce")
      return reduce();
    if (name == "while")
      return loop();
    if (name == "convolution")
      return convolution();
    if (name == "custom_call" || name == "composite")
      return named();
    return plain();
  }

private:
  // Operands, words and attributes with commas in between, as in "LT, %0, %1, SIGNED : types".
  ParseResult plain() {
    Operands operands;
    if (failed(items(operands)))
      return failure();
    return finish(operands);
  }

  ParseResult items(Operands &operands) {
    bool round = succeeded(parser.parseOptionalLParen());
    do {
      OpAsmParser::UnresolvedOperand operand;
      std::string word;
      if (OptionalParseResult found = parser.parseOptionalOperand(operand); found.has_value()) {
        if (failed(*found))
          return failure();
        operands.push_back(operand);
        if (name == "slice" && failed(ranges()))
          return failure();
      } else if (succeeded(parser.parseOptionalKeywordOrString(&word))) {
        if (failed(parser.parseOptionalEqual()))
          enumeration(word);
        else if (failed(setting(word)))
          return failure();
      } else {
        break;
      }
    } while (succeeded(parser.parseOptionalComma()));
    return round ? parser.parseRParen() : success();
  }

  void enumeration(const std::string &word) {
    if (name != "compare")
      return;
    if (!state.attributes.get("comparison_direction"))
      state.addAttribute("comparison_direction", opaque(builder, "comparison_direction " + word));
    else if (!state.attributes.get("compare_type"))
      state.addAttribute("compare_type", opaque(builder, "comparison_type " + word));
  }

  // [1, 2]. Words in it are left out, as those of [DEFAULT, DEFAULT].
  ParseResult list(Numbers &numbers) {
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
      int64_t number = 0;
      if (StringRef word; succeeded(parser.parseOptionalKeyword(&word)))
        return success();
      numbers.emplace_back();
      OptionalParseResult found = parser.parseOptionalInteger(number);
      numbers.back() = number;
      return found.has_value() ? *found : parser.emitError(parser.getCurrentLocation(), "expected an integer");
    });
  }

  // What stands behind "dims =".
  ParseResult setting(StringRef key) {
    static constexpr std::pair<StringRef, StringRef> lists[] = {{"low", "edge_padding_low"},
                                                                {"high", "edge_padding_high"},
                                                                {"interior", "interior_padding"},
                                                                {"sizes", "slice_sizes"}};
    int64_t number = 0;
    if (OptionalParseResult found = parser.parseOptionalInteger(number); found.has_value()) {
      state.addAttribute(name.ends_with("iota") ? "iota_dimension"
                         : key == "dim"         ? "dimension"
                                                : key,
                         builder.getI64IntegerAttr(number));
      return *found;
    }
    if (std::string word; succeeded(parser.parseOptionalKeywordOrString(&word)))
      return success();
    Numbers numbers, others;
    if (failed(list(numbers)))
      return failure();
    if (key == "batching_dims" || key == "contracting_dims") {
      if (failed(parser.parseKeyword("x")) || failed(list(others)))
        return failure();
      pairs(key == "batching_dims" ? "batching" : "contracting", numbers, others);
    } else if (key == "dims") {
      state.addAttribute(name == "transpose"                  ? "permutation"
                         : name.ends_with("broadcast_in_dim") ? "broadcast_dimensions"
                                                              : "dimensions",
                         builder.getDenseI64ArrayAttr(numbers));
    } else {
      const auto *found = llvm::find_if(lists, [&](const auto &entry) { return entry.first == key; });
      state.addAttribute(found == std::end(lists) ? key : found->second, builder.getDenseI64ArrayAttr(numbers));
    }
    return success();
  }

  static std::string textOf(StringRef key, const Numbers &numbers) {
    std::string text = (key + " = [").str();
    for (auto [index, number] : llvm::enumerate(numbers))
      text += (index ? ", " : "") + std::to_string(number);
    return text + "]";
  }
  void pairs(const std::string &kind, const Numbers &left, const Numbers &right) {
    products += (products.empty() ? "" : ", ") + textOf("lhs_" + kind + "_dimensions", left) + ", " +
                textOf("rhs_" + kind + "_dimensions", right);
  }

  // [0:64, 1:3:2]
  ParseResult ranges() {
    Numbers starts, limits, strides;
    if (failed(parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
          starts.emplace_back(), limits.emplace_back(), strides.push_back(1);
          if (failed(parser.parseInteger(starts.back())) || failed(parser.parseColon()) ||
              failed(parser.parseInteger(limits.back())))
            return failure();
          return succeeded(parser.parseOptionalColon()) ? parser.parseInteger(strides.back()) : success();
        })))
      return failure();
    state.addAttribute("start_indices", builder.getDenseI64ArrayAttr(starts));
    state.addAttribute("limit_indices", builder.getDenseI64ArrayAttr(limits));
    state.addAttribute("strides", builder.getDenseI64ArrayAttr(strides));
    return success();
  }

  // Attributes and types, which end an op without regions.
  ParseResult finish(const Operands &operands) {
    if (name == "dot_general")
      state.addAttribute("dot_dimension_numbers", opaque(builder, "dot<" + products + ">"));
    SmallVector<Type> from, to;
    if (failed(parser.parseOptionalAttrDict(state.attributes)) || failed(types(operands.size(), from, to)))
      return failure();
    state.addTypes(to);
    return parser.resolveOperands(operands, from, parser.getCurrentLocation(), state.operands);
  }

  // ": (a, b) -> c", ": a -> b", or the types of the operands: of all the same one, or a list.
  ParseResult types(size_t operands, SmallVectorImpl<Type> &from, SmallVectorImpl<Type> &to) {
    if (failed(parser.parseOptionalColon()))
      return operands ? parser.emitError(parser.getCurrentLocation(), "expected types of the operands") : success();
    if (failed(parser.parseTypeList(from)))
      return failure();
    if (auto function = dyn_cast<FunctionType>(from[0])) {
      to.assign(function.getResults().begin(), function.getResults().end());
      from.assign(function.getInputs().begin(), function.getInputs().end());
    } else if (succeeded(parser.parseOptionalArrow())) {
      if (failed(parser.parseTypeList(to)))
        return failure();
    } else if (name == "select" && from.size() == 2) {
      to.push_back(from[1]);
      from.push_back(from[1]);
    } else if (name != "return") {
      if (from.size() == 1 && operands != 1 && name != "optimization_barrier") {
        to.push_back(from[0]);
        from.assign(operands, to[0]);
      } else {
        to.assign(from.begin(), from.end());
      }
    }
    return success();
  }

  ParseResult constant() {
    Attribute value;
    if (failed(parser.parseOptionalAttrDict(state.attributes)) || failed(parser.parseAttribute(value)))
      return failure();
    auto elements = dyn_cast<ElementsAttr>(value);
    if (!elements)
      return parser.emitError(parser.getNameLoc(), "expected a constant of elements");
    state.addAttribute("value", value);
    state.addTypes(elements.getType());
    return success();
  }

  // "@callee(%0)" or "\"name\" %0".
  ParseResult named() {
    StringAttr target;
    std::string text;
    if (name == "custom_call") {
      if (failed(parser.parseSymbolName(target)))
        return failure();
      state.addAttribute("call_target_name", builder.getStringAttr(target.getValue()));
    } else if (succeeded(parser.parseOptionalString(&text))) {
      state.addAttribute("name", builder.getStringAttr(text));
    }
    return plain();
  }

  // "(%0 init: %1), (%2 init: %3) across dimensions = [1] : types reducer(...) (...) { ... }", or of one value "applies
  // OP" in place of the reducer.
  ParseResult reduce() {
    Operands values, starts;
    do {
      if (failed(parser.parseLParen()) || failed(parser.parseOperand(values.emplace_back())) ||
          failed(parser.parseKeyword("init")) || failed(parser.parseColon()) ||
          failed(parser.parseOperand(starts.emplace_back())) || failed(parser.parseRParen()))
        return failure();
    } while (succeeded(parser.parseOptionalComma()));
    std::string applied;
    if (succeeded(parser.parseOptionalKeyword("applies"))) {
      StringRef word;
      if (failed(parser.parseKeyword(&word)))
        return failure();
      applied = word.str();
    }
    Numbers axes;
    if (failed(parser.parseKeyword("across")) || failed(parser.parseKeyword("dimensions")) ||
        failed(parser.parseEqual()) || failed(list(axes)))
      return failure();
    state.addAttribute("dimensions", builder.getDenseI64ArrayAttr(axes));
    llvm::append_range(values, starts);
    if (failed(finish(values)))
      return failure();
    Region *region = state.addRegion();
    return applied.empty() ? reducer(*region, starts.size()) : apply(*region, applied);
  }

  ParseResult apply(Region &region, const std::string &op) {
    if (state.operands.size() != 2 || !StringRef(op).starts_with("stablehlo."))
      return parser.emitError(parser.getNameLoc(), "expected one value to reduce");
    Type type = state.operands[1].getType();
    Block &block = region.emplaceBlock();
    OpBuilder inner(builder.getContext());
    inner.setInsertionPointToStart(&block);
    BlockArgument a = block.addArgument(type, state.location), b = block.addArgument(type, state.location);
    Operation *made = inner.create(state.location, builder.getStringAttr(op), ValueRange{a, b}, type);
    inner.create(state.location, builder.getStringAttr("stablehlo.return"), made->getResults());
    return success();
  }

  // The text has pairs of arguments for each value; the block has the first ones of all pairs before the others.
  ParseResult reducer(Region &region, size_t count) {
    SmallVector<OpAsmParser::Argument> pairs[2];
    if (failed(parser.parseKeyword("reducer")))
      return failure();
    for (size_t i = 0; i < count; ++i) {
      SmallVector<OpAsmParser::Argument> pair;
      if (failed(parser.parseArgumentList(pair, OpAsmParser::Delimiter::Paren, /*allowType=*/true)))
        return failure();
      if (pair.size() != 2)
        return parser.emitError(parser.getCurrentLocation(), "expected two arguments for each value");
      for (int side : {0, 1})
        pairs[side].push_back(pair[side]);
    }
    llvm::append_range(pairs[0], pairs[1]);
    return parser.parseRegion(region, pairs[0]);
  }

  // "(%i = %0, %j = %1) : types attributes {...} cond { ... } do { ... }"
  ParseResult loop() {
    SmallVector<OpAsmParser::Argument> arguments;
    Operands operands;
    if (failed(parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
          if (failed(parser.parseArgument(arguments.emplace_back())) || failed(parser.parseEqual()))
            return failure();
          return parser.parseOperand(operands.emplace_back());
        })))
      return failure();
    SmallVector<Type> held;
    if (!operands.empty() && (failed(parser.parseColon()) || failed(parser.parseTypeList(held))))
      return failure();
    if (held.size() != operands.size())
      return parser.emitError(parser.getCurrentLocation(), "expected a type for each operand");
    for (auto [argument, type] : llvm::zip(arguments, held))
      argument.type = type;
    state.addTypes(held);
    if (failed(parser.resolveOperands(operands, held, parser.getCurrentLocation(), state.operands)) ||
        failed(parser.parseOptionalAttrDictWithKeyword(state.attributes)))
      return failure();
    for (const char *word : {"cond", "do"})
      if (failed(parser.parseKeyword(word)) || failed(parser.parseRegion(*state.addRegion(), arguments)))
        return failure();
    return success();
  }

  // "(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]], ...} {...} : types"
  ParseResult convolution() {
    Operands operands;
    std::string numbers;
    if (failed(parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren)) ||
        failed(parser.parseKeyword("dim_numbers")) || failed(parser.parseEqual()) || failed(axes(numbers)) ||
        failed(parser.parseKeyword("x")) || failed(axes(numbers)) || failed(parser.parseArrow()) ||
        failed(axes(numbers)) || failed(parser.parseComma()) || failed(parser.parseKeyword("window")) ||
        failed(parser.parseEqual()) || failed(parser.parseLBrace()))
      return failure();
    state.addAttribute("dimension_numbers", opaque(builder, "conv<" + numbers + ">"));
    if (failed(parser.parseOptionalRBrace())) {
      if (failed(parser.parseCommaSeparatedList([&] { return window(); })) || failed(parser.parseRBrace()))
        return failure();
    }
    return finish(operands);
  }

  ParseResult axes(std::string &text) {
    text += text.empty() ? "[" : "x[";
    bool first = true;
    if (failed(parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
          StringRef letter;
          int64_t number = 0;
          text += first ? "" : ", ";
          first = false;
          OptionalParseResult found = parser.parseOptionalInteger(number);
          if (!found.has_value() && failed(parser.parseKeyword(&letter)))
            return failure();
          text += found.has_value() ? std::to_string(number) : letter.str();
          return success();
        })))
      return failure();
    text += "]";
    return success();
  }

  ParseResult window() {
    StringRef key;
    Numbers numbers;
    if (failed(parser.parseKeyword(&key)) || failed(parser.parseEqual()))
      return failure();
    if (key == "reverse") {
      SmallVector<bool> flags;
      if (failed(parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
            flags.push_back(succeeded(parser.parseOptionalKeyword("true")));
            return flags.back() ? success() : parser.parseKeyword("false");
          })))
        return failure();
      state.addAttribute("window_reversal", builder.getDenseBoolArrayAttr(flags));
      return success();
    }
    bool pads = key == "pad";
    if (failed(pads ? parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] { return list(numbers); })
                    : list(numbers)))
      return failure();
    state.addAttribute(pads                  ? "padding"
                       : key == "stride"     ? "window_strides"
                       : key == "lhs_dilate" ? "lhs_dilation"
                                             : "rhs_dilation",
                       builder.getDenseI64ArrayAttr(numbers));
    return success();
  }

  OpAsmParser &parser;
  OperationState &state;
  Builder &builder;
  StringRef name;
  std::string products; // of dot_general
};

ParseResult parseOp(OpAsmParser &parser, OperationState &state) { return OpText(parser, state).parse(); }

template <int number> class TextDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TextDialect)
  explicit TextDialect(MLIRContext *context) : Dialect(getDialectNamespace(), context, TypeID::get<TextDialect>()) {
    allowUnknownOperations();
  }
  static StringRef getDialectNamespace() {
    constexpr StringRef names[] = {"stablehlo", "chlo", "mhlo"};
    return names[number];
  }
  std::optional<ParseOpHook> getParseOperationHook(StringRef) const override { return ParseOpHook(parseOp); }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    Builder &builder = parser.getBuilder();
    return OpaqueAttr::get(builder.getStringAttr(getNamespace()), parser.getFullSymbolSpec(), builder.getNoneType());
  }
  Type parseType(DialectAsmParser &parser) const override {
    return OpaqueType::get(parser.getBuilder().getStringAttr(getNamespace()), parser.getFullSymbolSpec());
  }
};

} // namespace

void loadTextDialects(MLIRContext &context) {
  context.loadDialect<func::FuncDialect, TextDialect<0>, TextDialect<1>, TextDialect<2>>();
}

} // namespace mtc::stablehlo
