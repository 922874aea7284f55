// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/images/Decode.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace mtrun::images {

mt_code fail(mtrun_picture &picture, mt_code code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(picture.message, sizeof picture.message, format, arguments);
  va_end(arguments);
  return code;
}

mt_code checkSize(mtrun_picture &picture) {
  if (picture.width == 0 || picture.height == 0)
    return fail(picture, MT_CORRUPT, "expected a picture of at least 1 x 1 pixels, found %u x %u", picture.width,
                picture.height);
  uint64_t pixels = uint64_t(picture.width) * picture.height;
  if (picture.width > maxSide || picture.height > maxSide || pixels > maxPixels)
    return fail(picture, MT_INVALID, "expected at most %llu pixels and sides of %u, found %u x %u",
                static_cast<unsigned long long>(maxPixels), maxSide, picture.width, picture.height);
  return MT_OK;
}

static bool turns(const mtrun_picture &picture) { return picture.upright && picture.orientation > 1; }

mt_code makeRoom(mtrun_picture &picture, uint32_t decoded) {
  uint64_t bytes = uint64_t(picture.width) * picture.height * decoded * (turns(picture) ? 2 : 1);
  picture.pixels = picture.room ? picture.room(picture.user, bytes) : nullptr;
  if (!picture.pixels)
    return fail(picture, MT_NO_MEMORY, "cannot allocate %llu bytes for %u x %u pixels",
                static_cast<unsigned long long>(bytes), picture.width, picture.height);
  return MT_OK;
}

// Returns row and column of the stored pixel for the upright picture's pixel (y, x). EXIF 2.32, tag 0x0112.
static std::pair<uint32_t, uint32_t> source(int orientation, uint32_t y, uint32_t x, uint32_t height, uint32_t width) {
  switch (orientation) {
  case 2:
    return {y, width - 1 - x};
  case 3:
    return {height - 1 - y, width - 1 - x};
  case 4:
    return {height - 1 - y, x};
  case 5:
    return {x, y};
  case 6:
    return {height - 1 - x, y};
  case 7:
    return {height - 1 - x, width - 1 - y};
  case 8:
    return {x, width - 1 - y};
  }
  return {y, x};
}

void finish(mtrun_picture &picture, uint32_t decoded) {
  uint32_t height = picture.height, width = picture.width, channels = static_cast<uint32_t>(picture.channels);
  uint64_t count = uint64_t(width) * height;
  if (channels == 1 && decoded == 3)
    for (uint64_t i = 0; i < count; ++i)
      picture.pixels[i] = grey(picture.pixels[3 * i], picture.pixels[3 * i + 1], picture.pixels[3 * i + 2]);
  if (!turns(picture))
    return;
  uint8_t *to = picture.pixels + count * channels;
  if (picture.orientation >= 5)
    std::swap(picture.width, picture.height);
  const uint8_t *from = picture.pixels;
  picture.pixels = to;
  for (uint32_t y = 0; y < picture.height; ++y)
    for (uint32_t x = 0; x < picture.width; ++x) {
      auto [row, column] = source(picture.orientation, y, x, height, width);
      const uint8_t *pixel = from + (uint64_t(row) * width + column) * channels;
      for (uint32_t c = 0; c < channels; ++c)
        *to++ = pixel[c];
    }
}

int readOrientation(const uint8_t *tiff, uint64_t size) {
  if (size < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M'))
    return 1;
  bool little = tiff[0] == 'I';
  auto number = [&](uint64_t at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint32_t(tiff[at + static_cast<uint64_t>(i)]) << 8 * (little ? i : bytes - 1 - i);
    return value;
  };
  uint64_t at = number(4, 4); // offset of the first directory
  if (number(2, 2) != 42 || at > size - 2)
    return 1;
  uint32_t entries = number(at, 2);
  at += 2;
  for (uint32_t i = 0; i < entries && size - at >= 12; ++i, at += 12)
    if (number(at, 2) == 0x0112 && number(at + 2, 2) == 3) { // 3: type SHORT
      uint32_t orientation = number(at + 8, 2);
      return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
    }
  return 1;
}

} // namespace mtrun::images

using namespace mtrun::images;

int32_t mtrun_images_version(void) { return headerVersion; }

int32_t mtrun_images_decode(mtrun_picture *picture) {
  if (picture->channels != 1 && picture->channels != 3)
    return fail(*picture, MT_INVALID, "expected 1 or 3 channels, found %d", picture->channels);
  if (isJpeg(picture->bytes, picture->size))
    return decodeJpeg(*picture);
  if (isPng(picture->bytes, picture->size))
    return decodePng(*picture);
  if (picture->size == 0)
    return fail(*picture, MT_CORRUPT, "expected a JPEG or PNG picture, found no bytes");
  char firstBytes[32] = "";
  size_t used = 0;
  for (uint64_t i = 0; i < picture->size && i < 8; ++i)
    used += static_cast<size_t>(snprintf(firstBytes + used, sizeof firstBytes - used, " %02x", picture->bytes[i]));
  return fail(*picture, MT_CORRUPT, "expected a JPEG or PNG picture, found bytes%s", firstBytes);
}
