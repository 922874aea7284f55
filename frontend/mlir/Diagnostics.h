// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics as lines of text: "file:line:column: error: message", notes below what they belong to.
#ifndef FRONTEND_MLIR_DIAGNOSTICS_H
#define FRONTEND_MLIR_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <functional>
#include <string>

namespace mtc {

// While it lives, nothing of the context's diagnostics is printed: errors are kept, warnings and remarks are handed on.
class DiagnosticLines {
public:
  using Sink = std::function<void(mlir::DiagnosticSeverity severity, const std::string &lines)>;

  // `name` stands for locations that have no file. `sink` may be null.
  DiagnosticLines(mlir::MLIRContext &context, std::string name, Sink sink);

  void addError(const std::string &line);
  // All errors so far, a line each, no newline at the end.
  const std::string &errors() const { return lines; }

private:
  std::string format(mlir::Diagnostic &diagnostic) const;
  std::string place(mlir::Location location) const;

  std::string name;
  Sink sink;
  std::string lines;
  unsigned count = 0;
  mlir::ScopedDiagnosticHandler handler; // last: it uses the others
};

} // namespace mtc

#endif
