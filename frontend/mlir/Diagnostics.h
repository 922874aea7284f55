// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics as lines of text: "file:line:column: error: message", each followed by its notes.
#ifndef FRONTEND_MLIR_DIAGNOSTICS_H
#define FRONTEND_MLIR_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <functional>
#include <string>

namespace mtc {

// While an object of this class lives, the context prints no diagnostics: errors are collected, warnings and remarks
// are passed to `sink`.
class DiagnosticLines {
public:
  using Sink = std::function<void(mlir::DiagnosticSeverity severity, const std::string &lines)>;

  // `name` is printed for locations without a file. `sink` may be null.
  DiagnosticLines(mlir::MLIRContext &context, std::string name, Sink sink);

  void addError(const std::string &line);
  // All errors so far, one per line, without a newline at the end.
  const std::string &errors() const { return lines; }

private:
  std::string format(mlir::Diagnostic &diagnostic) const;
  std::string locationText(mlir::Location location) const;
  // The layer of an op whose location is in another file than the model's, that of the user's program.
  std::string layerText(mlir::Location location) const;

  std::string name;
  Sink sink;
  std::string lines;
  unsigned count = 0;
  mlir::ScopedDiagnosticHandler handler; // declared last, because it uses the other members
};

} // namespace mtc

#endif
