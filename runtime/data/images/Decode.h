// SPDX-License-Identifier: Apache-2.0
//
// Decodes JPEG and PNG files with libjpeg-turbo and libpng: the functions of libmtrun-images.so. It is a separate
// library, so that only runs with pictures need libjpeg and libpng. runtime/data/ImageLibrary.h opens it.
#pragma once

#include "runtime/abi/mt.h"

#include <cstdint>
#include <cstring>

// The arguments and results of decoding a picture. The bytes are untrusted: any bytes give pixels or a message.
struct mtrun_picture {
  const uint8_t *bytes = nullptr;
  uint64_t size = 0;
  int32_t channels = 3; // channels of the result: 1 grey, 3 red, green, blue
  int32_t quick = 0;    // 1: checks only the header, the tables and that the file is complete; decodes no pixels
  int32_t upright = 1;  // 1: rotated upright by EXIF; 0: as stored
  // Returns a buffer of `bytes` bytes, or null if memory is exhausted. Called at most once, after the limits are
  // checked; it receives the pixels.
  uint8_t *(*room)(void *user, uint64_t bytes) = nullptr;
  void *user = nullptr;

  uint8_t *pixels = nullptr;      // height rows of width pixels of channels bytes
  uint32_t width = 0, height = 0; // size after rotation
  int32_t orientation = 1;        // EXIF orientation of the file, 1 to 8
  int32_t stored = 0;     // channels in the file: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha, or CMYK
  char message[256] = {}; // error message: what was expected and what was found
};

namespace mtrun::images {

// Limits of a picture's sides and pixels; larger pictures are refused before memory is allocated.
inline constexpr uint32_t maxSide = 65500;
inline constexpr uint64_t maxPixels = 100'000'000;
inline constexpr int maxScans = 100; // limit for a progressive JPEG; a file with more scans is likely an attack

inline bool isJpeg(const uint8_t *bytes, uint64_t size) { return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0; }
inline bool isPng(const uint8_t *bytes, uint64_t size) {
  return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

// MT_CORRUPT, MT_INVALID (unsupported kind of file) or MT_NO_MEMORY, with a message.
mt_code decodeJpeg(mtrun_picture &picture);
mt_code decodePng(mtrun_picture &picture);

// MT_INVALID: the picture exceeds the limits.
mt_code checkSize(mtrun_picture &picture);
// Allocates the pixels with `decoded` bytes each, and the same size again if they must be rotated. MT_NO_MEMORY.
mt_code makeRoom(mtrun_picture &picture, uint32_t decoded);
// Converts pixels of `decoded` bytes to grey and rotates them upright, if requested.
void finish(mtrun_picture &picture, uint32_t decoded);
// Sets the message.
mt_code fail(mtrun_picture &picture, mt_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Reads the orientation from EXIF data, which begins with its TIFF header; 1 if it is missing or damaged.
int readOrientation(const uint8_t *tiff, uint64_t size);

// Returns the luminance as libjpeg computes it: 0.299 R + 0.587 G + 0.114 B with 16 fraction bits, rounded.
inline uint8_t grey(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

} // namespace mtrun::images

extern "C" {
// Returns headerVersion of the header with which the library was compiled.
MT_API int32_t mtrun_images_version(void);
// MT_OK, or an error as for decodeJpeg().
MT_API int32_t mtrun_images_decode(mtrun_picture *picture);
}
namespace mtrun::images {
inline constexpr int32_t headerVersion = 1;
}
