// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Worker.h"

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/Messages.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mtrun_tool {

const int stopSignal = SIGUSR1;

constexpr unsigned orphanSeconds = 30;
static pid_t launchersProcess = -1; // in a worker
static int endsWith = -1;           // the exit code of a worker that has only to end MPI

static sigset_t setOf(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : numbers)
    sigaddset(&set, number);
  return set;
}

static bool isOrphan() { return launchersProcess > 0 && getppid() != launchersProcess; }

void limitOrphan() {
  if (!isOrphan())
    return;
  if (endsWith >= 0) // the end of MPI may wait for a launcher that is gone
    _exit(endsWith);
  alarm(orphanSeconds);
}

void endOrphan(int code) {
  fflush(stdout);
  if (isOrphan())
    _exit(code);
  endsWith = code;
}

static void becomeWorker(pid_t parent, const sigset_t &before) {
  launchersProcess = parent;
  // Not a session of its own: if the launcher's process ends while the worker is stopped, the system continues it.
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  sigset_t stop = setOf({stopSignal});
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  prctl(PR_SET_PDEATHSIG, stopSignal);
  if (getppid() != parent)
    raise(stopSignal);
}

static int waitFor(pid_t worker, const sigset_t &awaited) {
  for (int stops = 0;;) {
    int number = sigwaitinfo(&awaited, nullptr), status = 0;
    if (number > 0 && number != SIGCHLD)
      kill(worker, stops++ == 0 ? stopSignal : number);
    if (waitpid(worker, &status, WNOHANG) != worker)
      continue;
    if (WIFEXITED(status))
      return WEXITSTATUS(status);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, nullptr);
    raise(WTERMSIG(status));
    return MT_LOST;
  }
}

std::optional<int> startWorker() {
  sigset_t awaited = setOf({SIGCHLD, SIGTERM, SIGINT, SIGHUP}), before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  pid_t parent = getpid(), worker = fork();
  if (worker < 0)
    return reportError(MT_NO_MEMORY, std::string("cannot start a process: ") + strerror(errno));
  if (worker > 0)
    return waitFor(worker, awaited);
  becomeWorker(parent, before);
  return std::nullopt;
}

} // namespace mtrun_tool
