// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace mtrun {

// MPICH, Intel MPI and related implementations set PMI_RANK.
constexpr Launcher launchers[] = {
    {"mtrun", "MTRUN_RANK", "MTRUN_SIZE", "MTRUN_LOCAL_RANK", "MTRUN_SIZE", false},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"mpirun of MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", false},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE",
     false},
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr, false},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, true},
};

const char *environmentVariable(const char *name) {
  const char *text = name ? std::getenv(name) : nullptr;
  return text && *text ? text : nullptr;
}

Status environmentNumber(const char *name, std::optional<int> &value) {
  value.reset();
  const char *text = environmentVariable(name);
  if (!text)
    return {};
  int number = 0;
  std::string_view all = text;
  auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (error != std::errc() || end != all.data() + all.size() || number < 0)
    return {MT_INVALID, std::string("expected a whole number in ") + name + ", found " + text};
  value = number;
  return {};
}

// A Slurm batch script has SLURM_PROCID too; SLURM_STEP_ID is set only for processes that srun started.
Status findLauncher(const Launcher *&launcher) {
  launcher = nullptr;
  for (const Launcher &each : launchers) {
    if (each.name == "srun" && !environmentVariable("SLURM_STEP_ID"))
      continue;
    std::optional<int> rank, size;
    for (auto [name, value] : {std::pair(each.rank, &rank), std::pair(each.size, &size)})
      if (Status status = environmentNumber(name, *value); !status.ok())
        return status;
    if (rank && size.value_or(0) > 1) {
      launcher = &each;
      return {};
    }
  }
  return {};
}

std::string firstHost(std::string_view list) {
  std::string_view host = list.substr(0, list.find_first_of(",["));
  if (host.size() == list.size() || list[host.size()] == ',')
    return std::string(host);
  std::string_view numbers = list.substr(host.size() + 1);
  std::string_view after = numbers.substr(std::min(numbers.find(']') + 1, numbers.size()));
  return std::string(host) + std::string(numbers.substr(0, numbers.find_first_of(",-]"))) +
         std::string(after.substr(0, after.find(',')));
}

bool isIndependent() {
  const char *own = environmentVariable(processesVariable);
  return own && std::string_view(own) == "1";
}

Status findLaunchedProcess(std::string_view what, std::string_view independent, LaunchedProcess &result) {
  result = {};
  const Launcher *launcher = nullptr;
  if (isIndependent())
    return {};
  if (Status status = findLauncher(launcher); !status.ok() || !launcher)
    return status;
  if (!launcher->mpi)
    return expectNoLauncher(what, independent);
  std::optional<int> process, processes, local;
  for (auto [name, value] :
       {std::pair(launcher->rank, &process), std::pair(launcher->size, &processes), std::pair(launcher->local, &local)})
    if (Status status = environmentNumber(name, *value); !status.ok())
      return status;
  result = {*process, *processes, local.value_or(*process)};
  return {};
}

Status expectNoLauncher(std::string_view what, std::string_view independent) {
  if (isIndependent())
    return {};
  const Launcher *launcher = nullptr;
  if (Status status = findLauncher(launcher); !status.ok() || !launcher)
    return status;
  return {MT_INVALID, "expected one process for " + std::string(what) + ", found " +
                          std::string(environmentVariable(launcher->size)) + " that " + std::string(launcher->name) +
                          " started, each of which would do all of the work; start one, with --devices cpu:1xN for N "
                          "CPUs (srun: --ntasks 1 --cpus-per-task N), or several of mtrun or of Python with mpirun; " +
                          std::string(independent) + " makes each an independent run"};
}

} // namespace mtrun
