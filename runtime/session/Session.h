// SPDX-License-Identifier: Apache-2.0
//
// A plan that is bound to devices and ready to run: the implementation of mtrun_session. mtrun.h documents what callers
// can rely on.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/device/Tracer.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/status.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

class Session {
public:
  // Allocates all memory, starts the threads and runs `init`. `plan` must outlive the session; `options` may be null.
  static Status create(const Plan &plan, const mtrun_options *options, std::unique_ptr<Session> &session);
  ~Session();

  const Plan &plan() const;

  // Runs `init` with `seed`; 0 stands for the seed of the options, or else of the plan.
  Status init(int64_t seed);

  // Runs one program on rows [0, n) of `tensors` (in signature order) and fills `results`. `results` and its arrays may
  // be null. MT_INVALID: the plan has no such program, n is not in 1 .. B, or a required tensor is null.
  Status run(std::string_view program, const void *const *tensors, int64_t n, mtrun_results *results);

  // Asynchronous steps. After begin() a step may still be running, but its tensors have been read; finish() waits for
  // the oldest step and returns its results. run() does both. While steps are in flight, they all belong to one program
  // and no other program runs; functions that read or set variables wait for them.
  struct Step {
    const void *const *tensors; // as for run()
    int64_t n;
    bool unchanged = false; // the tensors have the same values as in all earlier steps with these pointers
  };
  // The maximum number of launches in flight. 1: begin() runs the step itself.
  int maxInFlight() const;
  // The number of steps that a launch of `program` may have; a launch of 1 step is always possible.
  int stepsPerLaunch(std::string_view program) const;
  size_t inFlight() const; // number of steps
  // Returns the number of steps of each of the plan's lengths so far, over all programs; empty if the plan has one
  // length.
  std::vector<int64_t> lengthSteps() const;
  // Begins a launch of 1 step or of stepsPerLaunch() steps. MT_INVALID as for run(). finish() reports failures of a
  // device.
  Status begin(std::string_view program, std::span<const Step> steps);
  Status finish(mtrun_results *results);

  // Returns the first failure of a device, or success. Results after a failure are invalid.
  const Status &health() const;

  // Returns a variable's bytes, row major, from the first device's copy. They are valid until the session ends, and the
  // next step changes them. If the host cannot read the device's memory, the call makes a copy; health() tells if it
  // succeeded.
  // A divided variable has no bytes here unless this is process 0 and collect() was called after the last step.
  std::span<const std::byte> variable(uint32_t index) const;
  // Whether several processes have parts of the optimizer's variables.
  bool dividesOptimizer() const;
  // Returns the bytes of a variable that this process has: its part if the processes divide the variable.
  std::span<const std::byte> ownPart(uint32_t index) const;
  // Whether several processes have parts of this variable.
  bool divides(uint32_t index) const;
  // Returns the place of a process's part in a variable that is divided, in bytes.
  struct Part {
    uint64_t begin = 0, bytes = 0;
  };
  Part partOf(uint32_t index, int process) const;
  // Collects the parts of divided variables in process 0, or in all processes. Collective; nothing to do if no variable
  // is divided. MT_LOST, MT_NO_MEMORY.
  Status collect(bool everywhere = false);
  size_t variableSize(uint32_t index) const; // bytes
  // Sets a variable on all devices. MT_INVALID: `bytes` has another size than the variable.
  Status setVariable(uint32_t index, std::span<const std::byte> bytes);
  // A counter that grows when init() or setVariable() changes variables. Steps do not change it.
  uint64_t changes() const;
  // Finds the index of a variable by name. MT_INVALID: the message lists the plan's variables.
  Status findVariable(std::string_view name, uint32_t &index) const;

  // From now on records the activity of each thread in training steps, and discards earlier records. MT_INVALID,
  // MT_NO_MEMORY.
  Status startTrace(const TracerOptions &options);
  // Returns null if startTrace() was not called.
  const Tracer *tracer() const;
  // Valid while there is a tracer. The number of tracks of a device that the user named, whose threads may belong to a
  // larger pool.
  int tracksOfDevice() const;
  /// Returns true if the tracks are the streams "compute" and "links" of a GPU; false if they are threads.
  bool namesTracks() const;
  // Returns the number of devices that split the shards: 1 if the devices share variables.
  int groupDevices() const;

  // A launch of a kernel that has ended, and the memory that it has written on the device.
  struct Launch {
    uint32_t step; // index of the program's step
    std::string kernel;
    std::vector<std::span<std::byte>> results;
  };
  // Calls `see` after each launch of the next run of train_step, in which launches run one after another. MT_INVALID:
  // the devices are no CPUs that share variables, the session has micro-batches, or the plan has several lengths.
  Status watchLaunches(std::function<void(const Launch &)> see);

  // The rank of this process and the number of processes; 0 and 1 if the session has a single process.
  int process() const;
  int processes() const;
  // The rows of a batch that this process computes; all if it is alone.
  struct Rows {
    int64_t first = 0, count = 0;
  };
  Rows ownRows() const;
  // Whether all processes receive all output rows, as processes of CPU devices do.
  bool sharesOutputs() const;
  // Compares lines "WHAT: VALUE" in all processes. Collective. MT_INVALID in all processes if one has other lines.
  Status agree(const std::string &lines);
  // Compares the tensors of a step, and the variables if a caller has changed them since the last call. Collective.
  Status compareTensors(std::string_view program, const void *const *tensors, int64_t n);
  // Returns a hash of all variables.
  std::string variablesHash() const;
  // Ends the run in all processes with the error of this one, unless that error is already known to all.
  void lose(const Status &error);
  // Counts what loops have read, for gatherActivities().
  void countRead(int64_t bytes, int64_t pictures);

  // Broadcasts `bytes` from process 0. Collective: all processes must call it the same number of times. MT_LOST.
  Status broadcast(std::string &bytes);
  // Collects a text of each process in process 0; `all` stays empty elsewhere. Collective. MT_LOST.
  Status gather(const std::string &own, std::vector<std::string> &all);
  // Runs task(0) to task(tasks - 1) on the threads of the devices, or in this thread if devices have none. No step may
  // be in flight.
  void parallel(int64_t tasks, const std::function<void(int64_t)> &task) const;
  // Returns true if processes of CPU devices can exchange bytes of any size.
  bool sharesBytes() const;
  // Broadcasts bytes of any size from process `root`. Collective; needs sharesBytes(). MT_LOST, MT_NO_MEMORY.
  Status shareBytes(std::vector<std::byte> &bytes, int root);
  // Collects the activity of all processes in process 0. Collective. MT_LOST.
  Status gatherActivities(std::span<mtrun_activity> activities);

  mtrun_session_info info() const;
  // Returns the number of shards of a device; 0 if the device does not exist.
  int32_t shards(int32_t device) const;

  // Measures the algorithms of each kernel of train_step, which must have run before, and writes a tuning file. The
  // session's results are invalid afterwards.
  Status tune(const std::string &path, int repeats, const std::function<void(const std::string &)> &line);
  // Returns the hash of the tuning file in use, in hexadecimal digits; "" if there is none.
  std::string tuning() const;

  // Returns conditions other than the plan and the seed that may change the bits of a run: lines "WHAT: VALUE".
  const std::string &conditions() const;

  // Returns the names of the labels 0, 1, ...: from the plan, from a loaded file or from the training data; empty if
  // they are unknown.
  const std::vector<std::string> &classNames() const;
  void nameClasses(std::vector<std::string> names);

  // Sends a line to the log sink of the options, if there is one. `level`: 0 info, 1 warning.
  void log(int level, const std::string &message) const;

  // For tests. Returns the number of kernels launched so far on all devices.
  uint64_t launches() const;
  // For tests. Sets every byte of arenas and shared blocks: programs must not depend on leftover values there.
  void fillTemporaries(uint8_t byte);
  // For tests. Flips a bit of the first result of launch `launch` in the next run of train_step. MT_INVALID as for
  // watchLaunches().
  Status corruptLaunch(uint64_t launch);
  // For tests, with private variables. Before each exchange of all-reduce `collective`, flips the lowest bit of the
  // first element of the partial sum that `device` sends. -1 ends it.
  void corruptPartial(int collective, int device);

  struct State;

private:
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace mtrun
