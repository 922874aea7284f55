// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Processes.h"

#include "runtime/support/device_spec.h"
#include "tools/commandline/CommandLine.h"
#include "tools/mtrun/Run.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace mtrun_tool {
namespace {

// Variables in which a launcher tells each process its rank.
struct Launcher {
  const char *name, *rank, *size, *local, *localSize;
};
constexpr Launcher launchers[] = {
    {"mtrun", "MTRUN_RANK", "MTRUN_SIZE", "MTRUN_LOCAL_RANK", "MTRUN_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

const char *variable(const char *name) {
  const char *text = name ? std::getenv(name) : nullptr;
  return text && *text ? text : nullptr;
}

// -1: not there.
int number(const char *name) {
  const char *text = variable(name);
  if (!text)
    return -1;
  int value = 0;
  std::string_view all = text;
  auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size() || value < 0)
    throw Failure{MT_INVALID, std::string("expected a whole number in ") + name + ", found " + text};
  return value;
}

// The launcher that started this process beside others, or null. A Slurm script has Slurm's variables too: only what
// srun starts is one of several.
const Launcher *launcher() {
  for (const Launcher &each : launchers) {
    bool slurm = std::string_view(each.name) == "srun";
    if (number(each.rank) >= 0 && number(each.size) > 1 && (!slurm || variable("SLURM_STEP_ID")))
      return &each;
  }
  return nullptr;
}

// What the processes of one start on this host have in common and others have not.
std::string startOf() {
  if (const char *name = variable("PMIX_NAMESPACE"))
    return name;
  const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
  if (job && step)
    return std::string(job) + "." + step;
  return std::to_string(getppid());
}

std::string rendezvousOf(const Launcher &launcher, int size) {
  if (const char *own = variable("MTRUN_MEETING"))
    return own;
  const char *host = variable("MASTER_ADDR");
  int port = number("MASTER_PORT");
  bool oneHost = number(launcher.localSize) == size || number("SLURM_NNODES") == 1 ||
                 (!launcher.localSize && number("SLURM_STEP_NUM_NODES") == 1);
  // Nobody but processes of this user can connect there.
  std::string user = "unix:mtrun-" + std::to_string(getuid()) + "-";
  if (oneHost)
    return user + (host && port >= 0 ? std::string(host) + ":" + std::to_string(port) : startOf());
  if (!host || port < 0)
    throw Failure{MT_INVALID, std::string("expected MASTER_ADDR and MASTER_PORT, the host of process 0 and a free port "
                                          "there, for processes that ") +
                                  launcher.name + " started on several hosts, found neither"};
  // torchrun itself listens at the port then.
  const char *agentStore = variable("TORCHELASTIC_USE_AGENT_STORE");
  return std::string("tcp:") + host + ":" +
         std::to_string(port + (agentStore && std::string_view(agentStore) == "True"));
}

// A child of mtrun does not outlive it.
void stayWithParent() {
  int parent = number("MTRUN_PARENT");
  if (parent < 0)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(MT_LOST);
}

} // namespace

std::vector<int> distinctGpus(const std::string &devices) {
  mtrun::DeviceSpec spec;
  if (devices.find(':') == std::string::npos || !mtrun::parseDeviceSpec(devices, spec).ok())
    return {}; // an error that the session tells
  std::vector<int> sorted = spec.gpus;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? spec.gpus : std::vector<int>();
}

std::optional<int> distribute(Arguments &arguments, char **argv) {
  mtrun_options &session = arguments.session;
  const mtrun::DeviceKind *kind = mtrun::kindOfDevices(arguments.devices);
  bool onGpus = kind && kind->gpu;
  const Launcher *by = onGpus && session.processes != 1 ? launcher() : nullptr;
  if (by) {
    stayWithParent();
    int size = number(by->size);
    session.process = number(by->rank);
    session.local_process = number(by->local) >= 0 ? number(by->local) : session.process;
    if (session.process >= size || (session.processes && session.processes != size))
      throw Failure{MT_INVALID, "expected process " + std::to_string(session.process) + " of " +
                                    std::to_string(session.processes ? session.processes : size) + ", found " +
                                    std::to_string(size) + " that " + by->name + " started"};
    session.rendezvous = commandline::keep(rendezvousOf(*by, size));
    if (const char *secret = variable(secretVariable))
      session.secret = commandline::keep(secret);
    session.processes = size;
    // A GPU that a launcher gave to this process alone is its first.
    if (distinctGpus(arguments.devices).size() == 1)
      session.local_process = 0;
    return std::nullopt;
  }
  std::vector<int> gpus = distinctGpus(arguments.devices);
  auto count = static_cast<int64_t>(gpus.size());
  if (session.processes > 1 && session.processes != count)
    throw Failure{MT_INVALID, "expected --processes 1, or " + std::to_string(std::max<int64_t>(count, 1)) +
                                  " of a GPU each with --devices " + arguments.devices + ", found " +
                                  std::to_string(session.processes)};
  if (session.processes == 1 || count < 2) {
    session.processes = 1;
    return std::nullopt;
  }
  return runProcesses(gpus, argv);
}

} // namespace mtrun_tool
