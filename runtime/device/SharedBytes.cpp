// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SharedBytes.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

namespace mtrun {
namespace {

constexpr size_t pieceBytes = size_t{1} << 24;
constexpr uint64_t maxBytes = uint64_t{1} << 46; // more than any memory
constexpr auto nap = std::chrono::microseconds(20);

Status waitFor(Transport &transport, ProcessGroup &group, int request) {
  for (bool done = false;;) {
    if (Status status = transport.test(request, done); !status.ok() || done)
      return status;
    if (Status status = group.check(); !status.ok()) {
      transport.abandon();
      return status;
    }
    std::this_thread::sleep_for(nap);
  }
}

// Processes that have the bytes send them to as many that lack them, until all have them.
class Broadcast {
public:
  Broadcast(Transport &transport, ProcessGroup &group, int root)
      : transport_(transport), group_(group), root_(root), place_(at(transport.process() - root)) {}

  Status run(void *data, size_t bytes) {
    int mask = 1;
    while (mask < processes() && (place_ & mask) == 0)
      mask <<= 1;
    for (size_t begin = 0; begin < bytes; begin += pieceBytes)
      if (Status status = pass(static_cast<std::byte *>(data) + begin, std::min(pieceBytes, bytes - begin), mask);
          !status.ok())
        return status;
    return {};
  }

private:
  int processes() const { return transport_.processes(); }
  int at(int offset) const { return (offset + processes()) % processes(); }

  Status pass(std::byte *data, size_t bytes, int mask) {
    group_.beginPart();
    int request = 0;
    if (mask < processes()) {
      Status status = transport_.receive(at(place_ - mask + root_), 0, data, bytes, request);
      if (status = status.ok() ? wait(request) : status; !status.ok())
        return status;
    }
    for (int next = mask >> 1; next > 0; next >>= 1) {
      if (place_ + next >= processes())
        continue;
      Status status = transport_.send(at(place_ + next + root_), 0, data, bytes, request);
      if (status = status.ok() ? wait(request) : status; !status.ok())
        return status;
    }
    return {};
  }

  Status wait(int request) { return waitFor(transport_, group_, request); }

  Transport &transport_;
  ProcessGroup &group_;
  int root_, place_; // place_: the number of this process from the root
};

} // namespace

Status shareBytes(Transport &transport, ProcessGroup &group, std::vector<std::byte> &bytes, int root) try {
  group.begin();
  Broadcast broadcast(transport, group, root);
  uint64_t size = bytes.size();
  Status status = broadcast.run(&size, sizeof size);
  if (status.ok() && size > maxBytes)
    status = {MT_LOST, "expected at most " + std::to_string(maxBytes) + " bytes of process " + std::to_string(root) +
                           ", found " + std::to_string(size)};
  if (status.ok()) {
    bytes.resize(size);
    status = broadcast.run(bytes.data(), bytes.size());
  }
  if (!status.ok())
    return group.lose(status.message(), status.code());
  group.end();
  return {};
} catch (const std::bad_alloc &) {
  return group.lose("process " + std::to_string(group.process()) +
                        " has too little memory for the variables of process " + std::to_string(root),
                    MT_NO_MEMORY);
}

static Status passParts(Transport &transport, ProcessGroup &group, std::span<const SharedPart> parts) {
  bool receives = transport.process() == 0;
  for (const SharedPart &part : parts)
    for (uint64_t at = 0; at < part.bytes; at += pieceBytes) {
      group.beginPart();
      auto bytes = static_cast<size_t>(std::min<uint64_t>(pieceBytes, part.bytes - at));
      int request = 0;
      Status status = receives ? transport.receive(part.process, 0, part.memory + at, bytes, request)
                               : transport.send(0, 0, part.memory + at, bytes, request);
      if (status = status.ok() ? waitFor(transport, group, request) : status; !status.ok())
        return status;
    }
  return {};
}

Status collectParts(Transport &transport, ProcessGroup &group, std::span<const SharedPart> parts) {
  group.begin();
  if (Status status = passParts(transport, group, parts); !status.ok())
    return group.lose(status.message(), status.code());
  group.end();
  return {};
}

} // namespace mtrun
