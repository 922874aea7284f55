// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Names.h"

#include "frontend/ClassNames.h"
#include "runtime/support/column_rules.h"
#include "runtime/support/safetensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

#include <set>

using namespace mlir;
using mtrun::Status;

namespace mtc {

Status readClassNames(const std::string &option, std::vector<std::string> &names) {
  std::string text = option;
  char separator = ',';
  if (option.find(',') == std::string::npos) {
    std::vector<std::byte> file;
    if (Status status = mtrun::readWholeFile(option, file); !status.ok())
      return {status.code(),
              "class names: expected NAME,NAME,... or a file with one name per line: " + status.message()};
    text.assign(reinterpret_cast<const char *>(file.data()), file.size());
    separator = '\n';
  }
  llvm::StringRef rest = text;
  rest.consume_front("\xef\xbb\xbf"); // UTF-8 byte order mark
  if (separator == '\n')
    rest = rest.rtrim("\r\n");
  while (true) {
    auto [name, after] = rest.split(separator);
    names.push_back(name.trim(" \t\r").str());
    if (name.size() == rest.size())
      break;
    rest = after;
  }
  std::string problem = checkClassNames(names);
  return problem.empty() ? Status() : Status(MT_INVALID, option + ": " + problem);
}

Status readVocabulary(const std::string &path, std::vector<std::string> &characters) {
  std::vector<std::byte> file;
  if (Status status = mtrun::readWholeFile(path, file); !status.ok())
    return status;
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(file.data()), *begin = at, *end = at + file.size();
  std::set<std::string> distinct; // the order of UTF-8 strings by byte is the order of their code points
  while (at < end) {
    if (*at == 0 || !llvm::isLegalUTF8Sequence(at, end))
      return {MT_INVALID, path + ": expected a text in UTF-8, found byte " + std::to_string(*at) + " at offset " +
                              std::to_string(at - begin)};
    unsigned size = llvm::getNumBytesForUTF8(*at);
    distinct.emplace(reinterpret_cast<const char *>(at), size);
    at += size;
  }
  if (distinct.empty())
    return {MT_INVALID, path + ": expected a text, found an empty file"};
  characters.assign(distinct.begin(), distinct.end());
  return {};
}

Status readColumns(const std::string &path, std::string &text) {
  std::vector<std::byte> file;
  mtrun::ColumnRules rules;
  if (Status status = mtrun::readWholeFile(path, file); !status.ok())
    return status;
  text.assign(reinterpret_cast<const char *>(file.data()), file.size());
  return mtrun::parseColumnRules(text, rules).in(path + ": ");
}

// The only input has the numbers of all columns, or each input has the numbers of the column of its name.
static LogicalResult checkColumns(mt::ModelOp model, llvm::StringRef text) {
  mtrun::ColumnRules rules;
  if (Status status = mtrun::parseColumnRules({text.data(), text.size()}, rules); !status.ok())
    return model.emitError() << "columns file: " << status.message();
  SmallVector<mt::InputOp> inputs(model.getOps<mt::InputOp>());
  for (mt::InputOp input : inputs) {
    auto rule = llvm::find_if(rules.inputs, [&](const auto &each) { return input.getName() == each.name; });
    if (inputs.size() > 1 && rule == rules.inputs.end())
      return input.emitError() << "expected an input of a column of the columns file, found '" << input.getName()
                               << "'";
    uint64_t wanted = inputs.size() == 1 ? rules.width() : rule->width(), elements = 1;
    for (int64_t size : input.getType().getShape().drop_front())
      elements *= static_cast<uint64_t>(size);
    if (elements != wanted)
      return input.emitError() << "expected " << wanted << " elements of a sample for '" << input.getName()
                               << "', as the columns file has, found " << elements;
  }
  return success();
}

// Returns the strings of an array attribute, nullopt if the attribute is anything else.
static std::optional<std::vector<std::string>> stringsOf(Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  std::vector<std::string> strings;
  if (!array || !llvm::all_of(array, [](Attribute item) { return isa<StringAttr>(item); }))
    return std::nullopt;
  for (auto item : array.getAsRange<StringAttr>())
    strings.push_back(item.str());
  return strings;
}

// Returns an error unless each string is one character and no character occurs twice.
static std::string checkVocabulary(ArrayRef<std::string> characters) {
  std::set<std::string> seen;
  for (const std::string &text : characters) {
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
    if (text.empty() || text[0] == '\0' || !llvm::isLegalUTF8Sequence(begin, begin + text.size()) ||
        llvm::getNumBytesForUTF8(*begin) != text.size())
      return "expected a vocabulary of one character of UTF-8 each, found " + std::to_string(text.size()) + " bytes";
    if (!seen.insert(text).second)
      return "expected a vocabulary of characters that differ, found a second '" + text + "'";
  }
  return {};
}

LogicalResult checkNames(ModuleOp module) {
  Attribute names = module->getAttr(classNamesAttribute), vocabulary = module->getAttr(vocabularyAttribute);
  auto check = [&](Attribute attribute, std::string (*fault)(ArrayRef<std::string>), bool (*fits)(mt::ModelOp, size_t),
                   llvm::StringRef what) -> LogicalResult {
    if (!attribute)
      return success();
    std::optional<std::vector<std::string>> strings = stringsOf(attribute);
    if (!strings)
      return module.emitError() << "expected " << what << " to be a list of strings, found " << attribute;
    if (std::string problem = fault(*strings); !problem.empty())
      return module.emitError() << problem;
    for (auto model : module.getOps<mt::ModelOp>())
      if (!fits(model, strings->size()))
        return model.emitError() << "expected " << what << " for the classes of an output (" << describeOutputs(model)
                                 << "), found " << strings->size();
    return success();
  };
  if (auto columns = module->getAttrOfType<StringAttr>(mt::columnsAttribute))
    for (auto model : module.getOps<mt::ModelOp>())
      if (failed(checkColumns(model, columns)))
        return failure();
  return success(succeeded(check(names, checkClassNames, fitsClasses, "class names")) &&
                 succeeded(check(vocabulary, checkVocabulary, fitsVocabulary, "a vocabulary")));
}

} // namespace mtc
