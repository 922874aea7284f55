// SPDX-License-Identifier: Apache-2.0
//
// Samples that are JPEG and PNG pictures in files, decoded and brought to a model's size when they are asked for.
#pragma once

#include "runtime/data/ImageLibrary.h"
#include "runtime/data/PictureCache.h"
#include "runtime/data/Spec.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

struct PictureShape {
  uint32_t height = 0, width = 0, channels = 0;
};

// What random choices depend on, beside the sample's index: neither threads nor devices.
struct Draw {
  bool augment = false;
  int64_t seed = 0, pass = 0; // over the data
};

// What a look at every file found.
struct PictureSurvey {
  std::vector<std::pair<uint64_t, Status>> failed;                // by index, in order
  uint32_t least[2] = {UINT32_MAX, UINT32_MAX}, most[2] = {0, 0}; // height and width
  uint64_t grey = 0, colour = 0, cmyk = 0;
};

class Pictures {
public:
  // A sample's bytes: `size` from `offset` of files[file]; size 0: all of it.
  struct Place {
    uint32_t file = 0;
    uint64_t offset = 0, size = 0;
  };
  std::vector<std::string> files;
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> loaded; // their bytes, if they are in memory
  std::vector<Place> places;
  PictureSurvey seen; // of surveyPictures

  // Opens the library; MT_IO.
  Status open(const DataSpec &spec);
  // Looks at every picture, on `threads` threads.
  PictureSurvey survey(const DataSpec &spec) const;
  // Shards out the samples that failed; `index` has their numbers in order.
  void drop(const std::vector<std::pair<uint64_t, Status>> &failed);
  // For a model's input; opens the cache. MT_INVALID, MT_IO.
  Status size(const PictureShape &shape, const DataSpec &spec);

  // Writes a sample, height x width x channels values of 0 to 255. Any thread. MT_CORRUPT, MT_IO, ... name the file.
  Status read(int64_t sample, const Draw &draw, float *out) const;
  // The bytes of its file.
  Status load(uint64_t sample, std::vector<uint8_t> &room, std::span<const uint8_t> &bytes) const;
  std::string nameOf(uint64_t sample) const;
  DecodePicture decoder() const { return decode_; }
  bool upright() const { return upright_; }

private:
  Status decode(uint64_t sample, float *out) const;
  PictureKey key() const;

  DecodePicture decode_ = nullptr;
  bool upright_ = true, flipAcross_ = false, flipDown_ = false;
  uint32_t margin_ = 0;                 // of the crop
  PictureShape shape_;                  // that read() gives
  std::shared_ptr<PictureCache> cache_; // or null
};

// Threads that the specification asks for, or as many as this process may run on, 16 at most.
int readerThreads(const DataSpec &spec);

// Surveys the pictures of a table's field and leaves out the damaged ones with a note, or names the first if the
// specification is strict. `intact` has the numbers of the others.
Status surveyPictures(const DataSpec &spec, const std::string &where, Pictures &pictures, std::vector<uint64_t> &intact,
                      std::vector<std::string> &notes);

} // namespace mtrun
