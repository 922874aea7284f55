// SPDX-License-Identifier: Apache-2.0
//
// Opens libmtrun-images.so, when a data source with pictures needs it.
#pragma once

#include "runtime/data/images/Decode.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

using DecodePicture = int32_t (*)(mtrun_picture *);

// Searches the folder of the library or program that has this code, then ../lib of it, then the loader's path. The
// search runs once per process. MT_IO lists the paths.
Status openImageLibrary(DecodePicture &decode);

// A decoded picture. Its buffer is reused for the next picture.
struct Picture {
  std::vector<uint8_t> room;       // buffer of the pixels
  const uint8_t *pixels = nullptr; // height x width x channels
  uint32_t width = 0, height = 0;
  int32_t stored = 0; // channels in the file
};

// Decodes `bytes`. `quick`: checks only that the pixels are probably present. MT_CORRUPT, MT_INVALID, MT_NO_MEMORY.
Status decodePicture(DecodePicture decode, std::span<const uint8_t> bytes, int32_t channels, bool upright, bool quick,
                     Picture &picture);

} // namespace mtrun
