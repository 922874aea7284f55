// SPDX-License-Identifier: Apache-2.0
//
// libmtrun-images.so, opened when a source of pictures asks for it.
#pragma once

#include "runtime/data/images/Decode.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

using DecodePicture = int32_t (*)(mtrun_picture *);

// Looks beside the library or program that this code is in, in ../lib of it, then where the loader looks. Once a
// process. MT_IO says what was tried.
Status openImageLibrary(DecodePicture &decode);

// A decoded picture; its room is used again by the next.
struct Picture {
  std::vector<uint8_t> room;
  const uint8_t *pixels = nullptr; // height x width x channels
  uint32_t width = 0, height = 0;
  int32_t stored = 0; // channels in the file
};

// Reads `bytes`; `quick`: not the pixels, only whether they are likely to be there. MT_CORRUPT, MT_INVALID,
// MT_NO_MEMORY.
Status decodePicture(DecodePicture decode, std::span<const uint8_t> bytes, int32_t channels, bool upright, bool quick,
                     Picture &picture);

} // namespace mtrun
