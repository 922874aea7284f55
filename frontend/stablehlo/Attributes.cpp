// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Attributes.h"

#include "frontend/logical/Values.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::stablehlo {

using logical::Refused;

SmallVector<int64_t> listIn(StringRef text, StringRef key) {
  SmallVector<int64_t> numbers;
  size_t at = text.find((key + " = [").str());
  // "offset_dims" is the end of no other key, but "start_index_map" could be.
  if (at == StringRef::npos || (at > 0 && (llvm::isAlpha(text[at - 1]) || text[at - 1] == '_')))
    return numbers;
  StringRef rest = text.substr(at + key.size() + 4);
  SmallVector<StringRef> parts;
  rest.take_until([](char c) { return c == ']'; }).split(parts, ',', -1, false);
  for (StringRef part : parts) {
    int64_t number;
    if (part.trim().getAsInteger(10, number))
      throw Refused("expected numbers in " + key.str());
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<int64_t> numberIn(StringRef text, StringRef key) {
  size_t at = text.find((key + " = ").str());
  int64_t number;
  if (at == StringRef::npos || text.substr(at + key.size() + 3).take_while(llvm::isDigit).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

} // namespace mtc::stablehlo
