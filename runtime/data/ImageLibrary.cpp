// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/ImageLibrary.h"

#include "runtime/device/Library.h"

#include <dlfcn.h>
#include <new>

namespace mtrun {

static const char *const libraryName = "libmtrun-images.so." MTRUN_IMAGES_SOVERSION;

static Status load(DecodePicture &decode) {
  std::string place, reasons;
  void *library = openLibrary(libraryName, place, reasons);
  if (!library)
    return {MT_IO, "pictures need " + std::string(libraryName) + ", which cannot be opened: " + reasons};
  auto version = reinterpret_cast<int32_t (*)()>(dlsym(library, "mtrun_images_version"));
  decode = reinterpret_cast<DecodePicture>(dlsym(library, "mtrun_images_decode"));
  int32_t libraryVersion = version ? version() : 0;
  if (decode && libraryVersion == images::headerVersion)
    return {};
  return {MT_IO, place + ": expected version " + std::to_string(images::headerVersion) +
                     " of the pictures' library, found " + std::to_string(libraryVersion)};
}

Status openImageLibrary(DecodePicture &decode) {
  struct Opened {
    DecodePicture decode = nullptr;
    Status status;
    Opened() { status = load(decode); }
  };
  static const Opened opened;
  decode = opened.decode;
  return opened.status;
}

Status decodePicture(DecodePicture decode, std::span<const uint8_t> bytes, int32_t channels, bool upright, bool quick,
                     Picture &picture) {
  mtrun_picture request;
  request.bytes = bytes.data();
  request.size = bytes.size();
  request.channels = channels;
  request.quick = quick;
  request.upright = upright;
  request.user = &picture.room;
  request.room = [](void *user, uint64_t size) -> uint8_t * {
    auto &room = *static_cast<std::vector<uint8_t> *>(user);
    try {
      if (room.size() < size)
        room.resize(size);
    } catch (const std::bad_alloc &) {
      return nullptr;
    }
    return room.data();
  };
  int32_t code = decode(&request);
  picture.pixels = request.pixels;
  picture.width = request.width;
  picture.height = request.height;
  picture.stored = request.stored;
  return code == MT_OK ? Status() : Status(static_cast<mt_code>(code), request.message);
}

} // namespace mtrun
