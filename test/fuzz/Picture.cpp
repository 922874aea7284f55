// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a picture: the decoders say no, or give pixels that are all there. Quick looks and full ones.
#include "runtime/data/images/Decode.h"
#include "test/fuzz/harness.h"

#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::vector<uint8_t> bytes(data + 1, data + size), room;
  mtrun_picture picture;
  picture.bytes = bytes.data();
  picture.size = bytes.size();
  picture.channels = data[0] & 1 ? 1 : 3;
  picture.quick = data[0] >> 1 & 1;
  picture.upright = data[0] >> 2 & 1;
  picture.user = &room;
  picture.room = [](void *user, uint64_t wanted) -> uint8_t * {
    if (wanted > 1 << 18) // a fuzzer's own limit: large pictures are slow and no different
      return nullptr;
    auto &room = *static_cast<std::vector<uint8_t> *>(user);
    room.assign(wanted, 0xa5);
    return room.data();
  };
  int32_t code = mtrun_images_decode(&picture);
  if (code != MT_OK && strlen(picture.message) == 0)
    __builtin_trap();
  if (code != MT_OK || picture.quick)
    return 0;
  uint64_t count = uint64_t(picture.width) * picture.height * static_cast<uint64_t>(picture.channels);
  readAll({picture.pixels, count});
  return 0;
}
