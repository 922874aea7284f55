// SPDX-License-Identifier: Apache-2.0
//
// The devices of one session in this process: equal devices of one kind that communicate only in all-reduces. They are
// all of the session's devices, or one of them if the session has a process per device. A back end is a class that
// passes the tests in test/conformance. Calls come from one thread at a time. Only the group may dereference pointers
// to device memory, unless hostMemory() is true.
// A device may fail in any call. The first failure is final: health() returns it, and runs and copies do nothing from
// then on.
#pragma once

#include "runtime/device/BoundProgram.h"
#include "runtime/device/Exchange.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

class ProcessGroup;
class Transport;

// Whether kernels run as calls of a vendor's libraries (docs/libraries.md). Auto: if the libraries are installed and a
// call is likely faster, or the tuning file selects it. Require: for every kernel that has a call. Tune: as Require, if
// the libraries are installed, with enough workspace for any algorithm.
enum class LibraryUse { Auto, Off, Require, Tune };

struct GroupOptions {
  int devices = 1;
  int threads = 1;                         // per device
  std::vector<int> gpus;                   // cuda: GPU number of each device
  LibraryUse libraries = LibraryUse::Auto; // cuda
  // The process group if the session has a process per device; null: all devices are in this process.
  ProcessGroup *processGroup = nullptr;
  // The transport between the processes of CPU devices; null if there is one process.
  Transport *transport = nullptr;
  ExchangePlaces places;                                          // of the processes
  bool dividesOptimizer = false;                                  // devices have parts of the optimizer's variables
  std::string tuning;                                             // cuda: path of a tuning file; "" for none
  bool pin = true;                                                // pin worker threads, if there are enough CPUs
  bool spin = true;                                               // spin before sleeping, if there are enough CPUs
  int stepsPerLaunch = 1;                                         // if devices can run several steps per launch
  std::function<void(int level, const std::string &message)> log; // may be empty
};

class DeviceGroup {
public:
  virtual ~DeviceGroup() = default; // joins threads, frees memory, unloads code

  // Returns the kind, a name of device_spec.h.
  virtual const char *kind() const = 0;
  virtual int devices() const = 0; // devices in this process
  virtual int threads() const = 0;
  // Returns true if device memory is host memory: its pointers may be dereferenced, and plan sections need no copy.
  virtual bool hostMemory() const = 0;
  // Returns true if kernels are launched in blocks of threads, with the plan's grids for GPUs.
  virtual bool blocks() const = 0;
  // Returns the first failure of a device, or success.
  const Status &health() const { return health_; }

  // Returns the bytes that all devices together may still allocate, as an estimate of the system.
  virtual uint64_t availableMemory() const = 0;

  // Loads the machine code of the target named `target`, or if null of the first target that the device supports. Must
  // be called once, before kernel(). MT_INVALID: the plan has no such target. MT_DEVICE: this device does not support
  // it; the message says why. MT_CORRUPT: the code cannot be loaded or lacks a kernel. `plan` must outlive the group.
  virtual Status loadCode(const Plan &plan, const char *target) = 0;
  // Returns the name of the loaded target, or "". It is valid as long as the group.
  virtual const char *target() const = 0;
  // Returns the handle that a BoundStep launches for Plan.kernels[index].
  virtual KernelHandle kernel(uint32_t index) const = 0;

  // Returns the bytes that prepare() allocates on a device with at most `maxRows` rows, for all of the plan's programs.
  virtual uint64_t preparedBytes(const Plan &plan, int64_t maxRows) const { return 0; }
  // Checks that every device d has bytes[d] bytes and the host hostBytes bytes, before memory is allocated.
  // MT_NO_MEMORY.
  virtual Status reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) = 0;
  // Allocates `bytes` bytes near `device`, 64-byte aligned and zeroed, which the group frees. Zero bytes give a valid
  // pointer. MT_NO_MEMORY.
  virtual Status allocate(int device, uint64_t bytes, void **memory) = 0;
  // Sets bytes in `device`'s own threads, so that the memory's pages are near them. fill() and copies wait for all
  // earlier operations.
  virtual void fill(int device, void *memory, uint8_t byte, uint64_t bytes) = 0;
  virtual void copyIn(int device, void *to, const void *from, uint64_t bytes) = 0;
  virtual void copyOut(int device, void *to, const void *from, uint64_t bytes) = 0;

  // Must be called for each bound program before it runs, and again after its steps or pointers are changed.
  virtual Status prepare(BoundProgram &program) { return {}; }
  // Must be called after `program` gets a tracer, which all later runs use.
  virtual Status prepareTrace(BoundProgram &program) { return {}; }
  // Peak rates of all devices together: FLOPs of float32 per second and bytes of memory per second; 0: unknown.
  struct Rates {
    double flops = 0, bytes = 0;
  };
  virtual Rates rates() const { return {}; }
  // Returns the bytes of the devices' own memory that were allocated since reserve(), as reported by the system; 0:
  // unknown.
  virtual uint64_t takenMemory() const { return 0; }

  // Returns the maximum number of launches in flight. 1: begin() runs everything.
  virtual int maxInFlight() const { return 1; }
  // Returns the number of runs of `program` that a launch may have; a launch of 1 run is always possible.
  virtual int runsPerLaunch(const BoundProgram &program) const { return 1; }
  // Begins a launch: one run of all steps of `program` on all devices, or runsPerLaunch() consecutive runs. On return
  // the caller's tensors have been read. All launches in flight belong to one program. Allocates no memory and takes no
  // locks. In the calling thread only floating-point control registers change, until the return.
  virtual void begin(BoundProgram &program, std::span<const StepArguments> runs) = 0;
  // Must be called once for each run, in order: waits for the run, after which its outputs and read-backs are in host
  // memory. Reports failures of the run by health().
  virtual void finish() {}
  void run(BoundProgram &program, const StepArguments &arguments) {
    begin(program, {&arguments, 1});
    finish();
  }

  // Calls `see` after each launch of the next run of `program`, in which launches run one after another. MT_INVALID:
  // only CPU devices that share variables can.
  using LaunchWatcher = std::function<void(const BoundStep &step, const mt_kernel_params &params)>;
  virtual Status watchNextRun(const BoundProgram &program, LaunchWatcher see) {
    return {MT_INVALID, std::string("expected CPUs of one process to see launches, found devices of kind ") + kind()};
  }
  // Runs task(0) to task(tasks - 1) in any order, on the group's threads if it has any. Must not be called during a
  // run.
  virtual void parallel(int64_t tasks, const std::function<void(int64_t)> &task) {
    for (int64_t i = 0; i < tasks; ++i)
      task(i);
  }

  // Returns the number of kernel launches so far, without launches that a device skipped.
  virtual uint64_t launches() const = 0;
  // Returns the bytes that devices received from each other in the last run.
  virtual uint64_t collectiveBytes() const = 0;
  // The rows that the devices of this process have computed so far, and the bytes that they have received from other
  // processes. Zeros: unknown.
  struct Activity {
    int64_t rows = 0;
    uint64_t received = 0;
  };
  virtual Activity activity() const { return {}; }
  // Measures the algorithms of each kernel of `program`, which must have run before, and writes a tuning file. Calls
  // `line` for each kernel. MT_INVALID: the devices are not GPUs. The variables are invalid afterwards.
  virtual Status tune(BoundProgram &program, const std::string &path, int repeats,
                      const std::function<void(const std::string &)> &line) {
    return {MT_INVALID, std::string("expected a GPU to tune for, such as cuda:0, found devices of kind ") + kind()};
  }
  // Returns the hash of the tuning file in use, in hexadecimal digits; "" if there is none.
  virtual std::string tuning() const { return ""; }
  // Returns conditions of this group, in addition to the plan and the seed, that may change the bits of a run: lines
  // "WHAT: VALUE". The processes of a session agree on them, and checkpoints record them. Call after loadCode().
  virtual std::string conditions() const { return std::string("devices: ") + kind(); }
  // For tests: damages the partial sums of `device` in all-reduce `collective` as other devices receive them; -1 ends
  // it.
  virtual void corruptPartial(int collective, int device) = 0;

protected:
  Status health_;
};

// Makes a group of `kind`, a name of device_spec.h, and starts its threads. MT_INVALID: unknown kind. MT_NO_MEMORY: a
// thread could not be started. MT_DEVICE: a GPU could not be started. MT_NO_DEVICE: the driver or the GPU does not
// exist.
Status makeDeviceGroup(const std::string &kind, const GroupOptions &options, std::unique_ptr<DeviceGroup> &group);

// List a line for each device other than CPUs, and for the libraries that devices use. MT_NO_DEVICE.
Status listDevices(std::vector<std::string> &lines);
Status listLibraries(std::vector<std::string> &lines);

} // namespace mtrun
