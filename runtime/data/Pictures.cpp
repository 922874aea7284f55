// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Pictures.h"
#include "runtime/data/Order.h"
#include "runtime/data/Resize.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mtrun {

constexpr uint64_t maxFile = uint64_t(1) << 30; // maximum bytes of a picture

int readerThreads(const DataSpec &spec) {
  cpu_set_t set;
  int here = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return spec.threads ? static_cast<int>(spec.threads) : std::clamp(here, 1, 16);
}

Status Pictures::open(const DataSpec &spec) {
  upright_ = spec.upright;
  flipAcross_ = spec.flipAcross;
  flipDown_ = spec.flipDown;
  margin_ = spec.crop;
  return openImageLibrary(decode_);
}

std::string Pictures::nameOf(uint64_t sample) const {
  const Place &place = places[sample];
  return files[place.file] + (place.size ? ", byte " + std::to_string(place.offset) : "");
}

Status Pictures::load(uint64_t sample, std::vector<uint8_t> &room, std::span<const uint8_t> &bytes) const {
  const Place &place = places[sample];
  if (place.file < loaded.size() && loaded[place.file]) {
    bytes = std::span<const uint8_t>(*loaded[place.file]).subspan(place.offset, place.size);
    return {};
  }
  const std::string &path = files[place.file];
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return ioError("cannot open", path, errno);
  struct stat facts;
  Status status;
  if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode))
    status = {MT_IO, "cannot read " + path + ": it is not a regular file"};
  uint64_t size = place.size ? place.size : static_cast<uint64_t>(facts.st_size), got = 0;
  if (status.ok() && size > maxFile)
    status = {MT_INVALID, path + ": expected a picture of at most " + std::to_string(maxFile) + " bytes, found " +
                              std::to_string(size)};
  if (status.ok() && room.size() < size)
    room.resize(size);
  while (status.ok() && got < size) {
    ssize_t count = pread(file, room.data() + got, size - got, static_cast<off_t>(place.offset + got));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      status = ioError("cannot read", path, errno);
    else if (count == 0)
      status = {MT_IO,
                "cannot read " + path + ": expected " + std::to_string(size) + " bytes, found " + std::to_string(got)};
    else
      got += static_cast<uint64_t>(count);
  }
  close(file);
  bytes = {room.data(), size};
  return status;
}

namespace {

struct Scratch {
  std::vector<uint8_t> file;
  Picture picture;
  std::vector<float> resized;
};

Scratch &scratch() {
  static thread_local Scratch own;
  return own;
}

} // namespace

PictureSurvey Pictures::survey(const DataSpec &spec) const {
  PictureSurvey result;
  std::mutex mutex;
  std::atomic<uint64_t> next{0};
  auto look = [&] {
    PictureSurvey own;
    std::vector<uint8_t> room;
    Picture picture;
    for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < places.size();) {
      std::span<const uint8_t> bytes;
      Status status = load(i, room, bytes);
      if (status.ok())
        status = decodePicture(decode_, bytes, 3, upright_, spec.check != DataSpec::Check::Full, picture)
                     .in(nameOf(i) + ": ");
      if (!status.ok()) {
        own.failed.emplace_back(i, std::move(status));
        continue;
      }
      for (int side : {0, 1}) {
        uint32_t length = side ? picture.width : picture.height;
        own.least[side] = std::min(own.least[side], length);
        own.most[side] = std::max(own.most[side], length);
      }
      ++(picture.stored <= 2 ? own.grey : picture.stored == 3 ? own.colour : own.cmyk);
    }
    std::lock_guard lock(mutex);
    for (int side : {0, 1}) {
      result.least[side] = std::min(result.least[side], own.least[side]);
      result.most[side] = std::max(result.most[side], own.most[side]);
    }
    result.grey += own.grey;
    result.colour += own.colour;
    result.cmyk += own.cmyk;
    std::move(own.failed.begin(), own.failed.end(), std::back_inserter(result.failed));
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < readerThreads(spec); ++i)
    threads.emplace_back(look);
  look();
  for (std::thread &thread : threads)
    thread.join();
  std::sort(result.failed.begin(), result.failed.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  return result;
}

Status Pictures::size(const PictureShape &shape, const DataSpec &spec) {
  shape_ = shape;
  if (uint64_t(shape.height) + margin_ > images::maxSide || uint64_t(shape.width) + margin_ > images::maxSide)
    return {MT_INVALID, "data: expected sides of at most " + std::to_string(images::maxSide) +
                            " with the margin of the "
                            "crop, found " +
                            std::to_string(std::max(shape.height, shape.width) + margin_)};
  if (spec.cache.empty())
    return {};
  cache_ = std::make_shared<PictureCache>();
  return cache_->open(spec.cache, key(), places.size(),
                      uint64_t(shape.height + margin_) * (shape.width + margin_) * shape.channels);
}

PictureKey Pictures::key() const {
  XXH3_state_t *state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const std::string &file : files) {
    struct stat facts = {};
    (void)::stat(file.c_str(), &facts); // a missing file is reported when it is read
    int64_t seen[4] = {facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, static_cast<int64_t>(file.size())};
    XXH3_128bits_update(state, seen, sizeof seen);
    XXH3_128bits_update(state, file.data(), file.size());
  }
  for (const Place &place : places) {
    uint64_t parts[3] = {place.file, place.offset, place.size};
    XXH3_128bits_update(state, parts, sizeof parts);
  }
  uint32_t format[5] = {shape_.height + margin_, shape_.width + margin_, shape_.channels, upright_, 1};
  XXH3_128bits_update(state, format, sizeof format);
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return {hash.low64, hash.high64};
}

// Decodes a picture to the model's size plus the margin of the crop.
Status Pictures::decode(uint64_t sample, ReadCount *count, float *out) const {
  Scratch &own = scratch();
  std::span<const uint8_t> bytes;
  if (Status s = load(sample, own.file, bytes); !s.ok())
    return s;
  if (count) {
    count->bytes += static_cast<int64_t>(bytes.size());
    ++count->pictures;
  }
  if (Status s = decodePicture(decode_, bytes, static_cast<int32_t>(shape_.channels), upright_, false, own.picture);
      !s.ok())
    return std::move(s).in(nameOf(sample) + ": ");
  resizeBilinear(own.picture.pixels, own.picture.height, own.picture.width, shape_.channels, out,
                 shape_.height + margin_, shape_.width + margin_);
  return {};
}

Status Pictures::read(int64_t index, const Draw &draw, float *out) const {
  auto sample = static_cast<uint64_t>(index);
  uint32_t height = shape_.height, width = shape_.width, channels = shape_.channels;
  uint64_t elements = uint64_t(height + margin_) * (width + margin_) * channels;
  bool flips = draw.augment && (flipAcross_ || flipDown_);
  if (!cache_ && margin_ == 0 && !flips)
    return decode(sample, draw.count, out);
  const float *from = cache_ ? cache_->find(sample) : nullptr;
  if (!from) {
    std::vector<float> &resized = scratch().resized;
    resized.resize(elements);
    if (Status s = decode(sample, draw.count, resized.data()); !s.ok())
      return s;
    if (cache_)
      cache_->put(sample, resized.data());
    from = resized.data();
  }
  // Bit 62 of the counter makes these numbers independent of the numbers for the order.
  std::array<uint32_t, 4> bits = philox(uint64_t(draw.seed), sample, uint64_t(draw.pass) | uint64_t(1) << 62);
  bool across = flips && flipAcross_ && bits[0] >> 31, down = flips && flipDown_ && bits[1] >> 31;
  auto offset = [&](uint32_t word) {
    return draw.augment ? static_cast<uint32_t>(uint64_t(word) * (margin_ + 1) >> 32) : margin_ / 2;
  };
  uint32_t top = offset(bits[2]), left = offset(bits[3]);
  for (uint32_t y = 0; y < height; ++y) {
    const float *row = from + (uint64_t(top + (down ? height - 1 - y : y)) * (width + margin_) + left) * channels;
    if (!across) {
      out = std::copy_n(row, uint64_t(width) * channels, out);
      continue;
    }
    for (uint32_t x = 0; x < width; ++x)
      out = std::copy_n(row + uint64_t(width - 1 - x) * channels, channels, out);
  }
  return {};
}

void Pictures::drop(const std::vector<std::pair<uint64_t, Status>> &failed) {
  size_t remaining = 0, next = 0;
  for (uint64_t i = 0; i < places.size(); ++i) {
    if (next < failed.size() && failed[next].first == i)
      ++next;
    else
      places[remaining++] = places[i];
  }
  places.resize(remaining);
}

Status surveyPictures(const DataSpec &spec, const std::string &where, Pictures &pictures, std::vector<uint64_t> &intact,
                      std::vector<std::string> &notes) {
  uint64_t all = pictures.places.size();
  PictureSurvey survey;
  if (spec.check != DataSpec::Check::None && !spec.keepDamaged)
    survey = pictures.survey(spec);
  for (const auto &[sample, status] : survey.failed)
    if (spec.strict || status.code() == MT_NO_MEMORY)
      return status;
  for (uint64_t i = 0, next = 0; i < all; ++i) {
    if (next < survey.failed.size() && survey.failed[next].first == i)
      ++next;
    else
      intact.push_back(i);
  }
  if (!survey.failed.empty())
    notes.push_back(where + ": " + std::to_string(survey.failed.size()) + " of " + std::to_string(all) +
                    " pictures are damaged and left out; the first: " + survey.failed[0].second.message());
  if (intact.empty() && all > 0)
    return {survey.failed[0].second.code(), notes.back()};
  pictures.drop(survey.failed);
  pictures.seen = std::move(survey);
  return {};
}

} // namespace mtrun
