// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpret/Script.h"
#include "dialects/mt/Numbers.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using mt::Tensor;

namespace mtc {

static llvm::Error errorAt(int64_t line, const llvm::Twine &message) {
  return llvm::createStringError(llvm::Twine("line ") + llvm::Twine(line) + ": " + message);
}

llvm::Expected<Script> parseScript(StringRef text) {
  Script script;
  int64_t line = 0;
  while (!text.empty()) {
    auto [first, rest] = text.split('\n');
    text = rest;
    ++line;
    StringRef comment = first.trim();
    if (!comment.consume_front("//"))
      continue;
    comment = comment.ltrim();
    bool input = comment.consume_front("INPUT ");
    if (!input && !comment.consume_front("SET "))
      continue;
    auto [name, numbers] = comment.split('=');
    SmallVector<StringRef> words;
    numbers.split(words, ' ', -1, /*KeepEmpty=*/false);
    if (name.trim().empty() || words.empty())
      return errorAt(line, "expected `name = number ...`, found `" + comment.trim() + "`");
    Tensor tensor(ArrayRef<int64_t>{static_cast<int64_t>(words.size())});
    for (auto [word, element] : llvm::zip(words, tensor.data))
      if (!mt::readNumber(word, element))
        return errorAt(line, "expected a number, found `" + word + "`");
    (input ? script.inputs : script.variables)[name.trim().str()] = std::move(tensor);
  }
  return script;
}

static void printElements(llvm::raw_ostream &out, StringRef name, const Tensor &tensor) {
  out << name << " [";
  llvm::interleaveComma(tensor.shape, out);
  out << "] =";
  for (double x : tensor.data)
    out << ' ' << llvm::format("%.6g", x);
}

static void print(llvm::raw_ostream &out, StringRef name, const Tensor &tensor) {
  printElements(out, name, tensor);
  out << '\n';
}

static void print(llvm::raw_ostream &out, StringRef name, const StepMetric &metric) {
  if (metric.value.rank() == 0)
    out << name << " = " << llvm::format("%.6g", metric.value.data[0]);
  else
    printElements(out, name, metric.value);
  out << " weight " << llvm::format("%.6g", metric.weight) << '\n';
}

// Number of samples of the first input of the program for which the script has values.
static int64_t samplesOf(mt::ProgramOp program, const Script &script) {
  int64_t samples = 0;
  program.walk([&](Operation *op) {
    if (!isa<mt::InputOp, mt::TargetOp>(op) || samples)
      return;
    auto found = script.inputs.find(op->getAttrOfType<StringAttr>("name").str());
    if (found != script.inputs.end())
      samples = found->second.size() / mt::elementsPerRow(op->getResult(0).getType());
  });
  return samples;
}

LogicalResult runScript(ModuleOp module, const Script &script, ArrayRef<std::string> programs, Step step,
                        llvm::raw_ostream &out) {
  Tensors variables;
  if (module.lookupSymbol<mt::ProgramOp>("init") && failed(interpretProgram(module, "init", step, variables)))
    return failure();
  for (const auto &[name, tensor] : script.variables) {
    Tensor &variable = variables[name];
    if (variable.size() == tensor.size())
      variable.data = tensor.data;
    else if (variable.size() == 0)
      variable = tensor;
    else
      return module.emitError() << "expected " << variable.size() << " elements of \"" << name << "\", found "
                                << tensor.size();
  }
  step.inputs = script.inputs;
  for (const std::string &name : programs) {
    auto program = module.lookupSymbol<mt::ProgramOp>(name);
    if (!program)
      return module.emitError() << "expected a program @" << name << ", found none";
    step.samples = samplesOf(program, script);
    FailureOr<StepResults> results = interpretProgram(module, name, step, variables);
    if (failed(results))
      return failure();
    out << name << '\n';
    for (const auto &[key, metric] : results->metrics)
      print(out, key, metric);
    for (const auto &[key, tensor] : results->outputs)
      print(out, key, tensor);
  }
  out << "variables\n";
  for (const auto &[name, tensor] : variables)
    print(out, name, tensor);
  return success();
}

} // namespace mtc
