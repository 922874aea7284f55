// SPDX-License-Identifier: Apache-2.0
//
// The simulated cuDNN's descriptors.
#pragma once

#include "runtime/device/cuda/DnnFunctions.h"

#include "Library.h"

#include <array>
#include <map>
#include <optional>

namespace mtrun::cuda {
struct DnnContextObject {
  int device = 0;
  Stream stream = nullptr;
};
} // namespace mtrun::cuda

namespace simulated {

// Engines 0 gives other bits each time and 1 computes in TF32, as their notes say; 2 does no groups; 3 has a knob (2),
// which nobody proposes to leave as it is: it needs much workspace then; 4 does everything, and is a fallback.
inline constexpr int64_t dnnEngines = 5;
inline constexpr int dnnKnob = 2;
struct DnnProposal {
  int64_t engine;
  int64_t knob; // of engine 3; 0: none
};
inline constexpr int dnnInternalError = 4000, dnnNotSupported = 3000;

struct DnnAttribute {
  int type = 0;
  std::vector<std::byte> bytes;
};

struct DnnObject {
  int type = -1;
  bool ready = false;
  std::map<int, DnnAttribute> attributes;
  std::optional<DnnProposal> proposal; // of a configuration that heuristics gave
  DnnDescriptor graph = nullptr;

  template <typename T> std::vector<T> values(int attribute, int expected) const {
    auto found = attributes.find(attribute);
    if (found == attributes.end() || found->second.type != expected || found->second.bytes.size() < sizeof(T))
      fatal("a cuDNN descriptor of type " + std::to_string(type) + " without attribute " + std::to_string(attribute) +
            " of type " + std::to_string(expected));
    std::vector<T> list(found->second.bytes.size() / sizeof(T));
    std::memcpy(list.data(), found->second.bytes.data(), list.size() * sizeof(T));
    return list;
  }
  template <typename T> void setValue(int attribute, int as, T value) {
    auto *bytes = reinterpret_cast<const std::byte *>(&value);
    attributes[attribute] = {as, {bytes, bytes + sizeof value}};
  }
  // The descriptor that an attribute names.
  const DnnObject &object(int attribute, int expected) const;
};

DnnObject &dnnObject(DnnDescriptor handle, int type); // -1: of any

struct DnnTensorFacts {
  std::array<int64_t, 4> sizes, strides;
  int64_t id = 0, alignment = 1;
  bool isVirtual = false;
};

// What a graph says: one convolution, then a bias, then a ReLU, each of which may be missing.
struct DnnConvolution {
  int operation = 0; // type of its descriptor
  DnnTensorFacts x, w, y, bias;
  std::array<int64_t, 2> low, high, stride, dilation;
  bool hasBias = false, relu = false;
  int64_t result = 0; // the tensor that is stored
  int64_t groups() const { return x.sizes[1] / w.sizes[1]; }
};

DnnConvolution readConvolution(const DnnObject &graph);
bool isSupported(const DnnObject &plan);
uint64_t dnnWorkspace(const DnnObject &plan);
std::function<void()> makeWork(const DnnObject &plan, const DnnObject &pack, int device);

} // namespace simulated
