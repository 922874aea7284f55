// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Prescan.h"

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
    problem = (name + ":" + Twine(before.count('\n') + 1) + ":" + Twine(at - lineStart + 1) + ": error: " + message).str();
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

struct Format {
  StringRef ending; // of the file's name; empty: told by its bytes alone
  StringRef magic;
  const char *message;
};

const Format formats[] = {
    {"", "ML\xefR", "expected MLIR text, found MLIR bytecode: print it as text first, mlir-opt does"},
    {".mlirbc", "", "expected MLIR text, found MLIR bytecode: print it as text first, mlir-opt does"},
    {"", "PK\x03\x04", "expected text, found a zip archive: give a Keras archive as a file"},
    {"", "\x89HDF", "expected MLIR text or a Keras model, found an HDF5 file: save the model with model.save(\"model.keras\")"},
    {".onnx", "", "expected MLIR text, found an ONNX model: write the model in the mt dialect, docs/ir.md shows how"},
    {"", "MTPLAN", "expected MLIR text, found a plan: it is compiled already, run it or see mtc inspect"},
};

} // namespace

std::string prescan(StringRef text, StringRef name) {
  for (const Format &format : formats)
    if (name.ends_with(format.ending) && text.starts_with(format.magic))
      return (name + ": error: " + format.message).str();
  if (text.size() > maxTextBytes)
    return (name + ": error: expected at most " + Twine(maxTextBytes) + " bytes of text, found " + Twine(text.size())).str();
  return Scanner(text, name).run();
}

} // namespace mtc
