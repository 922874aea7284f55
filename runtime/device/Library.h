// SPDX-License-Identifier: Apache-2.0
//
// Opens shared libraries when they are first needed.
#pragma once

#include <string>
#include <vector>

namespace mtrun {

// Opens a library of this build. Searches the folder of the library or program that has this code, then ../lib of it,
// then the loader's path. `place` receives the path. Returns null on failure; `reasons` lists the attempts.
void *openLibrary(const std::string &name, std::string &place, std::string &reasons);

// Returns the paths for a library of another vendor: the path in the environment variable `variable` if set, else
// `names`.
std::vector<std::string> placesNamed(const char *variable, std::vector<std::string> names);
// Opens the first of `places` that can be opened; results as for openLibrary(). `global`: libraries that are opened
// later find its symbols.
void *openFirst(const std::vector<std::string> &places, std::string &place, std::string &reasons, bool global = false);

} // namespace mtrun
