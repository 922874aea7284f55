// SPDX-License-Identifier: Apache-2.0
//
// make-pictures FOLDER COUNT [SHARDS [SIDE]]: COUNT JPEG files in FOLDER/train/CLASS/, five classes that a model can
// tell apart by the direction and colour of stripes; sides of 72 to 400 pixels, or of SIDE to 5 and a half times as
// many; every 10th grey, every 17th CMYK, every 7th rotated by EXIF. SHARDS, not 0: the same in
// FOLDER/train-0000I-of-0000N.tfrecord, features "image" and "label". The same files every time.
#include "runtime/support/crc32c.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <jpeglib.h>

namespace {

const char *const classNames[] = {"across", "along", "down", "rings", "up"};

struct Random {
  uint64_t state;
  uint32_t below(uint32_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % limit);
  }
};

// Where a stripe's phase comes from.
double phase(int label, double x, double y) {
  switch (label) {
  case 0:
    return y;
  case 1:
    return x;
  case 2:
    return x + y;
  case 3:
    return std::hypot(x, y) * 1.4;
  default:
    return x - y;
  }
}

std::string exif(int orientation) {
  std::string text("Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0", 25);
  text += static_cast<char>(orientation);
  return text + std::string(6, '\0');
}

std::string jpeg(int index, int label, uint32_t side) {
  Random random = {static_cast<uint64_t>(index) * 7919 + 1};
  for (int i = 0; i < 4; ++i)
    random.below(2);
  uint32_t more = side * 9 / 2 + 5, width = side + random.below(more), height = side + random.below(more);
  int channels = index % 17 == 16 ? 4 : index % 10 == 9 ? 1 : 3;
  double wave = 5 + random.below(12), shift = random.below(100);
  std::vector<uint8_t> row(width * static_cast<uint32_t>(channels));

  jpeg_compress_struct codec;
  jpeg_error_mgr errors;
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char *bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &bytes, &size);
  codec.image_width = width;
  codec.image_height = height;
  codec.input_components = channels;
  codec.in_color_space = channels == 4 ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 75 + static_cast<int>(random.below(20)), TRUE);
  if (index % 5 == 3)
    jpeg_simple_progression(&codec);
  jpeg_start_compress(&codec, TRUE);
  if (index % 7 == 6) {
    std::string marker = exif(2 + index / 7 % 7);
    jpeg_write_marker(&codec, JPEG_APP0 + 1, reinterpret_cast<const JOCTET *>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      double value = std::sin((phase(label, x, y) + shift) / wave) * 80 + 128;
      for (int c = 0; c < channels; ++c) {
        double tint = c == label % 3 ? 30 : -20;
        row[x * static_cast<uint32_t>(channels) + static_cast<uint32_t>(c)] =
            static_cast<uint8_t>(value + tint + random.below(16));
      }
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&codec, &rows, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  std::string result(reinterpret_cast<char *>(bytes), size);
  free(bytes);
  return result;
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string field(int number, const std::string &bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

template <typename T> std::string raw(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string record(const std::string &picture, int label) {
  std::string image = field(1, "image") + field(2, field(1, field(1, picture)));
  std::string target = field(1, "label") + field(2, field(3, field(1, varint(static_cast<uint64_t>(label)))));
  std::string example = field(1, field(1, image) + field(1, target)), length = raw<uint64_t>(example.size());
  return length + raw(mtrun::maskedCrc32c(length.data(), length.size())) + example +
         raw(mtrun::maskedCrc32c(example.data(), example.size()));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "make-pictures: expected FOLDER COUNT [SHARDS [SIDE]]\n");
    return 2;
  }
  std::string folder = argv[1];
  int count = atoi(argv[2]), shards = argc > 3 ? atoi(argv[3]) : 0;
  auto side = static_cast<uint32_t>(argc > 4 ? atoi(argv[4]) : 72);
  for (const char *name : classNames)
    std::filesystem::create_directories(folder + "/train/" + name);
  std::vector<std::ofstream> files;
  char name[64];
  for (int i = 0; i < shards; ++i) {
    snprintf(name, sizeof name, "/train-%05d-of-%05d.tfrecord", i, shards);
    files.emplace_back(folder + name, std::ios::binary);
  }
  // File by file in the order of the folder, so that both sources have the same samples in the same order.
  for (int label = 0, done = 0; label < 5; ++label)
    for (int i = label; i < count; i += 5, ++done) {
      std::string picture = jpeg(i, label, side);
      snprintf(name, sizeof name, "/%06d.jpg", i);
      std::ofstream(folder + "/train/" + classNames[label] + name, std::ios::binary) << picture;
      if (shards)
        files[static_cast<size_t>(int64_t(done) * shards / count)] << record(picture, label);
    }
  return 0;
}
