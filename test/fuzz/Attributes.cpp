// SPDX-License-Identifier: Apache-2.0
//
// Attributes and types of MLIR by a grammar, on an op of a small model: what is there besides the ops of `mt`. The
// reader says no, with a message, or gives a model that can be printed.
#include "frontend/mlir/ReadModel.h"
#include "test/fuzz/Choices.h"
#include "test/fuzz/Context.h"

namespace {

class Grammar {
public:
  explicit Grammar(Choices &choices) : choices(choices) {}

  std::string attribute(int depth = 4) {
    switch (choices.below(depth > 0 ? 16 : 6)) {
    case 0:
      return number() + typed();
    case 1:
      return choices.of(
          {"true", "false", "unit", "loc(unknown)", "@a", "@a::@b", "\"s\"", "\"\\FF\\00\"", "#mt", "#mt<x>"});
    case 2:
      return type(2);
    case 3:
      return "\"" + std::string(choices.of({"", "a", "0x00", "\\22"})) + "\" : " + type(2);
    case 4:
      return "array<" + element() + (choices.once(3) ? "" : ": " + numbers(",")) + ">";
    case 5:
      return "dense<" + elements(2) + "> : " + type(2);
    case 6:
      return "[" + many(depth, ", ") + "]";
    case 7:
      return "{a = " + attribute(depth - 1) + ", b" + (choices.once(2) ? " = " + attribute(depth - 1) : "") + "}";
    case 8:
      return "dense<" + elements(4) + "> : " + type(3);
    case 9:
      return location(depth);
    case 10:
      return "#mt." + std::string(choices.of({"init_kind", "compare", "x", "reduction"})) + "<" + attribute(0) + ">";
    case 11:
      return std::string(choices.of({"distinct", "sparse", "dense_resource", "opaque", "strided", "affine_map"})) +
             choices.of({"[0]", ""}) + "<" + many(1, ", ") + ">" + typed();
    case 12:
      return "#builtin." + std::string(choices.of({"int", "array", "dense", "dense_array"})) + "<" + number() + ">";
    case 13:
      return "#x.y<" + attribute(0) + ">";
    case 14:
      return type(depth);
    default:
      return "dense<\"0x" + hex() + "\"> : " + type(3);
    }
  }

  std::string type(int depth) {
    switch (choices.below(depth > 0 ? 12 : 2)) {
    case 0:
    case 1:
      return element();
    case 2:
      return "vector<" + shape(true) + element() + ">";
    case 3:
      return "memref<" + shape(false) + element() +
             choices.of({"", ", 1", ", strided<[1]>", ", strided<[?], offset: ?>"}) + ">";
    case 4:
      return "complex<" + type(depth - 1) + ">";
    case 5:
      return "tuple<" + type(depth - 1) + ", " + type(depth - 1) + ">";
    case 6:
      return "(" + type(depth - 1) + ") -> " + type(depth - 1);
    case 7:
      return choices.of({"!mt", "!mt.x", "!x.y<z>", "tensor<*xf32>", "none", "!builtin.integer", "()->()"});
    case 8:
      return "tensor<" + shape(false) + type(depth - 1) + ", " + attribute(1) + ">";
    default:
      return "tensor<" + shape(false) + type(depth - 1) + ">";
    }
  }

private:
  std::string element() {
    return choices.of({"f32",       "f64", "i1",       "i8",         "i32",      "i64",      "index",     "bf16", "f16",
                       "tf32",      "f80", "f128",     "ui8",        "si16",     "i0",       "i63",       "i64",  "i65",
                       "i16777215", "ui1", "f8E4M3FN", "f8E5M2FNUZ", "f4E2M1FN", "f6E2M3FN", "f8E8M0FNU", "none"});
  }
  std::string number() {
    return choices.of({"0", "1", "-1", "255", "0x7FC00000", "0xFFFFFFFFFFFFFFFF", "1.5", "-0.0", "1e400", "1e-400",
                       "18446744073709551615", "-9223372036854775808", "99999999999999999999999", "0x", "true"});
  }
  std::string typed() { return choices.once(3) ? "" : " : " + type(2); }
  std::string numbers(const char *between) {
    std::string text;
    for (size_t i = 0, count = choices.below(4); i < count; ++i)
      text += (i ? between : "") + number();
    return text;
  }
  std::string many(int depth, const char *between) {
    std::string text;
    for (size_t i = 0, count = choices.below(3); i < count; ++i)
      text += (i ? between : "") + attribute(depth - 1);
    return text;
  }
  std::string hex() {
    std::string text;
    for (size_t i = 0, count = choices.below(18); i < count; ++i)
      text += "0123456789ABCDEF"[choices.below(16)];
    return text;
  }
  std::string elements(int depth) {
    switch (choices.below(depth > 0 ? 6 : 2)) {
    case 0:
      return number();
    case 1:
      return choices.of({"", "\"0x\"", "\"0x00\"", "\"0x0000803F\"", "\"a\"", "@a", "[]"});
    case 2:
      return "(" + number() + ", " + number() + ")";
    case 3:
      return "\"0x" + hex() + "\"";
    default: {
      std::string text = "[";
      for (size_t i = 0, count = choices.below(4); i < count; ++i)
        text += (i ? ", " : "") + elements(depth - 1);
      return text + "]";
    }
    }
  }
  std::string shape(bool scalable) {
    std::string text;
    for (size_t i = 0, rank = choices.below(4); i < rank; ++i) {
      std::string size = choices.of({"0", "1", "2", "4", "?", "0x0", "99999999999999999999", "1099511627776"});
      text += (scalable && choices.once(4) ? "[" + size + "]" : size) + "x";
    }
    return text;
  }
  std::string location(int depth) {
    std::string name = choices.of({"unknown", "\"f\":1:2", "\"n\"", "\"f\":99999999999:1", "\"\":0:0"});
    if (depth < 1)
      return "loc(" + name + ")";
    auto inner = [&] {
      std::string text = location(depth - 2);
      return text.substr(4, text.size() - 5);
    };
    return "loc(" +
           std::string(choices.once(2)   ? "callsite(" + inner() + " at " + inner() + ")"
                       : choices.once(2) ? "fused<" + attribute(1) + ">[" + inner() + ", " + inner() + "]"
                                         : "\"n\"(" + inner() + ")") +
           ")";
  }

  Choices &choices;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Choices choices({data, size});
  Grammar grammar(choices);
  std::string f = grammar.attribute(), t = choices.once(4) ? grammar.type(3) : "tensor<4x4xf32>";
  std::string text = "mt.model @m {\n"
                     "  %x = mt.input \"x\" : tensor<?x4xf32>\n"
                     "  %y = mt.target \"y\" : tensor<?x4xf32>\n"
                     "  %w = mt.variable \"w\" init(zeros) : " +
                     t + "\n" + (choices.once(4) ? "  %c = mt.constant " + grammar.attribute() + "\n" : "") +
                     "  %z = mt.matmul %x, %w {f = " + f + "} : tensor<?x4xf32>, " + t +
                     (choices.once(4) ? " " + grammar.attribute(1) : "") +
                     "\n"
                     "  %l = mt.mean_squared_error %z, %y : tensor<?x4xf32>, tensor<?x4xf32>\n"
                     "  mt.loss \"loss\", %l : tensor<?xf32>\n"
                     "  mt.sgd <{learning_rate = 1.0e-2 : f32}>\n}\n";
  constexpr int64_t batch = 10;
  mlir::MLIRContext &context = sharedContext();
  mtc::DiagnosticLines diagnostics(context, "fuzz.mlir", nullptr);
  mlir::OwningOpRef<mlir::ModuleOp> module = mtc::readModel(text, "fuzz.mlir", batch, context, diagnostics);
  if (!module && diagnostics.errors().empty())
    __builtin_trap();
  if (module) {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->print(stream, mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
  }
  return 0;
}
