// SPDX-License-Identifier: Apache-2.0
//
// JPEG and PNG files to pixels, with libjpeg-turbo and libpng. The functions of libmtrun-images.so, a library of its
// own so that only runs on pictures need these two; runtime/data/ImageLibrary.h opens it.
#pragma once

#include "runtime/abi/mt.h"

#include <cstdint>
#include <cstring>

// One picture, in and out. Everything but `room` may be any value: bytes of any kind give pixels or a message.
struct mtrun_picture {
  const uint8_t *bytes = nullptr;
  uint64_t size = 0;
  int32_t channels = 3; // wanted: 1 grey, 3 red, green, blue
  int32_t quick = 0;    // 1: what the header says, the tables and that the file has an end; no pixels
  int32_t upright = 1;  // 1: turned as the camera held it (EXIF); 0: as stored
  // Room for so many bytes; null: there is none. Called once at most, after the limits were checked. The pixels are
  // there.
  uint8_t *(*room)(void *user, uint64_t bytes) = nullptr;
  void *user = nullptr;

  uint8_t *pixels = nullptr;      // height rows of width pixels of channels bytes
  uint32_t width = 0, height = 0; // after turning
  int32_t orientation = 1;        // of the file, 1 to 8
  int32_t stored = 0;     // channels in the file: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha, or CMYK
  char message[256] = {}; // of an error: what was expected, what was found
};

namespace mtrun::images {

// No side is longer, no picture has more pixels: they are refused before anything is allocated for them.
inline constexpr uint32_t maxSide = 65500;
inline constexpr uint64_t maxPixels = 100'000'000;
inline constexpr int maxScans = 100; // of a progressive JPEG; more are made to keep a reader busy

inline bool isJpeg(const uint8_t *bytes, uint64_t size) { return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0; }
inline bool isPng(const uint8_t *bytes, uint64_t size) {
  return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

// MT_CORRUPT, MT_INVALID (a kind of file that we do not read), MT_NO_MEMORY, with a message.
mt_code decodeJpeg(mtrun_picture &picture);
mt_code decodePng(mtrun_picture &picture);

// MT_INVALID: the sides are beyond the limits.
mt_code checkSize(mtrun_picture &picture);
// Asks for room for pixels of `decoded` bytes, and as much again if they are to be turned. MT_NO_MEMORY.
mt_code makeRoom(mtrun_picture &picture, uint32_t decoded);
// Pixels of `decoded` bytes to grey if that is wanted, and upright if that is.
void finish(mtrun_picture &picture, uint32_t decoded);
// Sets the message.
mt_code fail(mtrun_picture &picture, mt_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The orientation in EXIF data that begins with its TIFF header; 1 if there is none or it is damaged.
int readOrientation(const uint8_t *tiff, uint64_t size);

// Luminance as libjpeg computes it: 0.299 R + 0.587 G + 0.114 B in 16 bits of fraction, rounded.
inline uint8_t grey(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

} // namespace mtrun::images

extern "C" {
// The version of this header that the library was made from.
MT_API int32_t mtrun_images_version(void);
// MT_OK, or as above.
MT_API int32_t mtrun_images_decode(mtrun_picture *picture);
}
namespace mtrun::images {
inline constexpr int32_t headerVersion = 1;
}
