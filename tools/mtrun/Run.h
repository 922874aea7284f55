// SPDX-License-Identifier: Apache-2.0
//
// A plan bound to devices, with its owners: the begin of every subcommand.
#pragma once

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/Arguments.h"

#include <memory>
#include <string>

namespace mtrun_tool {

// The exception of check(): a subcommand reports it and ends.
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
  SessionPtr session; // declared after the plan, so it is destroyed first
};

// Returns the devices if --devices is not used: every GPU, at most one per shard, if the plan has code for GPUs; else
// CPUs.
std::string defaultDevices(const std::string &plan);
// loadPlan() loads the plan. bind() binds it to the devices and reads the variables of --load.
Run loadPlan(const Arguments &arguments);
// The options of a session: the command line and the log.
mtrun_options sessionOptionsOf(const Arguments &arguments);
void bind(Run &run, const Arguments &arguments, mtrun_match match = MTRUN_MATCH_ALL);
// Calls loadPlan() and bind().
Run open(const Arguments &arguments, mtrun_match match = MTRUN_MATCH_ALL);
// Reads --load: any file or folder of variables, compared by `match`. With ":partial" only matching variables are read.
void loadVariables(const Run &run, const Arguments &arguments, mtrun_match match);
// Returns true if the file of --load has every variable (it is refused otherwise).
bool isComplete(const std::string &load);
// Opens a data source, with the flags of the command line; notes about the data are printed as warnings.
DatasetPtr openData(const Run &run, const Arguments &arguments, const std::string &spec);

// Returns two lines: the plan; and the devices with their shards, rows per step and balance.
std::string describe(const Run &run, const Arguments &arguments);

} // namespace mtrun_tool
