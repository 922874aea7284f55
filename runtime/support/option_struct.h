// SPDX-License-Identifier: Apache-2.0
//
// Option structs of the C API begin with their size, so that callers may be compiled with an older or newer header.
#pragma once

#include "runtime/support/status.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace mtrun {

// Copies `requested` into this version's struct; NULL gives the defaults. Fields that an older caller lacks become
// zero; fields of a newer caller that this version lacks must be zero. `first`: the size of the first version of the
// type, up to the end of its last field. MT_INVALID.
template <typename Options>
Status readOptions(const Options *requested, const char *type, size_t first, Options &options) {
  constexpr size_t most = 4096; // an uninitialized size may be any number; larger sizes are refused before reading
  options = {};
  if (requested) {
    size_t size = requested->struct_size;
    if (size < first || size > most)
      return {MT_INVALID, std::string(type) + ".struct_size: expected " + std::to_string(first) + " to " +
                              std::to_string(most) + ", as " + type + "_init() sets it, found " + std::to_string(size)};
    const auto *bytes = reinterpret_cast<const unsigned char *>(requested);
    for (size_t at = sizeof(Options); at < size; ++at)
      if (bytes[at] != 0)
        return {MT_INVALID, std::string(type) + ": expected the options of this version, " +
                                std::to_string(sizeof(Options)) + " bytes, found one set at byte " +
                                std::to_string(at) + ": the caller was made for a newer version"};
    memcpy(&options, requested, std::min(size, sizeof(Options)));
  }
  options.struct_size = sizeof(Options);
  return {};
}

} // namespace mtrun

// Calls readOptions(); `last` is the last field of the type's first version.
#define MTRUN_READ_OPTIONS(type, last, requested, options)                                                             \
  mtrun::readOptions<type>(requested, #type, offsetof(type, last) + sizeof(type::last), options)
