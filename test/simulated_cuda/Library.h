// SPDX-License-Identifier: Apache-2.0
//
// What simulated libraries have in common: handles that must be freed, work on streams of the simulated driver, and
// sums whose bits depend on what a library's may depend on.
#pragma once

#include "Simulator.h"

#include <cmath>
#include <cstring>

namespace simulated {

// Reports handles that are left when the process ends.
template <typename... T> struct Leftovers {
  explicit Leftovers(const char *library, const Handles<T> &...handles) : library(library), lists(&handles...) {}
  ~Leftovers() {
    std::apply([&](const auto *...list) { (check(*list), ...); }, lists);
  }
  template <typename List> void check(const List &list) const {
    if (list.size())
      fatal(std::string(library) + ": not freed: " + std::to_string(list.size()) + " of kind " + list.what());
  }
  const char *library;
  std::tuple<const Handles<T> *...> lists;
};

// Memory of `device`, aligned; a null pointer and everything else ends the process.
template <typename T>
T *onDevice(const void *place, uint64_t elements, int device, uint64_t alignment, const char *call) {
  const Memory *memory = simulator().find(place, elements * sizeof(T), call);
  if (!memory || memory->device != device)
    fatal(std::string(call) + " of memory that is not its device's");
  if (reinterpret_cast<uintptr_t>(place) % alignment)
    fatal(std::string(call) + " of memory that is not aligned to " + std::to_string(alignment) + " bytes");
  return static_cast<T *>(const_cast<void *>(place));
}

inline float toTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000) & ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// A sum in `chains` interleaved parts, which are added at the end: other numbers of them are other bits.
struct ChainSum {
  explicit ChainSum(unsigned chains) : chains(chains) {}
  void add(float a, float b) {
    parts[next] = std::fma(a, b, parts[next]);
    next = next + 1 == chains ? 0 : next + 1;
  }
  float get() const {
    float sum = 0;
    for (unsigned i = 0; i < chains; ++i)
      sum += parts[i];
    return sum;
  }
  unsigned chains, next = 0;
  float parts[8] = {};
};

inline void enqueueCall(CUstream_st &stream, std::function<void()> call) {
  Operation operation;
  operation.kind = Operation::Kind::Call;
  operation.call = std::move(call);
  operation.eager = !stream.capture;
  simulator().enqueue(stream, std::move(operation));
}

} // namespace simulated
