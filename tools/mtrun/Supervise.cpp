// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Supervise.h"

#include "runtime/support/launcher.h"
#include "runtime/support/temporary_folder.h"
#include "tools/mtrun/Launch.h"
#include "tools/mtrun/Losses.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Run.h"
#include "tools/mtrun/Supervision.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace mtrun_tool {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto hangs = 10s;     // after a loss, until a launcher that does not end is killed
constexpr auto hangsAlone = 3s; // likewise after process 0 has ended too
constexpr auto overdue = 60s;   // after process 0 has ended without a loss
constexpr auto lastWords = 20s; // for processes of this host that still write their variables
constexpr size_t maxLine = 4096;

volatile sig_atomic_t stopsSeen = 0, lastRequest = 0;

void onRequest(int number) {
  lastRequest = number;
  stopsSeen = stopsSeen + 1;
}

void onLauncherEnd(int) {}

// The processes of this host that a launcher has started: `text` is in their environment.
struct Started {
  pid_t process;
  bool ofTheRun; // else it belongs to the launcher itself
};

std::vector<Started> processesWith(const std::string &text) {
  std::vector<Started> found;
  DIR *listing = opendir("/proc");
  while (dirent *entry = listing ? readdir(listing) : nullptr) {
    pid_t process = static_cast<pid_t>(std::atoi(entry->d_name));
    if (process <= 0 || process == getpid())
      continue;
    std::string environment(1, '\0');
    if (FILE *file = fopen(("/proc/" + std::string(entry->d_name) + "/environ").c_str(), "re")) {
      char room[4096];
      while (size_t count = fread(room, 1, sizeof room, file))
        environment.append(room, count);
      fclose(file);
    }
    auto has = [&](const std::string &name) { return environment.find('\0' + name) != std::string::npos; };
    if (has(text))
      found.push_back({process, has("OMPI_COMM_WORLD_RANK=") || has("PMI_RANK=") || has("SLURM_PROCID=")});
  }
  if (listing)
    closedir(listing);
  return found;
}

class Supervisor {
public:
  explicit Supervisor(const Arguments &arguments)
      : arguments_(arguments), launch_(familyOf(arguments.supervised[0]), arguments.supervised),
        mark_(std::string(mtrun::supervisorVariable) + "=" + port_.name()) {}
  int run();

private:
  struct End {
    bool killed = false; // by this process
    int status = 0;
  };
  void checkCommand() const;
  End start();
  void wait(End &end);
  void serve(const sigset_t &mask);
  void readErrors();
  void continueLocalProcesses() const;
  void endLocalProcesses() const;
  int codeOf(const End &end) const;
  bool prepareNext();

  const Arguments &arguments_;
  SupervisorPort port_;
  Launch launch_;
  std::string mark_;
  std::string folder_;
  pid_t launcher_ = -1;
  int errors_ = -1;
  std::string line_;
  std::optional<Loss> loss_; // of this start
  Clock::time_point lossTime_;
  std::set<std::string> suspects_; // hosts on which a process ended before
};

// A start goes on where the one before ended only if it is asked to.
void Supervisor::checkCommand() const {
  const std::vector<std::string> &words = launch_.words();
  auto has = [&](const char *name) {
    return std::any_of(words.begin(), words.end(), [&](const std::string &word) {
      return word == name || word.starts_with(std::string(name) + "=");
    });
  };
  auto at = std::find_if(words.begin(), words.end(),
                         [](const std::string &word) { return word == "mtrun" || word.ends_with("/mtrun"); });
  if (at == words.end()) // a script of the user's
    return;
  if (at + 1 == words.end() || *(at + 1) != "train")
    throw Failure{MT_INVALID, "supervise: expected mtrun train, found " +
                                  (at + 1 == words.end() ? "no command of mtrun" : "mtrun " + *(at + 1))};
  if (!has("--checkpoint") || !has("--resume"))
    throw Failure{MT_INVALID, "supervise: expected --checkpoint DIR and --resume auto in the command, by which a start "
                              "continues the one before, found none"};
}

Supervisor::End Supervisor::start() {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0)
    throw Failure{MT_IO, std::string("cannot start the launcher: ") + strerror(errno)};
  Launch launch = launch_;
  if (launch.family() == LauncherFamily::OpenMpi)
    launch.insert({"-x", mtrun::supervisorVariable});
  setenv(mtrun::supervisorVariable, port_.variable().c_str(), 1);
  std::vector<char *> words;
  for (const std::string &word : launch.words())
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0); // a signal of the terminal reaches this process alone
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawnp(&launcher_, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipes[1]);
  errors_ = pipes[0];
  if (error != 0) {
    close(errors_);
    throw Failure{MT_IO, std::string("cannot start ") + words[0] + ": " + strerror(error)};
  }
  fcntl(errors_, F_SETFL, fcntl(errors_, F_GETFL) | O_NONBLOCK);
  loss_.reset();
  port_.reset();
  End end;
  wait(end);
  return end;
}

void Supervisor::readErrors() {
  char room[4096];
  ssize_t count;
  while (errors_ >= 0 && (count = read(errors_, room, sizeof room)) != 0) {
    if (count < 0)
      return;
    (void)!write(STDERR_FILENO, room, static_cast<size_t>(count));
    for (char c : std::string_view(room, static_cast<size_t>(count))) {
      if (c != '\n' && line_.size() < maxLine) {
        line_ += c;
        continue;
      }
      // The first message with a host that does not answer counts most.
      if (std::optional<Loss> loss = lossIn(line_); loss && (!loss_ || (loss_->answers && !loss->answers))) {
        lossTime_ = loss_ ? lossTime_ : Clock::now();
        loss_ = loss;
      }
      line_.clear();
    }
  }
  if (errors_ >= 0)
    close(errors_);
  errors_ = -1;
}

// Waits at most a tenth of a second for a message, a connection or a signal.
void Supervisor::serve(const sigset_t &mask) {
  std::vector<pollfd> waits;
  for (int socket : port_.sockets())
    waits.push_back({socket, POLLIN, 0});
  if (errors_ >= 0)
    waits.push_back({errors_, POLLIN, 0});
  timespec pause = {0, 100'000'000};
  (void)ppoll(waits.data(), waits.size(), &pause, &mask);
  port_.serve();
  readErrors();
}

void Supervisor::wait(End &end) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&blocked, number);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  std::optional<Clock::time_point> ended; // when process 0 ended
  while (waitpid(launcher_, &end.status, WNOHANG) != launcher_) {
    serve(before);
    if (stopsSeen > 0)
      port_.stop();
    if (!port_.left())
      ended.reset();
    else if (!ended)
      ended = Clock::now();
    // All processes end together. A process of a launcher that is stopped, and only waits for its worker, goes on.
    if (ended && Clock::now() - *ended >= hangsAlone)
      continueLocalProcesses();
    bool late = loss_ ? Clock::now() - lossTime_ >= (port_.left() ? hangsAlone : hangs)
                      : ended && Clock::now() - *ended >= overdue;
    if (!end.killed && (late || stopsSeen > 1)) {
      end.killed = true;
      kill(-launcher_, SIGKILL);
    }
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  readErrors();
  if (errors_ >= 0)
    close(errors_); // a process that is left has the other end
  errors_ = -1;
  endLocalProcesses();
}

void Supervisor::continueLocalProcesses() const {
  for (const Started &each : processesWith(mark_))
    if (each.ofTheRun)
      kill(each.process, SIGCONT);
}

// Processes that the launcher has left write their variables and end; what is left then is stopped or hangs.
void Supervisor::endLocalProcesses() const {
  auto limit = Clock::now() + (stopsSeen > 1 ? 0s : lastWords);
  for (;;) {
    std::vector<Started> left = processesWith(mark_);
    bool late = Clock::now() >= limit;
    for (const Started &each : left)
      kill(each.process, late || !each.ofTheRun ? SIGKILL : SIGCONT);
    if (late || left.empty())
      return;
    std::this_thread::sleep_for(50ms);
  }
}

int Supervisor::codeOf(const End &end) const {
  if (end.killed || WIFSIGNALED(end.status))
    return MT_LOST;
  constexpr int signalled = 128, lastSignal = 64; // launchers and shells add a signal's number to 128
  int code = WEXITSTATUS(end.status);
  bool lost = loss_ && code != MT_OK && code != interrupted;
  return lost || (code > signalled && code <= signalled + lastSignal) ? MT_LOST : code;
}

// Leaves out a host that does not answer, or on which processes ended twice. Returns false if too few processes are
// left.
bool Supervisor::prepareNext() {
  if (!loss_)
    return true;
  std::string host = launch_.hostOf(loss_->host, loss_->process);
  if (host.empty() || (loss_->answers && suspects_.insert(host).second))
    return true;
  if (!launch_.leaveOut(host, folder_))
    return true;
  fprintf(stderr, "mtrun: warning: continuing without host %s\n", host.c_str());
  int left = launch_.processes();
  if (left == 0)
    for (const LaunchHost &each : launch_.hosts())
      left += each.slots;
  return left == 0 || left >= arguments_.minProcesses;
}

int Supervisor::run() {
  checkCommand();
  mtrun::TemporaryFolder folder;
  if (mtrun::Status status = folder.make(); !status.ok())
    throw Failure{status.code(), status.message()};
  folder_ = folder.path();
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {}, old;
    sigaction(number, nullptr, &old);
    action.sa_handler = number == SIGCHLD ? onLauncherEnd : onRequest;
    if (number == SIGCHLD || old.sa_handler != SIG_IGN)
      sigaction(number, &action, nullptr);
  }
  for (int restarts = 0;; ++restarts) {
    int code = codeOf(start());
    if (stopsSeen > 1) {
      signal(lastRequest, SIG_DFL);
      raise(lastRequest);
    }
    if (code != MT_LOST)
      return code;
    if (stopsSeen > 0)
      return reportError(MT_LOST, "a process was lost while the run was asked to stop");
    if (restarts >= arguments_.maxRestarts)
      return reportError(MT_LOST, "expected a run that needs at most " + std::to_string(arguments_.maxRestarts) +
                                      " restarts (--max-restarts), found one more");
    if (!prepareNext())
      return reportError(MT_LOST, "expected at least " + std::to_string(arguments_.minProcesses) +
                                      " processes (--min-processes) on the hosts that are left, found fewer");
    fprintf(stderr, "mtrun: warning: a process was lost; restart %d of %d\n", restarts + 1, arguments_.maxRestarts);
  }
}

} // namespace

int supervise(const Arguments &arguments) { return Supervisor(arguments).run(); }

} // namespace mtrun_tool
