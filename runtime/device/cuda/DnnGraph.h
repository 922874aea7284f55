// SPDX-License-Identifier: Apache-2.0
//
// Describes the convolution of a shard with cuDNN's descriptors.
#pragma once

#include "runtime/device/cuda/DnnFunctions.h"
#include "runtime/plan/Calls.h"

#include <array>
#include <string>
#include <vector>

namespace mtrun::cuda {

// Makes descriptors. After the first failure all calls do nothing.
class DnnDescriptors {
public:
  explicit DnnDescriptors(const DnnFunctions &functions) : functions_(functions) {}
  ~DnnDescriptors();
  DnnDescriptors(const DnnDescriptors &) = delete;

  int code() const { return code_; } // of the first failed call, or success
  DnnDescriptor make(int type);
  void set(DnnDescriptor descriptor, int attribute, int type, int64_t count, const void *values);
  void finalize(DnnDescriptor descriptor);
  // Reads at most `most` values and returns their number. With `most` = 0 the library returns the number of values for
  // some attributes and 0 for others.
  int64_t get(DnnDescriptor descriptor, int attribute, int type, int64_t most, void *values);

  // Sets a single value.
  template <typename T> void set(DnnDescriptor descriptor, int attribute, int type, T value) {
    set(descriptor, attribute, type, 1, &value);
  }
  void setNumbers(DnnDescriptor descriptor, int attribute, std::initializer_list<int64_t> values) {
    set(descriptor, attribute, dnn::int64Type, static_cast<int64_t>(values.size()), values.begin());
  }

private:
  const DnnFunctions &functions_;
  int code_ = dnn::success;
  std::vector<DnnDescriptor> made_;
};

// An engine and its knobs: "engine 12, knobs 2:1 3:0".
struct DnnAlgorithm {
  int64_t engine = 0;
  std::vector<std::array<int64_t, 2>> knobs; // type, value

  std::string name() const;
  static bool parse(const std::string &name, DnnAlgorithm &algorithm);
};

// Ids of tensors in a variant pack.
enum DnnTensor : int64_t { dnnLeft = 1, dnnRight = 2, dnnResult = 3, dnnBias = 4 };

// The GPU of a plan: the GPU of a handle, or a described GPU that need not be installed (makeGpu).
struct DnnGpu {
  DnnHandle handle = nullptr;
  DnnDescriptor description = nullptr; // null: the handle's GPU
};
// Makes a GPU from JSON, which cuDNN 9.8 and newer support; null: not supported.
DnnDescriptor makeGpu(DnnDescriptors &made, const std::string &json);

// A convolution of one shard.
struct DnnProblem {
  const mt::plan::LibraryCall &call;
  int64_t shardRows;
  // Type of operands and results; sums and biases are F32. cuDNN 9.19 does not support F32 gradients of kernels for
  // BF16 operands.
  int type = dnn::f32;
  // Returns true if tensor cores compute in the requested precision.
  bool tensorCores() const { return type != dnn::f32 || call.math() == mt::plan::CallMath::TF32; }
};

// Makes the operation graph of a shard.
DnnDescriptor makeGraph(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem);
// Returns true if an engine is deterministic and computes in the requested arithmetic.
bool isExact(DnnDescriptors &made, DnnDescriptor engine, bool tensorCores);
// Makes the executable plan of a graph and an algorithm; null: the library does not support it, or it is not exact.
DnnDescriptor makePlan(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem, DnnDescriptor graph,
                       const DnnAlgorithm &algorithm, uint64_t &workspace);
// Returns the exact algorithms that the library proposes, with its favourite first.
std::vector<DnnAlgorithm> propose(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem,
                                  DnnDescriptor graph, int mode);

} // namespace mtrun::cuda
