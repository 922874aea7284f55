// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_INSPECT_HTMLTEXT_H
#define COMPILER_INSPECT_HTMLTEXT_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mtc {

// Names may hold any bytes; on a page they are words, never tags.
std::string htmlText(llvm::StringRef text);

} // namespace mtc

#endif
