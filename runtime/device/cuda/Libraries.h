// SPDX-License-Identifier: Apache-2.0
//
// Chooses the kernels of a plan that run as calls of NVIDIA's libraries, and enqueues the calls. docs/libraries.md.
#pragma once

#include "runtime/device/DeviceGroup.h"
#include "runtime/device/cuda/CallLibrary.h"
#include "runtime/device/cuda/Gpus.h"
#include "runtime/device/cuda/Tuning.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mtrun::cuda {

// How a kernel with a library call runs.
struct Choice {
  const mt::plan::LibraryCall *call = nullptr; // null: the generated kernel
  CallSizes sizes;
  Algorithm algorithm;
};

// Returns `count` numbers in [-1, 1) for test operands, a function of `seed`.
std::vector<float> tryNumbers(uint64_t count, uint64_t seed);

class Libraries {
public:
  explicit Libraries(const Driver &driver) : driver_(driver) {}
  ~Libraries(); // must be called while the GPUs' contexts exist

  // Opens the libraries that the plan's calls need on every GPU, and chooses for each kernel. Modules must be loaded;
  // `gpus` must outlive this object. MT_INVALID, MT_DEVICE.
  Status choose(const Plan &plan, const std::vector<Gpu> &gpus, const GroupOptions &options);

  // Return the bytes of the workspace that all calls share on a device with at most `maxRows` rows, and of the tables
  // of calls for a run.
  uint64_t workspaceBytes(int64_t maxRows) const;
  uint64_t tableBytes(const mt::plan::Program &program) const;

  // How layOut() allocates and fills device memory. `tables` receives an element per step of the program, null if the
  // step is not a call.
  struct Memory {
    std::function<Status(uint64_t bytes, std::byte **place)> allocate;
    std::function<void(std::byte *to, const void *from, uint64_t bytes)> copy;
  };
  Status layOut(int device, const DeviceProgram &program, const Memory &memory, std::vector<std::byte *> &tables);

  // Returns true if the step's kernel runs as a call.
  bool has(const BoundStep &step) const { return choiceOf(step).call; }
  // Enqueues the call. `params`: the device's mt_kernel_params; `table`: the step's element from layOut().
  Status enqueue(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step,
                 const std::byte *params, const std::byte *table, Stream stream);

  // Returns the hash of the tuning file in hexadecimal digits; "" if there is none.
  std::string tuning() const { return tuning_; }

  // Returns what determines the bits of calls: the libraries, their versions and a hash of the chosen algorithms; or
  // "none".
  std::string conditions() const;

  // For tuning: the conditions of the choices, the algorithms of a step's call, and setting one of them.
  const TuningPlace &place() const { return place_; }
  uint64_t batch() const { return tables_->batch(); }
  const char *kernelName(const BoundStep &step) const;
  Status algorithms(const BoundStep &step, std::vector<Algorithm> &found);
  void setAlgorithm(const BoundStep &step, const Algorithm &algorithm);
  const mt::plan::LibraryCall *callOf(const BoundStep &step) const;
  int64_t shards(const DeviceProgram &program) const { return program.maxRows / shardRows_; }
  // Enqueues only the library's part of a call, for some of the shards; and the result of one shard.
  Status enqueueShards(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step, int64_t first,
                       int64_t shards, Stream stream);
  std::span<std::byte> shardResults(int device, const DeviceProgram &program, const BoundStep &step, int64_t shard);
  // Returns true if calls are checked before the first step. Tuning checks each algorithm itself.
  bool checksCalls() const { return !choices_.empty() && !tunes_; }
  // Returns true if an argument of the step's kernel is a constant of the plan in any launch.
  bool readsConstant(const BoundStep &step, int64_t argument) const;

private:
  enum Helper { clearRows, sumShards, transpose, helpers };
  // The libraries' handles and the functions of helper kernels on one GPU.
  struct OnGpu {
    const Gpu *gpu = nullptr;
    std::unique_ptr<CallLibrary> blas, dnn; // null: the plan needs no call of it, or it is not installed
    std::array<Function, helpers> functions = {};
  };
  // The offsets of the parts of a call's workspace, for a number of shards.
  struct Cut {
    uint64_t transposed = 0, partials = 0, library = 0, end = 0; // offsets; `transposed` is 0
  };

  Status openOn(const std::vector<Gpu> &gpus, bool images, int driverVersion);
  CallLibrary *libraryOf(OnGpu &on, const mt::plan::LibraryCall &call) const {
    return (isConvolution(call) ? on.dnn : on.blas).get();
  }
  void close(bool images);
  Status findHelpers();
  void setPlace(const Plan &plan, int driverVersion);
  Status readChoices(const std::string &path, const Tuning &tuned);
  CallPlaces placesOf(int device, const DeviceProgram &program, const BoundStep &step, int64_t first);
  Status chooseAll(const mt::plan::Plan &tables, const GroupOptions &options);
  bool isLikely(const mt::plan::Kernel &kernel) const;
  Status choose(const mt::plan::Kernel &kernel, bool required, Choice &choice);
  Cut cut(const Choice &choice, int64_t shards) const;
  static uint32_t kernelOf(const BoundStep &step) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(step.kernel)) -
           1; // CudaDevices::kernel() makes handles from indices
  }
  const Choice &choiceOf(const BoundStep &step) const;
  OnGpu &on(const Gpu &gpu);
  Status launch(OnGpu &on, Helper helper, int64_t tiles, unsigned segments, const std::byte *params,
                const std::byte *table, Stream stream) const;

  const Driver &driver_;
  const mt::plan::Plan *tables_ = nullptr;
  TuningPlace place_;
  std::string tuning_;
  bool tunes_ = false;
  std::vector<OnGpu> gpus_;
  std::map<uint32_t, Choice> choices_; // by kernel
  int64_t shardRows_ = 1;
  int64_t shards_ = 1;
  uint64_t most_ = 0;                     // maximum workspace in bytes, from the plan
  std::map<int, std::byte *> workspaces_; // by device
};

} // namespace mtrun::cuda
