// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/images/Decode.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include <png.h>
#include <zlib.h>

namespace mtrun::images {
namespace {

constexpr uint64_t signatureSize = 8; // bytes

struct Png {
  png_structp codec;
  png_infop info;
  mtrun_picture *picture;
  uint64_t at; // offset of the next byte
};

[[noreturn]] void onError(png_structp codec, png_const_charp text) {
  auto *png = static_cast<Png *>(png_get_error_ptr(codec));
  fail(*png->picture, MT_CORRUPT, "damaged PNG data: %s", text);
  png_longjmp(codec, 1);
}

void onWarning(png_structp, png_const_charp) {}

void onRead(png_structp codec, png_bytep to, png_size_t count) {
  auto *png = static_cast<Png *>(png_get_io_ptr(codec));
  if (count > png->picture->size - png->at)
    png_error(codec, "the data ends early");
  memcpy(to, png->picture->bytes + png->at, count);
  png->at += count;
}

// Checks all chunks with their checksums, from the header to the end.
mt_code checkChunks(mtrun_picture &picture) {
  uint64_t at = signatureSize;
  while (true) {
    if (picture.size - at < 12)
      return fail(picture, MT_CORRUPT, "expected a complete PNG picture, found no end of image");
    const uint8_t *chunk = picture.bytes + at;
    auto number = [](const uint8_t *b) {
      return uint32_t(b[0]) << 24 | uint32_t(b[1]) << 16 | uint32_t(b[2]) << 8 | b[3];
    };
    uint64_t length = number(chunk);
    if (length > picture.size - at - 12)
      return fail(picture, MT_CORRUPT, "expected a complete PNG picture, found no end of image");
    if (crc32_z(0, chunk + 4, length + 4) != number(chunk + 8 + length))
      return fail(picture, MT_CORRUPT, "damaged PNG data: the checksum of the bytes at %llu is wrong",
                  static_cast<unsigned long long>(at));
    if (memcmp(chunk + 4, "IEND", 4) == 0)
      return MT_OK;
    at += length + 12;
  }
}

void readInfo(Png &png) {
  mtrun_picture &picture = *png.picture;
  png_set_read_fn(png.codec, &png, onRead);
  png_set_user_limits(png.codec, maxSide, maxSide);
  png_read_info(png.codec, png.info);
  picture.width = png_get_image_width(png.codec, png.info);
  picture.height = png_get_image_height(png.codec, png.info);
  int type = png_get_color_type(png.codec, png.info);
  bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png.codec, png.info, PNG_INFO_tRNS);
  picture.stored = (type & PNG_COLOR_MASK_COLOR ? 3 : 1) + alpha;
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(png.codec, png.info, &size, &exif))
    picture.orientation = readOrientation(exif, size);
}

// Sets the output format: 8 bits per channel, grey or RGB, alpha removed. Returns the number of passes over the rows.
int setTransforms(Png &png, uint32_t decoded) {
  png_set_expand(png.codec);
  png_set_strip_16(png.codec);
  png_set_strip_alpha(png.codec);
  if (decoded == 3)
    png_set_gray_to_rgb(png.codec);
  int passes = png_set_interlace_handling(png.codec);
  png_read_update_info(png.codec, png.info);
  return passes;
}

mt_code decode(Png &png) {
  mtrun_picture &picture = *png.picture;
  readInfo(png);
  if (mt_code code = checkSize(picture); code != MT_OK || picture.quick)
    return code;
  uint32_t decoded = picture.channels == 1 && picture.stored <= 2 ? 1 : 3;
  int passes = setTransforms(png, decoded);
  uint64_t stride = uint64_t(picture.width) * decoded;
  if (png_get_rowbytes(png.codec, png.info) != stride)
    return fail(picture, MT_CORRUPT, "damaged PNG data: expected rows of %llu bytes, found %llu",
                static_cast<unsigned long long>(stride),
                static_cast<unsigned long long>(png_get_rowbytes(png.codec, png.info)));
  if (mt_code code = makeRoom(picture, decoded); code != MT_OK)
    return code;
  for (int pass = 0; pass < passes; ++pass)
    for (uint32_t y = 0; y < picture.height; ++y)
      png_read_row(png.codec, picture.pixels + y * stride, nullptr);
  png_read_end(png.codec, nullptr);
  finish(picture, decoded);
  return MT_OK;
}

} // namespace

mt_code decodePng(mtrun_picture &picture) {
  if (picture.quick)
    if (mt_code code = checkChunks(picture); code != MT_OK)
      return code;
  Png png = {};
  png.picture = &picture;
  png.codec = png_create_read_struct(PNG_LIBPNG_VER_STRING, &png, onError, onWarning);
  png.info = png.codec ? png_create_info_struct(png.codec) : nullptr;
  if (!png.info) {
    png_destroy_read_struct(&png.codec, nullptr, nullptr);
    return fail(picture, MT_NO_MEMORY, "out of memory for a PNG picture");
  }
  mt_code code = MT_CORRUPT;
  if (setjmp(png_jmpbuf(png.codec)) == 0)
    code = decode(png);
  png_destroy_read_struct(&png.codec, &png.info, nullptr);
  return code;
}

} // namespace mtrun::images
