// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of a plan run as calls of NVIDIA's libraries, and their part of a program's graph. docs/libraries.md.
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

// What runs a kernel that a library has a call for.
struct Choice {
  const mt::plan::LibraryCall *call = nullptr; // null: the generated kernel
  CallSizes sizes;
  Algorithm algorithm;
};

// Numbers in [-1, 1) to try a call with, the same each time.
std::vector<float> tryNumbers(uint64_t count, uint64_t seed);

class Libraries {
public:
  explicit Libraries(const Driver &driver) : driver_(driver) {}
  ~Libraries(); // before the GPUs' contexts go

  // Opens what the plan's calls need on every GPU, and decides for each kernel. Modules are loaded; `gpus` stay where
  // they are. MT_INVALID, MT_DEVICE.
  Status choose(const Plan &plan, const std::vector<Gpu> &gpus, const GroupOptions &options);

  // Bytes that the calls share on a device of at most `maxRows` rows, and those of a run's tables of them.
  uint64_t workspaceBytes(int64_t maxRows) const;
  uint64_t tableBytes(const mt::plan::Program &program) const;

  // Room for a device's calls of a run of a program: takes it by `allocate`, fills it by `copy`. `tables` has an entry
  // a step of the program, null where it is no call.
  struct Memory {
    std::function<Status(uint64_t bytes, std::byte **place)> allocate;
    std::function<void(std::byte *to, const void *from, uint64_t bytes)> copy;
  };
  Status layOut(int device, const DeviceProgram &program, const Memory &memory, std::vector<std::byte *> &tables);

  // Whether the step's kernel is a call.
  bool has(const BoundStep &step) const { return choiceOf(step).call; }
  // Enqueues it. `params`: the device's mt_kernel_params; `table`: of the step, by layOut.
  Status enqueue(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step,
                 const std::byte *params, const std::byte *table, Stream stream);

  // The hash of the tuning file, in hexadecimal digits; "" without one.
  std::string tuning() const { return tuning_; }

  // What the calls compute: the libraries, their versions and a hash of what was chosen for each kernel; "none".
  std::string conditions() const;

  // To tune: where the choices hold, algorithms of a step's call, and another one in place of its own.
  const TuningPlace &place() const { return place_; }
  uint64_t batch() const { return tables_->batch(); }
  const char *kernelName(const BoundStep &step) const;
  Status algorithms(const BoundStep &step, std::vector<Algorithm> &found);
  void setAlgorithm(const BoundStep &step, const Algorithm &algorithm);
  const mt::plan::LibraryCall *callOf(const BoundStep &step) const;
  int64_t shards(const DeviceProgram &program) const { return program.maxRows / shardRows_; }
  // The library's part of a call, of some shards alone, and where the result of one lies.
  Status enqueueShards(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step, int64_t first,
                       int64_t shards, Stream stream);
  std::span<std::byte> shardResults(int device, const DeviceProgram &program, const BoundStep &step, int64_t shard);
  // Whether calls are checked before the first step: tuning does that for each algorithm.
  bool checksCalls() const { return !choices_.empty() && !tunes_; }
  // Whether an argument of the step's kernel is a constant of the plan in any launch.
  bool readsConstant(const BoundStep &step, int64_t argument) const;

private:
  enum Helper { clearRows, sumShards, transpose, helpers };
  // A library's handle and the helpers' functions on one GPU.
  struct OnGpu {
    const Gpu *gpu = nullptr;
    std::unique_ptr<CallLibrary> blas, dnn; // null: no call of the plan needs it, or it is missing
    std::array<Function, helpers> functions = {};
  };
  // How the workspace of a call of `shards` shards is cut.
  struct Cut {
    uint64_t transposed = 0, partials = 0, library = 0, end = 0; // offsets; transposed is the first
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
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(step.kernel)) - 1; // as CudaGroup::kernel numbers them
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
  uint64_t most_ = 0;                     // bytes of workspace, as the plan says
  std::map<int, std::byte *> workspaces_; // by device
};

} // namespace mtrun::cuda
