// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Diagnostics.h"

#include "dialects/mt/MtDialect.h"
#include "mlir/IR/Location.h"
#include "runtime/support/suggest.h"

#include <cctype>

using namespace mlir;

namespace mtc {

// Further errors after this many are not printed.
static constexpr unsigned maxErrors = 20;

static FileLineColLoc findFile(Location location) {
  FileLineColLoc result;
  location->walk([&](Location inner) {
    if ((result = dyn_cast<FileLineColLoc>(inner)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result;
}

// The text between the first two apostrophes after `from`.
static std::string quoted(llvm::StringRef message, size_t from) {
  size_t begin = message.find('\'', from);
  size_t end = begin == llvm::StringRef::npos ? begin : message.find('\'', begin + 1);
  return end == llvm::StringRef::npos ? std::string() : message.slice(begin, end + 1).str();
}

// Adds a suggestion: "'mt.softmaxx'; did you mean mt.softmax?"
static std::string withSuggestion(const std::string &name, MLIRContext &context) {
  std::vector<std::string> known;
  for (RegisteredOperationName op : context.getRegisteredOperationsByDialect(mt::MtDialect::getDialectNamespace()))
    known.push_back(op.getStringRef().str());
  return name + mtrun::didYouMean(llvm::StringRef(name).trim('\'').str(), known);
}

// Replaces the parser's message for an unknown op, which suggests flags of mlir-opt, by one that names the dialect of
// models.
static std::string reword(std::string message, MLIRContext &context) {
  llvm::StringRef text = message;
  if (text.starts_with("operation being parsed with an unregistered dialect"))
    return "expected an op of the mt dialect, found one of an unknown dialect";
  if (text.starts_with("Dialect `"))
    return "expected an op of the mt dialect, found " + withSuggestion(quoted(text, text.find("custom op")), context);
  if (text.starts_with("custom op '") && text.contains("is unknown"))
    return "expected an op of the mt dialect, found " + withSuggestion(quoted(text, 0), context);
  if (message.size() > 1 && std::isupper(message[0]) && std::islower(message[1]))
    message[0] = static_cast<char>(std::tolower(message[0]));
  while (!message.empty() && (message.back() == '.' || message.back() == ' '))
    message.pop_back();
  return message;
}

DiagnosticLines::DiagnosticLines(MLIRContext &context, std::string name, Sink sink)
    : name(std::move(name)), sink(std::move(sink)), handler(&context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          addError(format(diagnostic));
        else if (this->sink)
          this->sink(diagnostic.getSeverity(), format(diagnostic));
      }) {}

void DiagnosticLines::addError(const std::string &line) {
  if (++count > maxErrors)
    return;
  lines += (lines.empty() ? "" : "\n") + line;
}

std::string DiagnosticLines::locationText(Location location) const {
  if (FileLineColLoc file = findFile(location))
    return file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
  if (auto layer = dyn_cast<NameLoc>(location))
    return name + ": " + layer.getName().str();
  return name;
}

std::string DiagnosticLines::layerText(Location location) const {
  FileLineColLoc file = findFile(location);
  auto layer = location->findInstanceOf<NameLoc>();
  bool elsewhere = file && layer && file.getFilename() != name;
  return elsewhere ? " (in \"" + layer.getName().str() + "\")" : "";
}

std::string DiagnosticLines::format(Diagnostic &diagnostic) const {
  static constexpr const char *severities[] = {"note", "warning", "error", "note"};
  std::string message = diagnostic.str();
  MLIRContext &context = *diagnostic.getLocation().getContext();
  std::string text = reword(message, context);
  std::string result = locationText(diagnostic.getLocation()) + ": " +
                       severities[static_cast<int>(diagnostic.getSeverity())] + ": " + text +
                       layerText(diagnostic.getLocation());
  if (llvm::StringRef(message).starts_with("Dialect `"))
    return result;
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string noteText = note.str();
    // The verifier's note that prints the op helps to debug a pass, but not to correct a model.
    if (llvm::StringRef(noteText).starts_with("see current operation"))
      continue;
    result += "\n" + locationText(note.getLocation()) + ": note: " + reword(noteText, context);
  }
  return result;
}

} // namespace mtc
