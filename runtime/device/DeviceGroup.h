// SPDX-License-Identifier: Apache-2.0
//
// The devices of one session in this process: equal devices of one kind, that meet in all-reduces alone. They are all
// of the session's, or one of them, and the others are in processes of their own. A back end
// is a class that passes the suite in test/conformance. Calls come from one thread at a time. Memory is named by
// pointers that only the group may dereference, unless hostMemory() says that the host can.
//
// A device may fail at any call. The first failure stays: health() tells it, runs and copies do nothing from then on.
#pragma once

#include "runtime/device/BoundProgram.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

class ProcessGroup;

// Whether kernels run as calls of a vendor's libraries (docs/libraries.md): Auto where these are and are likely faster,
// or a tuning file says so; Require wherever there is a call; Tune the same, where one is there, with room for any
// algorithm.
enum class LibraryUse { Auto, Off, Require, Tune };

struct GroupOptions {
  int devices = 1;
  int threads = 1;                         // per device
  std::vector<int> gpus;                   // cuda: the number of each device's GPU
  LibraryUse libraries = LibraryUse::Auto; // cuda
  // cuda: processes with a device each, this one's among them; null: all are in this process.
  ProcessGroup *processGroup = nullptr;
  std::string tuning;                                             // cuda: path of a tuning file, "" for none
  bool pin = true;                                                // worker threads, where CPUs suffice
  bool spin = true;                                               // before blocking, where CPUs suffice
  int stepsPerLaunch = 1;                                         // where devices are given several at once
  std::function<void(int level, const std::string &message)> log; // may be empty
};

class DeviceGroup {
public:
  virtual ~DeviceGroup() = default; // joins threads, frees memory, unloads code

  // "cpu", "null".
  virtual const char *kind() const = 0;
  virtual int devices() const = 0; // in this process
  virtual int threads() const = 0;
  // Whether device memory is the host's: pointers to it may be dereferenced, and plan sections need no copy.
  virtual bool hostMemory() const = 0;
  // Whether kernels are launched in blocks of threads, on the plan's grids for GPUs.
  virtual bool blocks() const = 0;
  // The first failure of a device; success until then.
  const Status &health() const { return health_; }

  // Bytes that all devices together may still allocate, as well as the system can tell.
  virtual uint64_t availableMemory() const = 0;

  // Loads the machine code of the target called `target`, or of the first that the device can run where it is null.
  // Once, before kernel(). MT_INVALID: the plan has no such target. MT_DEVICE: this device cannot run it, naming what
  // it lacks. MT_CORRUPT: the code does not load, or lacks a kernel. `plan` must outlive the group.
  virtual Status loadCode(const Plan &plan, const char *target) = 0;
  // Name of the loaded target, "" before; lives as long as the group.
  virtual const char *target() const = 0;
  // What a BoundStep launches for Plan.kernels[index].
  virtual KernelHandle kernel(uint32_t index) const = 0;

  // Bytes that prepare() takes on a device of at most `maxRows` rows for all of the plan's programs.
  virtual uint64_t preparedBytes(const Plan &plan, int64_t maxRows) const { return 0; }
  // Makes sure that every device d has bytes[d] and the host hostBytes, before anything is allocated. MT_NO_MEMORY.
  virtual Status reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) = 0;
  // `bytes` of memory near `device`, 64-byte aligned, zero, freed with the group. Zero bytes give a valid pointer.
  // MT_NO_MEMORY.
  virtual Status allocate(int device, uint64_t bytes, void **memory) = 0;
  // Sets bytes, on `device`'s own threads, so that the pages come to lie near them. This and copies come after all that
  // began before.
  virtual void fill(int device, void *memory, uint8_t byte, uint64_t bytes) = 0;
  virtual void copyIn(int device, void *to, const void *from, uint64_t bytes) = 0;
  virtual void copyOut(int device, void *to, const void *from, uint64_t bytes) = 0;

  // Once for each program after it is bound and before it runs, and again where its steps or pointers were changed.
  virtual Status prepare(BoundProgram &program) { return {}; }
  // After `program` got a tracer, which all runs to come ask.
  virtual Status prepareTrace(BoundProgram &program) { return {}; }
  // What all devices together can do in a second at best, FLOPs of float32 and bytes of memory; 0: not known.
  struct Rates {
    double flops = 0, bytes = 0;
  };
  virtual Rates rates() const { return {}; }
  // Bytes of the devices' own memory that became used since reserve(), as the system tells; 0: it does not.
  virtual uint64_t takenMemory() const { return 0; }

  // Launches that may have begun before the first of them is finished. 1: begin() runs everything.
  virtual int maxInFlight() const { return 1; }
  // Runs of `program` that a launch may hold besides 1.
  virtual int runsPerLaunch(const BoundProgram &program) const { return 1; }
  // Begins a launch: one run of all steps of `program` on all devices, or runsPerLaunch() that follow one another. Has
  // read the caller's tensors on return. Launches in flight are of one program. Allocates nothing, takes no locks. On
  // the calling thread only floating-point control registers change, and only until the return.
  virtual void begin(BoundProgram &program, std::span<const StepArguments> runs) = 0;
  // Once for each run that began, in their order: returns when it is over, its outputs and read-backs are the host's.
  // Failures of a run show here.
  virtual void finish() {}
  void run(BoundProgram &program, const StepArguments &arguments) {
    begin(program, {&arguments, 1});
    finish();
  }

  // Kernel launches so far; one that a device skips does not count.
  virtual uint64_t launches() const = 0;
  // Bytes that devices received from one another in the last run.
  virtual uint64_t collectiveBytes() const = 0;
  // Measures what may run each kernel of `program`, which must have run, and writes a tuning file. `line` is told of
  // each kernel. MT_INVALID: not a group of GPUs. What the variables hold afterwards is void.
  virtual Status tune(BoundProgram &program, const std::string &path, int repeats,
                      const std::function<void(const std::string &)> &line) {
    return {MT_INVALID, std::string("expected a GPU to tune for, cuda:0 say, found devices of kind ") + kind()};
  }
  // The hash of the tuning file that the group's choices come from, in hexadecimal digits; "" without one.
  virtual std::string tuning() const { return ""; }
  // What may change the bits of a run on this group, beside the plan and the seed: lines "WHAT: VALUE". The processes
  // of a session agree on it, and checkpoints record it. After loadCode().
  virtual std::string conditions() const { return std::string("devices: ") + kind(); }
  // For tests: from now on peers receive the partial sums of `device` in all-reduce `collective` damaged; -1 ends it.
  virtual void corruptPartial(int collective, int device) = 0;

protected:
  Status health_;
};

// A group of `kind`, a name of device_spec.h, its threads started. MT_INVALID: no such kind. MT_DEVICE: a thread did
// not start, a GPU does not. MT_NO_DEVICE: no driver, no such GPU.
Status makeDeviceGroup(const std::string &kind, const GroupOptions &options, std::unique_ptr<DeviceGroup> &group);

// A line for each device that is no CPU. MT_NO_DEVICE.
Status listDevices(std::vector<std::string> &lines);
Status listLibraries(std::vector<std::string> &lines);

} // namespace mtrun
