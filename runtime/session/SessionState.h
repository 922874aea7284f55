// SPDX-License-Identifier: Apache-2.0
//
// The state of a session, for the files that implement Session.h: SessionSteps.cpp (creation and steps),
// SessionVariables.cpp, SessionProcesses.cpp and SessionLaunches.cpp (traces, and what sees or changes launches).
#ifndef RUNTIME_SESSION_SESSIONSTATE_H
#define RUNTIME_SESSION_SESSIONSTATE_H

#include "runtime/session/Bind.h"
#include "runtime/session/ChooseDevices.h"
#include "runtime/session/DividedVariables.h"
#include "runtime/session/LengthChoice.h"
#include "runtime/session/Memory.h"
#include "runtime/session/Session.h"
#include "runtime/session/UnitWeights.h"

namespace mtrun {

namespace fb = ::mt::plan;

struct Session::State : SessionDevices {
  const Plan *plan = nullptr;
  mtrun_options options = {};
  Memory memory;
  DividedVariables divided{memory.map, layout};
  std::vector<Executable> executables;
  std::unique_ptr<Tracer> tracer; // records train_step
  UnitWeights ones;               // replace sample weights that the caller leaves out
  int64_t seed = 0;               // seed of the last init()
  std::vector<double> sums;       // sums of one metric of a step
  Executable *active = nullptr;   // the program in flight
  std::vector<size_t> launches;   // number of unfinished steps of each launch in flight
  size_t inFlight = 0;            // number of steps in all launches in flight
  uint64_t changes = 0;           // number of changes to variables by other calls than steps
  uint64_t comparedChanges = 0;   // value of `changes` when processes compared their variables
  int64_t readBytes = 0, readPictures = 0;
  std::vector<std::string> classNames;
  // Null: the plan has one length.
  std::unique_ptr<LengthChoice> lengths;
  std::function<void(const Session::Launch &)> see; // of watchLaunches(), until the next run
  int64_t corrupted = -1;                           // of corruptLaunch(), until the next run

  void log(int level, const std::string &message) const {
    if (options.log)
      options.log(options.log_user, level, message.c_str());
  }

  Executable *find(std::string_view program);
  // Finds the executable of `program`. If the plan has several lengths, chooses one and cuts the step's tensors to it.
  Status choose(std::string_view program, Executable *&executable, Step &step);
  void report(const Executable &executable, const mtrun_results &results);
  Status watch();
  // Checks step `index` of a launch and converts it to arguments of the device group.
  Status checkStep(Executable &executable, const Step &step, size_t index);
};

} // namespace mtrun

#endif
