// SPDX-License-Identifier: Apache-2.0
//
// Libraries of this build that are opened only when something needs them.
#pragma once

#include <string>

namespace mtrun {

// Looks beside the library or program that this code is in, in ../lib of it, then where the loader looks; `place` is
// where it was. Null: `reasons` says what was tried.
void *openLibrary(const std::string &name, std::string &place, std::string &reasons);

} // namespace mtrun
