// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Prescan.h"

#include "frontend/Formats.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;
using llvm::Twine;

namespace mtc {
namespace {

class Scanner {
public:
  Scanner(StringRef text, StringRef name) : text(text), name(name) {}

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

  // An identifier, a number, or a name with a sigil: #map, !alias, %value, @symbol, ^block.
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
    at = begin + token.size();
  }

  // A number, or a shape up to its element type: 1.5e-3, 0x7fc00000, 4x3x.
  void number() {
    size_t begin = at;
    auto isSign = [&] {
      return (text[at] == '+' || (text[at] == '-' && next() != '>')) && llvm::toLower(text[at - 1]) == 'e';
    };
    while (at < text.size() && (llvm::isHexDigit(text[at]) || text[at] == '.' || text[at] == 'x' || isSign()))
      ++at;
    size_t length = at - begin;
    at = begin;
    if (length > maxNumberChars)
      return fail("expected numbers of at most " + Twine(maxNumberChars) + " characters, found one of " +
                  Twine(length));
    at = begin + length;
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
    if (llvm::isAlpha(c) || c == '_' || c == '#' || c == '!')
      return word();
    // Arrows and comparisons hold no brackets.
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
  size_t at = 0;
  unsigned round = 0, angle = 0; // apart, so that a stray '>' cannot hide a level of the others
  std::string problem;
};

} // namespace

std::string prescan(StringRef text, StringRef name) {
  if (std::string problem = recognizeFile(text, name); !problem.empty())
    return (name + ": error: " + problem).str();
  if (text.size() > maxTextBytes)
    return (name + ": error: expected at most " + Twine(maxTextBytes) + " bytes of text, found " + Twine(text.size()))
        .str();
  return Scanner(text, name).run();
}

} // namespace mtc
