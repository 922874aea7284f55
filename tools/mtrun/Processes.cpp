// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Processes.h"

#include "runtime/support/device_spec.h"
#include "runtime/support/launcher.h"
#include "tools/commandline/CommandLine.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Run.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace mtrun_tool {
namespace {

const char *variable(const char *name) { return mtrun::environmentVariable(name); }

// Throws a failed status as an error of the user's command.
void expect(const mtrun::Status &status) {
  if (!status.ok())
    throw Failure{status.code(), status.message()};
}

// Returns the number in an environment variable; -1 if it is not set.
int number(const char *name) {
  std::optional<int> value;
  expect(mtrun::environmentNumber(name, value));
  return value.value_or(-1);
}

const mtrun::Launcher *launcher() {
  const mtrun::Launcher *found = nullptr;
  expect(mtrun::findLauncher(found));
  return found;
}

// Returns a name that only the processes of one start on this host have in common.
std::string startOf() {
  if (const char *name = variable("PMIX_NAMESPACE"))
    return name;
  const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
  if (job && step)
    return std::string(job) + "." + step;
  return std::to_string(getppid());
}

// CPU devices have MPI, by which the processes find each other without an address.
std::string rendezvousOf(const mtrun::Launcher &launcher, int size, bool onGpus) {
  if (!onGpus && !variable("MASTER_ADDR"))
    return "mpi:";
  if (const char *own = variable("MTRUN_MEETING"))
    return own;
  const char *host = variable("MASTER_ADDR");
  int port = number("MASTER_PORT");
  bool oneHost = number(launcher.localSize) == size || number("SLURM_NNODES") == 1 ||
                 (!launcher.localSize && number("SLURM_STEP_NUM_NODES") == 1);
  // Only processes of this user can connect to an abstract socket with this name.
  std::string user = "unix:mtrun-" + std::to_string(getuid()) + "-";
  if (oneHost)
    return user + (host && port >= 0 ? std::string(host) + ":" + std::to_string(port) : startOf());
  // srun says on which hosts the processes are. The port differs from job to job, below the ports of connections.
  const char *hosts = variable("SLURM_STEP_NODELIST");
  if (launcher.name == "srun" && hosts && !host && number("SLURM_JOB_ID") >= 0) {
    constexpr int firstPort = 10000, ports = 20000;
    int own = firstPort + (number("SLURM_JOB_ID") + std::max(number("SLURM_STEP_ID"), 0)) % ports;
    return "tcp:" + mtrun::firstHost(hosts) + ":" + std::to_string(port >= 0 ? port : own);
  }
  if (!host || port < 0)
    throw Failure{MT_INVALID, std::string("expected MASTER_ADDR and MASTER_PORT, the host of process 0 and a free port "
                                          "there, for processes that ") +
                                  std::string(launcher.name) + " started on several hosts, found neither"};
  // torchrun itself then listens at MASTER_PORT.
  const char *agentStore = variable("TORCHELASTIC_USE_AGENT_STORE");
  return std::string("tcp:") + host + ":" +
         std::to_string(port + (agentStore && std::string_view(agentStore) == "True"));
}

// Ends this process with its parent, the mtrun that started it.
void stayWithParent() {
  int parent = number("MTRUN_PARENT");
  if (parent < 0)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(MT_LOST);
}

// Sets this process's place among the processes of a launcher.
void takeRank(const mtrun::Launcher &by, bool onGpus, Arguments &arguments) {
  mtrun_options &session = arguments.session;
  int size = number(by.size);
  session.process = number(by.rank);
  session.local_process = number(by.local) >= 0 ? number(by.local) : session.process;
  if (session.process >= size || (session.processes && session.processes != size))
    throw Failure{MT_INVALID, "expected process " + std::to_string(session.process) + " of " +
                                  std::to_string(session.processes ? session.processes : size) + ", found " +
                                  std::to_string(size) + " that " + std::string(by.name) + " started"};
  session.rendezvous = commandline::keep(rendezvousOf(by, size, onGpus));
  if (const char *secret = variable(secretVariable))
    session.secret = commandline::keep(secret);
  session.processes = size;
  // If a launcher makes only one GPU visible to this process, it is the first GPU.
  if (distinctGpus(arguments.devices).size() == 1)
    session.local_process = 0;
}

constexpr unsigned abandonSeconds = 8; // for MPI to start, which the other processes may never do
int failedWith = 0;                    // while MPI starts for endOthers()

void exitFailed() {
  if (failedWith)
    _exit(failedWith);
}

bool isGuarded = false;
constexpr unsigned lastSeconds = 30;

void tellOfEnd() {
  if (!isGuarded)
    return;
  // A thread of the library ends the process when the launcher is gone; the main thread may still write variables.
  if (gettid() != getpid())
    sleep(lastSeconds);
  reportError(MT_NO_DEVICE, "the library of MPI ended this process, which a library of another version than the "
                            "launcher's does; MTRUN_MPI names another file");
  _exit(MT_NO_DEVICE);
}

} // namespace

MpiGuard::MpiGuard() {
  isGuarded = true;
  std::atexit(tellOfEnd);
}

MpiGuard::~MpiGuard() { isGuarded = false; }

void endOthers(const Arguments &arguments, const Failure &failure) {
  if (arguments.session.processes <= 1 || isOnGpus(arguments))
    return;
  failedWith = failure.code;
  std::atexit(exitFailed); // the library of MPI may end this process
  signal(SIGALRM, [](int) { exitFailed(); });
  alarm(abandonSeconds);
  mt_status *alone = mtrun_options_abandon(&arguments.session, failure.code, failure.message.c_str());
  // Without MPI, only the launcher can end the others. MPICH's launcher reads this line, and then nothing more of what
  // this process has printed.
  if (int launchers = number("PMI_FD"); alone && launchers > 2) {
    usleep(200'000);
    dprintf(launchers, "cmd=abort exitcode=%d\n", failure.code);
  }
  mt_status_free(alone);
  alarm(0);
  failedWith = 0;
}

std::vector<int> distinctGpus(const std::string &devices) {
  mtrun::DeviceSpec spec;
  if (devices.find(':') == std::string::npos || !mtrun::parseDeviceSpec(devices, spec).ok())
    return {}; // the session reports the error
  std::vector<int> sorted = spec.gpus;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? spec.gpus : std::vector<int>();
}

bool isOnGpus(const Arguments &arguments) {
  const mtrun::DeviceKind *kind = mtrun::kindOfDevices(arguments.devices);
  return kind && kind->gpu;
}

void expectAlone(const std::string &command) {
  const mtrun::Launcher *by = mtrun::isIndependent() ? nullptr : launcher();
  if (by && number(by->size) > 1)
    throw Failure{MT_INVALID, "expected one process for mtrun " + command + ", found " +
                                  std::to_string(number(by->size)) + " that " + std::string(by->name) +
                                  " started, each of which would do the same; start it without a launcher"};
}

std::optional<int> distribute(Arguments &arguments, char **argv) {
  mtrun_options &session = arguments.session;
  const mtrun::DeviceKind *kind = mtrun::kindOfDevices(arguments.devices);
  bool onGpus = isOnGpus(arguments);
  const mtrun::Launcher *by = kind && session.processes != 1 ? launcher() : nullptr;
  if (by && !onGpus && (!by->mpi || mtrun::isIndependent())) {
    expect(mtrun::expectNoLauncher("devices of kind " + std::string(kind->name), "--processes 1"));
    by = nullptr;
  }
  if (by) {
    if (onGpus)
      stayWithParent();
    takeRank(*by, onGpus, arguments);
    return std::nullopt;
  }
  std::vector<int> gpus = distinctGpus(arguments.devices);
  auto count = static_cast<int64_t>(gpus.size());
  if (session.processes > 1 && session.processes != count)
    throw Failure{MT_INVALID, "expected --processes 1, or " + std::to_string(std::max<int64_t>(count, 1)) +
                                  " with a GPU each for --devices " + arguments.devices + ", found " +
                                  std::to_string(session.processes)};
  if (session.processes == 1 || count < 2) {
    session.processes = 1;
    return std::nullopt;
  }
  return runProcesses(gpus, argv);
}

} // namespace mtrun_tool
