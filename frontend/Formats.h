// SPDX-License-Identifier: Apache-2.0
//
// Files of models that no importer reads, recognised by their content: what they are, and the way in that there is.
#ifndef FRONTEND_FORMATS_H
#define FRONTEND_FORMATS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mtc {

// "expected ..., found ...: ..." for a file of this beginning (for some formats its whole) and name; empty: none that
// is known.
std::string recognizeFile(llvm::StringRef bytes, llvm::StringRef name);
// The same of a zip archive by its members' names.
std::string recognizeZip(llvm::ArrayRef<std::string> members);
// The same of a folder.
std::string recognizeFolder(const std::string &path);

} // namespace mtc

#endif
