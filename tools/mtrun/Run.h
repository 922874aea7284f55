// SPDX-License-Identifier: Apache-2.0
//
// A plan bound to devices, owned: what every subcommand starts with.
#pragma once

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/Arguments.h"

#include <memory>
#include <string>

namespace mtrun_tool {

// Throws on an error status: a subcommand has nothing to do but report it.
struct Failure {
  mt_code code;
  std::string message;
};
void check(mt_status *status);

struct Free {
  void operator()(mtrun_plan *plan) const { mtrun_plan_free(plan); }
  void operator()(mtrun_session *session) const { mtrun_session_free(session); }
  void operator()(mtrun_dataset *dataset) const { mtrun_dataset_free(dataset); }
};
using PlanPtr = std::unique_ptr<mtrun_plan, Free>;
using SessionPtr = std::unique_ptr<mtrun_session, Free>;
using DatasetPtr = std::unique_ptr<mtrun_dataset, Free>;

struct Run {
  PlanPtr plan;
  SessionPtr session; // after the plan: destroyed before it
};

// Where --devices says nothing: every GPU, as many as the plan has shards, if it has code for them and there are any;
// else the CPU.
std::string defaultDevices(const std::string &plan);
// Loads the plan; then binds it to the devices and reads the variables of --load.
Run loadPlan(const Arguments &arguments);
void bind(Run &run, const Arguments &arguments, mtrun_match match = MTRUN_MATCH_ALL);
// Both.
Run open(const Arguments &arguments, mtrun_match match = MTRUN_MATCH_ALL);
// Of --load: any file or folder of variables, by the rule `match`, with ":partial" what fits of it.
void loadVariables(const Run &run, const Arguments &arguments, mtrun_match match);
// Whether what --load says has every variable or is refused.
bool isComplete(const std::string &load);
// Opens a source, with --strict where it was given; what there is to know of it goes to standard error as warnings.
DatasetPtr openData(const Run &run, const Arguments &arguments, const std::string &spec);

// Two lines: the plan; the devices, their shards, rows per step and balance.
std::string describe(const Run &run, const Arguments &arguments);

} // namespace mtrun_tool
