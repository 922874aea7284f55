// SPDX-License-Identifier: Apache-2.0
//
// A convolution of one shard as cuDNN's descriptors.
#pragma once

#include "runtime/device/cuda/DnnFunctions.h"
#include "runtime/plan/Calls.h"

#include <array>
#include <string>
#include <vector>

namespace mtrun::cuda {

// Descriptors, made one after the other. After a call that the library refuses, nothing more happens.
class DnnDescriptors {
public:
  explicit DnnDescriptors(const DnnFunctions &functions) : functions_(functions) {}
  ~DnnDescriptors();
  DnnDescriptors(const DnnDescriptors &) = delete;

  int code() const { return code_; } // of the first call that was refused; success until then
  DnnDescriptor make(int type);
  void set(DnnDescriptor descriptor, int attribute, int type, int64_t count, const void *values);
  void finalize(DnnDescriptor descriptor);
  // At most `most` values; how many were given. Asked for none, the library says of some attributes how many there are,
  // and of others that there are none.
  int64_t get(DnnDescriptor descriptor, int attribute, int type, int64_t most, void *values);

  // One value.
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

// What a configuration computes by: "engine 12, knobs 2:1 3:0".
struct DnnAlgorithm {
  int64_t engine = 0;
  std::vector<std::array<int64_t, 2>> knobs; // type, value

  std::string name() const;
  static bool parse(const std::string &name, DnnAlgorithm &algorithm);
};

// Tensors' names in a variant pack.
enum DnnTensor : int64_t { dnnLeft = 1, dnnRight = 2, dnnResult = 3, dnnBias = 4 };

// Which GPU plans are for: that of a handle, or one that is described and need not be there (makeGpu).
struct DnnGpu {
  DnnHandle handle = nullptr;
  DnnDescriptor description = nullptr; // null: the handle's GPU
};
// A GPU described by JSON, as cuDNN 9.8 and newer take it; null: the library does not.
DnnDescriptor makeGpu(DnnDescriptors &made, const std::string &json);

// A convolution of one shard.
struct DnnProblem {
  const mt::plan::LibraryCall &call;
  int64_t shardRows;
  // Of operands and results; sums and biases are F32. cuDNN 9.19 has no gradient of a kernel in F32 of BF16 operands.
  int type = dnn::f32;
  // Whether tensor cores compute in the precision that is asked for.
  bool tensorCores() const { return type != dnn::f32 || call.math() == mt::plan::CallMath::TF32; }
};

// The operation graph of a shard.
DnnDescriptor makeGraph(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem);
// Whether an engine gives the same bits every time, in the arithmetic that is asked for.
bool isExact(DnnDescriptors &made, DnnDescriptor engine, bool tensorCores);
// The plan of a graph and an algorithm, ready to be executed; null: the library has none, or it is not exact.
DnnDescriptor makePlan(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem, DnnDescriptor graph,
                       const DnnAlgorithm &algorithm, uint64_t &workspace);
// What the library proposes that is exact, its favourite first.
std::vector<DnnAlgorithm> propose(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem,
                                  DnnDescriptor graph, int mode);

} // namespace mtrun::cuda
