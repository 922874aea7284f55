// SPDX-License-Identifier: Apache-2.0
//
// Runs with a process per device: detects the launcher and this process's rank, or starts a process per GPU.
#pragma once

#include "tools/mtrun/Arguments.h"

#include <optional>
#include <string>
#include <vector>

namespace mtrun_tool {

struct Failure;

// The environment variable with the secret by which the processes of a run identify each other. mtrun makes a secret
// for processes that it starts; for another launcher on several hosts the user sets it.
inline constexpr const char *secretVariable = "MTC_SECRET";

// Sets the fields of mtrun_options in `arguments` from the launcher that started this process (mpirun, srun, torchrun
// or mtrun; for CPU devices one with MPI). Without a launcher and with several GPUs it starts a process per GPU, waits,
// and returns the exit code.
// Throws Failure.
std::optional<int> distribute(Arguments &arguments, char **argv);

// Throws Failure if a launcher started several processes of a command that all would do alike.
void expectAlone(const std::string &command);

bool isOnGpus(const Arguments &arguments);

// While it lives, exit() reports that the library of MPI has ended this process: MPI_Init does that if it cannot work
// with the launcher, and nothing else calls exit().
class MpiGuard {
public:
  MpiGuard();
  ~MpiGuard();
};

// Tells the other processes of CPU devices that this one has failed, if it has not met them yet.
void endOthers(const Arguments &arguments, const Failure &failure);

// Returns the GPUs of a device list; empty if it has no GPUs or several devices on one GPU.
std::vector<int> distinctGpus(const std::string &devices);

// Starts a copy of this program per GPU with the arguments `argv`, as one session, and waits for them. A signal is
// forwarded to the first process, which ends all after a step; a second signal kills all. If a process fails, all are
// ended. Returns the exit code of the first failure.
int runProcesses(const std::vector<int> &gpus, char **argv);

} // namespace mtrun_tool
