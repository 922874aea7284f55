// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/JoinLengths.h"

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace mtc {

std::string programOfLength(StringRef program, int64_t length) { return (program + "_" + Twine(length)).str(); }

namespace {

// An input, target or output of a program, in program order.
struct Entry {
  Operation *op;
  StringRef name;
  RankedTensorType type;
};

} // namespace

static SmallVector<Entry> entriesOf(mt::ProgramOp program) {
  SmallVector<Entry> entries;
  auto add = [&](Operation *op, StringRef name, Type type) {
    entries.push_back({op, name, cast<RankedTensorType>(type)});
  };
  for (Operation &op : program.getBody().front())
    if (auto input = dyn_cast<mt::InputOp>(op))
      add(input, input.getName(), input.getType());
    else if (auto target = dyn_cast<mt::TargetOp>(op))
      add(target, target.getName(), target.getType());
    else if (auto weight = dyn_cast<mt::SampleWeightOp>(op))
      add(weight, weight.getName(), weight.getType());
    else if (auto output = dyn_cast<mt::OutputOp>(op))
      add(output, output.getName(), output.getValue().getType());
  return entries;
}

// Whether the types differ only in their second axis, which has the length `length` in one type and `otherLength` in
// the other.
static bool haveLength(RankedTensorType type, int64_t length, RankedTensorType other, int64_t otherLength) {
  return type.getElementType() == other.getElementType() && type.getRank() == other.getRank() && type.getRank() > 1 &&
         type.getDimSize(0) == other.getDimSize(0) && type.getDimSize(1) == length &&
         other.getDimSize(1) == otherLength && type.getShape().drop_front(2) == other.getShape().drop_front(2);
}

static LogicalResult checkEntries(mt::ProgramOp program, int64_t largest, mt::ProgramOp other, int64_t length) {
  SmallVector<Entry> entries = entriesOf(program), others = entriesOf(other);
  if (entries.size() != others.size())
    return other.emitOpError("expected ") << entries.size() << " inputs, targets and outputs, as at length " << largest
                                          << ", found " << others.size() << " at length " << length;
  for (auto [entry, found] : llvm::zip_equal(entries, others)) {
    if (entry.op->getName() != found.op->getName() || entry.name != found.name)
      return emitError(found.op->getLoc()) << "expected \"" << entry.name << "\", as at length " << largest
                                           << ", found \"" << found.name << "\" at length " << length;
    if (entry.type != found.type && !haveLength(entry.type, largest, found.type, length))
      return emitError(found.op->getLoc())
             << "expected \"" << entry.name << "\" to have the length as the size of its second axis only, found "
             << entry.type << " at length " << largest << " and " << found.type << " at length " << length;
  }
  return success();
}

// Compares names, types and roles of variables.
static LogicalResult checkVariables(ModuleOp module, int64_t largest, ModuleOp other, int64_t length) {
  SmallVector<mt::DeclareOp> variables(module.getOps<mt::DeclareOp>()), others(other.getOps<mt::DeclareOp>());
  for (auto [variable, found] : llvm::zip(variables, others))
    if (variable->getPropertiesAsAttribute() != found->getPropertiesAsAttribute())
      return emitError(found.getLoc()) << "expected the same variables at every length, found \"" << variable.getName()
                                       << "\" " << variable.getType() << " at length " << largest << " and \""
                                       << found.getName() << "\" " << found.getType() << " at length " << length;
  if (variables.size() != others.size())
    return emitError(other.getLoc()) << "expected the same variables at every length, found " << variables.size()
                                     << " at length " << largest << " and " << others.size() << " at length " << length;
  return success();
}

LogicalResult addLength(ModuleOp module, int64_t largest, ModuleOp other, int64_t length) {
  if (failed(checkVariables(module, largest, other, length)))
    return failure();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  for (mt::ProgramOp program : other.getOps<mt::ProgramOp>()) {
    if (program.getSymName() == "init")
      continue;
    auto whole = module.lookupSymbol<mt::ProgramOp>(program.getSymName());
    if (!whole)
      return program.emitOpError("expected the same programs at every length, found this at length ") << length;
    if (failed(checkEntries(whole, largest, program, length)))
      return failure();
    auto copy = cast<mt::ProgramOp>(builder.clone(*program));
    copy.setSymName(programOfLength(program.getSymName(), length));
  }
  return success();
}

LogicalResult checkLengthInputs(ModuleOp module, int64_t largest, int64_t other, const char *input) {
  for (mt::ProgramOp program : module.getOps<mt::ProgramOp>()) {
    auto shorter = module.lookupSymbol<mt::ProgramOp>(programOfLength(program.getSymName(), other));
    if (!shorter)
      continue;
    std::string names;
    bool found = false;
    for (auto [entry, at] : llvm::zip_equal(entriesOf(program), entriesOf(shorter))) {
      if (!isa<mt::InputOp>(entry.op) || entry.type == at.type)
        continue;
      found |= !input || entry.name == input;
      names += (names.empty() ? "" : ", ") + entry.name.str();
    }
    if (names.empty())
      return emitError(program.getLoc())
             << "expected an input with an axis of unknown length for --lengths, found none: write "
                "keras.Input((None,)) in a "
                "Keras model, a named axis in an ONNX model, and tensor<?x{length}xi32> in MLIR text";
    if (!found)
      return emitError(program.getLoc()) << "expected the length input to be one of " << names << ", found " << input;
  }
  return success();
}

} // namespace mtc
