// SPDX-License-Identifier: Apache-2.0
#include "frontend/ClassNames.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"

using namespace mlir;

namespace mtc {

static int64_t lastAxis(mt::OutputOp output) {
  auto type = cast<RankedTensorType>(output.getValue().getType());
  return type.getRank() > 1 ? type.getShape().back() : 0;
}

std::string checkClassNames(ArrayRef<std::string> names) {
  constexpr size_t longest = 1024; // as plans have it
  llvm::StringSet<> seen;
  for (const std::string &name : names) {
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(name.data());
    if (name.empty() || name.size() > longest)
      return "expected class names of 1 to 1024 bytes, found " + std::to_string(name.size());
    if (!llvm::isLegalUTF8String(&begin, begin + name.size()))
      return "expected class names in UTF-8, found other bytes";
    for (unsigned char c : name)
      if (c < 0x20 || c == 0x7f)
        return "expected class names without control characters, found byte " + std::to_string(c);
    if (!seen.insert(name).second)
      return "expected class names that differ, found a second '" + name + "'";
  }
  return {};
}

bool fitsClasses(mt::ModelOp model, size_t names) {
  constexpr size_t both = 2;
  for (mt::OutputOp output : model.getOps<mt::OutputOp>())
    if (int64_t size = lastAxis(output); size == static_cast<int64_t>(names) || (size == 1 && names == both))
      return true;
  return false;
}

bool fitsVocabulary(mt::ModelOp model, size_t characters) {
  return llvm::any_of(model.getOps<mt::OutputOp>(),
                      [&](mt::OutputOp output) { return lastAxis(output) >= static_cast<int64_t>(characters); });
}

std::string describeOutputs(mt::ModelOp model) {
  std::string text;
  for (mt::OutputOp output : model.getOps<mt::OutputOp>())
    text += (text.empty() ? "'" : ", '") + output.getName().str() + "' with " + std::to_string(lastAxis(output));
  return text;
}

void setStrings(ModuleOp module, llvm::StringRef attribute, ArrayRef<std::string> strings) {
  SmallVector<llvm::StringRef> views(strings.begin(), strings.end());
  module->setAttr(attribute, Builder(module.getContext()).getStrArrayAttr(views));
}

} // namespace mtc
