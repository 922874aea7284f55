// SPDX-License-Identifier: Apache-2.0
//
// A plan bound to devices, ready to run. What mtrun_session is made of; mtrun.h has the promises to users.
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
  // Allocates everything, starts the threads, runs `init`. `plan` must outlive the session; `options` may be null.
  static Status create(const Plan &plan, const mtrun_options *options, std::unique_ptr<Session> &session);
  ~Session();

  const Plan &plan() const;

  // Runs `init` with `seed` (0: the seed of the options, or the plan's).
  Status init(int64_t seed);

  // Runs one program on rows [0, n) of `tensors` (signature order) and fills `results`, which may be null, as may its
  // arrays. MT_INVALID: no such program, n outside 1 .. B, a null tensor that is not optional.
  Status run(std::string_view program, const void *const *tensors, int64_t n, mtrun_results *results);

  // Steps in flight. A step that began may still run when begin() returns, and its tensors have been read; finish()
  // gives the results of the oldest one. run() is both. Until all are finished they are of one program, and nothing
  // else runs; what reads or sets variables waits for them.
  struct Step {
    const void *const *tensors; // as run()'s
    int64_t n;
    bool unchanged = false; // the tensors hold what they held in all steps before that named them
  };
  // Launches that may have begun before the first of them is finished; 1: begin() runs the step.
  int maxInFlight() const;
  // Steps that a launch of `program` may hold besides 1.
  int stepsPerLaunch(std::string_view program) const;
  size_t inFlight() const; // steps
  // How many steps took each of the plan's lengths so far, of all programs; empty: it has one.
  std::vector<int64_t> lengthSteps() const;
  // Begins a launch of one step or stepsPerLaunch(). MT_INVALID as run(). Failures of a device show in finish().
  Status begin(std::string_view program, std::span<const Step> steps);
  Status finish(mtrun_results *results);

  // The first failure of a device; success until then. What a session gives after one is void.
  const Status &health() const;

  // A variable's bytes, row major, from the first device's copy; valid until the session ends, changed by the next
  // step. Of devices whose memory the host cannot read, a copy that the call makes: health() says whether it is good.
  std::span<const std::byte> variable(uint32_t index) const;
  size_t variableSize(uint32_t index) const; // bytes
  // Copies into every device's copy. MT_INVALID: `bytes` has another size than the variable.
  Status setVariable(uint32_t index, std::span<const std::byte> bytes);
  // Grows whenever init() or setVariable() change variables, which steps do not.
  uint64_t changes() const;
  // Index of a variable by name; MT_INVALID lists the variables there are.
  Status findVariable(std::string_view name, uint32_t &index) const;

  // From now on takes down what each thread does in training steps; the record so far goes. MT_INVALID, MT_NO_MEMORY.
  Status startTrace(const TracerOptions &options);
  // Null before.
  const Tracer *tracer() const;
  // While there is a tracer: tracks of one of the devices that the caller named, which may be part of a larger pool;
  // whether they are streams of a GPU, "compute" and "links", and not threads.
  int tracksOfDevice() const;
  bool namesTracks() const;
  // Those that split the shards: one where devices share variables.
  int groupDevices() const;

  // Of a session of several processes with a device each, the number of this one; 0 of 1 otherwise.
  int process() const;
  int processes() const;
  // What process 0 calls it with, all have on return; each process calls it as often as the others. MT_LOST.
  Status share(std::string &bytes);

  mtrun_session_info info() const;
  // Shards that a device hosts; 0 for a device that there is not.
  int32_t shards(int32_t device) const;

  // Measures what may run each kernel of train_step, which must have run, and writes a tuning file; void afterwards.
  Status tune(const std::string &path, int repeats, const std::function<void(const std::string &)> &line);
  // The hash of the tuning file that the devices' choices come from, in hexadecimal digits; "" without one.
  std::string tuning() const;

  // What may change the bits of a run, beside the plan and the seed: lines "WHAT: VALUE".
  const std::string &conditions() const;

  // Of the labels 0, 1, ...: the plan's, those of a file that was loaded, or the training data's; empty: not known.
  const std::vector<std::string> &classNames() const;
  void nameClasses(std::vector<std::string> names);

  // Sends a line to the log sink of the options, if there is one. 0 info, 1 warning.
  void log(int level, const std::string &message) const;

  // For tests. Kernels launched so far, all devices together.
  uint64_t launches() const;
  // Sets every byte of arenas and shared blocks: nothing may depend on what they hold between programs.
  void fillTemporaries(uint8_t byte);
  // With private variables: before each exchange of all-reduce `collective`, flips the lowest bit of the partial sum's
  // first element as the peers of `device` receive it. -1 ends it.
  void corruptPartial(int collective, int device);

  struct State;

private:
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace mtrun
