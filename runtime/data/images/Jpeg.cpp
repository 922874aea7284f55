// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/images/Decode.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

namespace mtrun::images {
namespace {

// The state of a decoder. libjpeg reports errors by a function that must not return.
struct Jpeg {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  jmp_buf out;
  mtrun_picture *picture;
  bool ended; // the data ended early
};

[[noreturn]] void onError(j_common_ptr codec) {
  auto *jpeg = static_cast<Jpeg *>(codec->client_data);
  char text[JMSG_LENGTH_MAX];
  codec->err->format_message(codec, text);
  if (text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  fail(*jpeg->picture, MT_CORRUPT, "damaged JPEG data: %s", text);
  longjmp(jpeg->out, codec->err->msg_code == JERR_OUT_OF_MEMORY ? MT_NO_MEMORY : MT_CORRUPT);
}

// Receives warnings. Pictures with additional bytes are common and complete; a picture that ends early is not.
void onMessage(j_common_ptr codec, int level) {
  auto *jpeg = static_cast<Jpeg *>(codec->client_data);
  if (level < 0 && (codec->err->msg_code == JWRN_JPEG_EOF || codec->err->msg_code == JWRN_HIT_MARKER))
    jpeg->ended = true;
}

void onProgress(j_common_ptr codec) {
  auto *jpeg = static_cast<Jpeg *>(codec->client_data);
  if (jpeg->codec.input_scan_number <= maxScans)
    return;
  fail(*jpeg->picture, MT_INVALID, "expected a progressive JPEG of at most %d scans, found more", maxScans);
  longjmp(jpeg->out, MT_INVALID);
}

constexpr uint8_t exif[6] = {'E', 'x', 'i', 'f', 0, 0};

void readHeader(Jpeg &jpeg) {
  jpeg_decompress_struct &codec = jpeg.codec;
  mtrun_picture &picture = *jpeg.picture;
  jpeg_create_decompress(&codec);
  codec.client_data = &jpeg;
  codec.progress = &jpeg.progress;
  jpeg_mem_src(&codec, picture.bytes, picture.size);
  jpeg_save_markers(&codec, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&codec, TRUE);
  picture.width = codec.image_width;
  picture.height = codec.image_height;
  picture.stored = codec.num_components;
  for (jpeg_saved_marker_ptr marker = codec.marker_list; marker; marker = marker->next)
    if (marker->data_length > sizeof exif && memcmp(marker->data, exif, sizeof exif) == 0) {
      picture.orientation = readOrientation(marker->data + sizeof exif, marker->data_length - sizeof exif);
      break;
    }
}

// Converts CMYK to RGB. Adobe's programs store inverted values.
void fromCmyk(const uint8_t *from, uint8_t *to, uint32_t width, bool inverted) {
  for (uint32_t x = 0; x < width; ++x, from += 4, to += 3)
    for (int c = 0; c < 3; ++c) {
      uint32_t ink = inverted ? from[c] : 255u - from[c], black = inverted ? from[3] : 255u - from[3];
      to[c] = static_cast<uint8_t>(ink * black / 255);
    }
}

bool hasEnd(const jpeg_source_mgr &source) {
  for (size_t i = source.bytes_in_buffer; i >= 2; --i)
    if (source.next_input_byte[i - 2] == 0xff && source.next_input_byte[i - 1] == JPEG_EOI)
      return true;
  return false;
}

mt_code decode(Jpeg &jpeg) {
  jpeg_decompress_struct &codec = jpeg.codec;
  mtrun_picture &picture = *jpeg.picture;
  readHeader(jpeg);
  if (mt_code code = checkSize(picture); code != MT_OK)
    return code;
  bool cmyk = codec.num_components == 4;
  uint32_t decoded = cmyk ? 3 : static_cast<uint32_t>(picture.channels);
  codec.out_color_space = cmyk ? JCS_CMYK : decoded == 1 ? JCS_GRAYSCALE : JCS_RGB;
  if (!picture.quick)
    if (mt_code code = makeRoom(picture, decoded); code != MT_OK)
      return code;
  jpeg_start_decompress(&codec);
  uint64_t stride = uint64_t(picture.width) * decoded;
  JSAMPARRAY row = nullptr;
  if (cmyk || picture.quick)
    row = codec.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&codec), JPOOL_IMAGE,
                                  picture.width * static_cast<uint32_t>(codec.output_components), 1);
  if (picture.quick) {
    jpeg_read_scanlines(&codec, row, 1);
    // After the last row of blocks the decoder has read the next marker.
    bool atEnd = jpeg_input_complete(&codec) || codec.unread_marker == JPEG_EOI;
    bool whole = !jpeg.ended && (atEnd || hasEnd(*codec.src));
    return whole ? MT_OK : fail(picture, MT_CORRUPT, "expected a complete JPEG picture, found no end of image");
  }
  while (codec.output_scanline < codec.output_height) {
    uint8_t *to = picture.pixels + codec.output_scanline * stride;
    JSAMPROW direct = to;
    jpeg_read_scanlines(&codec, cmyk ? row : &direct, 1);
    if (cmyk)
      fromCmyk(row[0], to, picture.width, codec.saw_Adobe_marker);
  }
  jpeg_finish_decompress(&codec);
  if (jpeg.ended)
    return fail(picture, MT_CORRUPT, "expected a complete JPEG picture, found no end of image");
  finish(picture, decoded);
  return MT_OK;
}

} // namespace

mt_code decodeJpeg(mtrun_picture &picture) {
  Jpeg jpeg = {};
  jpeg.picture = &picture;
  jpeg.codec.err = jpeg_std_error(&jpeg.errors);
  jpeg.codec.client_data = &jpeg;
  jpeg.errors.error_exit = onError;
  jpeg.errors.emit_message = onMessage;
  jpeg.progress.progress_monitor = onProgress;
  auto code = static_cast<mt_code>(setjmp(jpeg.out));
  if (code == MT_OK)
    code = decode(jpeg);
  jpeg_destroy_decompress(&jpeg.codec);
  return code;
}

} // namespace mtrun::images
