// SPDX-License-Identifier: Apache-2.0
//
// Names that are hashes of content, so that equal names mean equal content.
#ifndef COMPILER_CODEGEN_COMMON_CONTENTHASH_H
#define COMPILER_CODEGEN_COMMON_CONTENTHASH_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include <string>

namespace mtc {

// 128 bits of BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020) as 32 hexadecimal digits.
inline std::string contentHash(llvm::StringRef content) {
  return llvm::toHex(llvm::BLAKE3::hash<16>(llvm::arrayRefFromStringRef(content)), /*LowerCase=*/true);
}

} // namespace mtc

#endif
