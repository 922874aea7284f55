// SPDX-License-Identifier: Apache-2.0
//
// Enumerators of plan.fbs for people: everywhere spelled as in the dialects.
#pragma once

#include <cctype>
#include <string>

namespace mtrun {

// MatmulWgrad is "matmul_wgrad", BF16 is "bf16".
inline std::string enumName(const char *enumerator) {
  std::string name;
  bool capital = true; // the letter before
  for (const char *c = enumerator; *c; ++c) {
    bool starts = std::isupper(static_cast<unsigned char>(*c)) && !capital;
    capital = std::isupper(static_cast<unsigned char>(*c));
    name += starts ? "_" : "";
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return name;
}

} // namespace mtrun
