// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Prescan.h"

#include "dialects/mt/Numbers.h"
#include "frontend/Formats.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;
using llvm::Twine;

namespace mtc {
namespace {

constexpr unsigned maxIntegerBits = 64;
constexpr llvm::StringLiteral arrayElements[] = {"i1", "i8", "i16", "i32", "i64", "f32", "f64"};

class Scanner {
public:
  Scanner(StringRef text, StringRef name, bool isDouble) : text(text), name(name), isDouble(isDouble) {}

  std::string run() {
    while (at < text.size() && problem.empty())
      step();
    return problem;
  }

private:
  char next() const { return at + 1 < text.size() ? text[at + 1] : '\0'; }

  void fail(const Twine &message) {
    StringRef before = text.take_front(at);
    size_t lineStart = before.rfind('\n') == StringRef::npos ? 0 : before.rfind('\n') + 1;
    problem =
        (name + ":" + Twine(before.count('\n') + 1) + ":" + Twine(at - lineStart + 1) + ": error: " + message).str();
  }

  void skipString() {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      if (text[at] == '\\')
        ++at;
    ++at;
  }

  // Scans an identifier, a number, or a name with a sigil: #map, !alias, %value, @symbol, ^block.
  void word() {
    size_t begin = at;
    for (++at; at < text.size() && (llvm::isAlnum(text[at]) || StringRef("_$.-").contains(text[at])); ++at)
      if (text[at] == '-' && next() == '>')
        break;
    StringRef token = text.slice(begin, at);
    StringRef rest = text.drop_front(at).ltrim(" \t\r\n");
    bool defines = rest.starts_with("=") && !rest.starts_with("==");
    bool location = token.starts_with("#loc");
    at = begin;
    if (token == "affine_map" || token == "affine_set" || token == "integer_set")
      return fail("expected no affine maps or sets in a model, found " + token);
    if (defines && (token.starts_with("!") || (token.starts_with("#") && !location)))
      return fail("expected types and attributes written out, found the alias " + token);
    checkAttribute(token, rest);
    if (isDouble && token == "dense" && rest.starts_with("<")) {
      denseEnd = std::min(text.find('>', at), text.size() - 1);
      listEnd = rest.drop_front().ltrim().starts_with("[") ? denseEnd : 0;
    }
    at = problem.empty() ? begin + token.size() : at;
  }

  // Scans %value, @symbol or ^block: a name follows the sigil.
  void sigil() {
    for (++at; at < text.size() && (llvm::isAlnum(text[at]) || StringRef("_$.-").contains(text[at])); ++at)
      if (text[at] == '-' && next() == '>')
        break;
  }

  // MLIR's parser and printer abort the process for arrays of elements of unknown size, integers of 0 bits, and
  // attributes of these two kinds. No model needs them.
  void checkAttribute(StringRef token, StringRef rest) {
    if (rest.starts_with("=") && !rest.starts_with("==")) // the name of an attribute
      return;
    bool holds = rest.starts_with("<") || rest.starts_with("[");
    if (holds && (token == "distinct" || token == "dense_resource" || token == "sparse"))
      return fail("expected attributes of a model, found one of the kind " + token);
    StringRef element = rest.drop_front(!rest.empty()).ltrim(" \t\r\n").take_while(llvm::isAlnum);
    if (token == "array" && rest.starts_with("<") && !llvm::is_contained(arrayElements, element))
      return fail("expected an array of i1, i8, i16, i32, i64, f32 or f64, found one of '" + element + "'");
    if (token.starts_with("#builtin") || token.starts_with("!builtin"))
      return fail("expected types and attributes as a model has them, found " + token);
    llvm::SmallVector<StringRef> parts = {token};
    if (at > 0 && StringRef("?*]0123456789").contains(text[at - 1])) // as in ?x4xf32
      token.split(parts, 'x');
    for (StringRef part : parts) {
      part.consume_front("s") || part.consume_front("u");
      unsigned width;
      if (part.consume_front("i") && !part.empty() && llvm::all_of(part, llvm::isDigit) &&
          (part.getAsInteger(10, width) || width < 1 || width > maxIntegerBits))
        return fail("expected integers of 1 to 64 bits, found i" + part);
    }
  }

  // Scans a number, or a shape up to its element type: 1.5e-3, 0x7fc00000, 4x3x.
  void number() {
    size_t begin = at;
    auto isSign = [&] {
      return (text[at] == '+' || (text[at] == '-' && next() != '>')) && llvm::toLower(text[at - 1]) == 'e';
    };
    while (at < text.size() && (llvm::isHexDigit(text[at]) || text[at] == '.' || text[at] == 'x' || isSign()))
      ++at;
    size_t length = at - begin;
    at = begin;
    if (isDouble && losesDigits(text.substr(begin, length), text.drop_front(begin + length)))
      return fail("expected at most 7 digits in a number of f32 with --precision f64, found " +
                  text.substr(begin, length).take_front(32) +
                  ": write it as f64, such as learning_rate = 0.0123456789 : f64, or as a constant of f64 and a cast, "
                  "such as mt.constant dense<0.0123456789> : tensor<f64>");
    if (length > maxNumberChars)
      return fail("expected numbers of at most " + Twine(maxNumberChars) + " characters, found one of " +
                  Twine(length));
    at = begin + length;
  }

  // Whether a number is of f32 there, and means another one than it does in f64. Elements of a list keep the values
  // that they have in f32.
  bool losesDigits(StringRef number, StringRef rest) const {
    double value;
    if (number.contains('x') || !StringRef(number).contains('.') || number.getAsDouble(value))
      return false;
    llvm::APFloat narrow(static_cast<float>(value));
    bool isList = at < listEnd;
    if (value == (isList ? narrow.convertToDouble() : mt::decimalOf(narrow)))
      return false;
    bool isDense = at < denseEnd;
    rest = (isDense ? text.drop_front(denseEnd + 1) : rest).ltrim();
    if (!rest.consume_front(":"))
      return true;
    rest = rest.ltrim();
    if (isDense && rest.consume_front("tensor<"))
      rest = rest.take_until([](char c) { return c == '>'; });
    else
      rest = rest.take_while(llvm::isAlnum);
    return !rest.ends_with("f64");
  }

  void open(unsigned &depth) {
    ++depth;
    if (round + angle > maxNesting)
      return fail("expected brackets nested at most " + Twine(maxNesting) + " deep, found more");
    ++at;
  }

  void close(unsigned &depth) {
    depth -= depth != 0;
    ++at;
  }

  void step() {
    char c = text[at];
    if (c == '\0')
      return fail("expected text, found a zero byte");
    if (c == '"')
      return skipString();
    if (c == '/' && next() == '/') {
      at = std::min(text.find('\n', at), text.size());
      return;
    }
    if (llvm::isDigit(c))
      return number();
    if (c == '%' || c == '@' || c == '^')
      return sigil();
    if (text.drop_front(at).starts_with("{-#"))
      return fail("expected no resources in a model, found {-#");
    if (llvm::isAlpha(c) || c == '_' || c == '#' || c == '!')
      return word();
    // The angles of arrows and comparisons are not brackets.
    if ((c == '-' && next() == '>') || ((c == '<' || c == '>') && next() == '=')) {
      at += 2;
      return;
    }
    if (c == '(' || c == '[' || c == '{')
      return open(round);
    if (c == '<')
      return open(angle);
    if (c == ')' || c == ']' || c == '}')
      return close(round);
    if (c == '>')
      return close(angle);
    ++at;
  }

  StringRef text, name;
  bool isDouble;
  size_t at = 0;
  size_t denseEnd = 0, listEnd = 0; // where the last `dense<...>` ends, and the same if its elements are a list
  unsigned round = 0, angle = 0;    // counted separately, so that a stray '>' does not hide a level of round brackets
  std::string problem;
};

} // namespace

bool beginsLine(StringRef text, StringRef word) {
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1)) {
    StringRef before = text.take_front(at).rtrim(" \t");
    if (before.empty() || before.ends_with("\n"))
      return true;
  }
  return false;
}

std::string prescan(StringRef text, StringRef name, bool isDouble) {
  if (std::string problem = recognizeFile(text, name); !problem.empty())
    return (name + ": error: " + problem).str();
  if (text.size() > maxTextBytes)
    return (name + ": error: expected at most " + Twine(maxTextBytes) + " bytes of text, found " + Twine(text.size()))
        .str();
  return Scanner(text, name, isDouble).run();
}

} // namespace mtc
