// SPDX-License-Identifier: Apache-2.0
//
// JPEG and PNG files as samples, which are decoded and resized to the model's size on demand.
#pragma once

#include "runtime/data/ImageLibrary.h"
#include "runtime/data/PictureCache.h"
#include "runtime/data/Spec.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

struct PictureShape {
  uint32_t height = 0, width = 0, channels = 0;
};

// Counts of the data that a stream has read.
struct ReadCount {
  std::atomic<int64_t> bytes{0};    // of samples, as the data stores them
  std::atomic<int64_t> pictures{0}; // that were decoded
};

// Together with the sample's index, determines all random choices: they do not depend on threads or devices.
struct Draw {
  bool augment = false;
  int64_t seed = 0, pass = 0; // pass over the data
  ReadCount *count = nullptr; // counts what is read; may be null
};

// The result of reading every file before the run.
struct PictureSurvey {
  std::vector<std::pair<uint64_t, Status>> failed;                // by index, ascending
  uint32_t least[2] = {UINT32_MAX, UINT32_MAX}, most[2] = {0, 0}; // height and width
  uint64_t grey = 0, colour = 0, cmyk = 0;
};

class Pictures {
public:
  // Where a sample is stored: `size` bytes from `offset` of files[file]; size 0 stands for the whole file.
  struct Place {
    uint32_t file = 0;
    uint64_t offset = 0, size = 0;
  };
  std::vector<std::string> files;
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> loaded; // contents of the files, if they are in memory
  std::vector<Place> places;
  PictureSurvey seen; // set by surveyPictures()

  // Opens the library. MT_IO.
  Status open(const DataSpec &spec);
  // Reads every picture, in several threads.
  PictureSurvey survey(const DataSpec &spec) const;
  // Removes the samples that failed; `failed` has their indices in ascending order.
  void drop(const std::vector<std::pair<uint64_t, Status>> &failed);
  // Sets the shape for a model's input and opens the cache. MT_INVALID, MT_IO.
  Status size(const PictureShape &shape, const DataSpec &spec);

  // Writes a sample: height x width x channels values of 0 to 255. Any thread may call it. MT_CORRUPT, MT_IO and
  // others; the message names the file.
  Status read(int64_t sample, const Draw &draw, float *out) const;
  // Reads the encoded bytes of a sample.
  Status load(uint64_t sample, std::vector<uint8_t> &room, std::span<const uint8_t> &bytes) const;
  std::string nameOf(uint64_t sample) const;
  DecodePicture decoder() const { return decode_; }
  bool upright() const { return upright_; }

private:
  Status decode(uint64_t sample, ReadCount *count, float *out) const;
  PictureKey key() const;

  DecodePicture decode_ = nullptr;
  bool upright_ = true, flipAcross_ = false, flipDown_ = false;
  uint32_t margin_ = 0;                 // margin of the crop
  PictureShape shape_;                  // shape of the samples that read() writes
  std::shared_ptr<PictureCache> cache_; // may be null
};

// Returns the number of threads that the specification sets; by default the number of available CPUs, at most 16.
int readerThreads(const DataSpec &spec);

// Reads all pictures of a table's field. Damaged pictures are left out and noted; if the specification is strict, the
// first one is an error. `intact` receives the indices of the other pictures.
Status surveyPictures(const DataSpec &spec, const std::string &where, Pictures &pictures, std::vector<uint64_t> &intact,
                      std::vector<std::string> &notes);

} // namespace mtrun
