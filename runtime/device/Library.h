// SPDX-License-Identifier: Apache-2.0
//
// Libraries that are opened only when something needs them.
#pragma once

#include <string>
#include <vector>

namespace mtrun {

// Of this build: looks beside the library or program that this code is in, in ../lib of it, then where the loader
// looks; `place` is the path where it was. Null: `reasons` says what was tried.
void *openLibrary(const std::string &name, std::string &place, std::string &reasons);

// Of others: where to look, which is what the environment's `variable` names, else `names`.
std::vector<std::string> placesNamed(const char *variable, std::vector<std::string> names);
// The first of `places` that opens, as openLibrary().
void *openFirst(const std::vector<std::string> &places, std::string &place, std::string &reasons);

} // namespace mtrun
