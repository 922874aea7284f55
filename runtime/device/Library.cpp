// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Library.h"

#include <cstdlib>
#include <dlfcn.h>

namespace mtrun {

void *openFirst(const std::vector<std::string> &places, std::string &place, std::string &reasons, bool global) {
  for (const std::string &candidate : places) {
    place = candidate;
    if (void *library = dlopen(candidate.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL)))
      return library;
    const char *reason = dlerror();
    reasons += std::string(reasons.empty() ? "" : "; ") + (reason ? reason : candidate.c_str());
  }
  return nullptr;
}

void *openLibrary(const std::string &name, std::string &place, std::string &reasons) {
  Dl_info here = {};
  std::vector<std::string> places;
  if (dladdr(reinterpret_cast<void *>(&openLibrary), &here) != 0 && here.dli_fname) {
    std::string path = here.dli_fname;
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
    places = {folder + name, folder + "../lib/" + name};
  }
  places.push_back(name);
  return openFirst(places, place, reasons);
}

std::vector<std::string> placesNamed(const char *variable, std::vector<std::string> names) {
  if (const char *named = std::getenv(variable); named && *named)
    return {named};
  return names;
}

} // namespace mtrun
