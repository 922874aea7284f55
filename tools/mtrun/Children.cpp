// SPDX-License-Identifier: Apache-2.0
//
// Child processes of mtrun that train together, one per GPU.
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Processes.h"
#include "tools/mtrun/Run.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mtrun_tool {
namespace {

using Clock = std::chrono::steady_clock;

// The time for the other processes to end by themselves after one has failed; they print the reason and save nothing.
constexpr auto grace = std::chrono::seconds(5);
constexpr size_t maxKept = 65536; // maximum bytes of a process's messages

volatile sig_atomic_t signalsSeen = 0, lastSignal = 0;

void onSignal(int number) {
  lastSignal = number;
  signalsSeen = signalsSeen + 1;
}
void onChild(int) {}

struct Child {
  int gpu = 0;
  pid_t process = -1;
  int errors = -1; // read end of the child's standard error; -1: inherited
  std::string said;
  bool ended = false, killed = false; // killed: by this process
  int status = 0;

  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : MT_LOST; }
  bool failed() const { return ended && code() != MT_OK && code() != interrupted; }
};

Failure systemFailure(const char *what) {
  return {MT_LOST, std::string("cannot start a process per GPU: ") + what + ": " + strerror(errno)};
}

// Listens at a name that the system chooses.
int listenSomewhere(std::string &name) {
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address.sun_family;
  if (descriptor < 0 || bind(descriptor, reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      listen(descriptor, 1024) != 0)
    throw systemFailure("socket");
  size = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &size);
  name.assign(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  return descriptor;
}

// Returns 32 random hexadecimal digits.
std::string makeSecret() {
  unsigned char bytes[16];
  if (getentropy(bytes, sizeof bytes) != 0)
    throw systemFailure("getentropy");
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

class Children {
public:
  Children(const std::vector<int> &gpus, char **argv) : argv_(argv), secret_(makeSecret()) {
    children_.resize(gpus.size());
    for (size_t i = 0; i < gpus.size(); ++i)
      children_[i].gpu = gpus[i];
  }
  int run();

private:
  void start();
  void startOne(size_t index, int listening, const std::string &name);
  void read(Child &child);
  void reap();
  void kill(int number);
  int verdict();
  std::string title(const Child &child) const {
    return "process " + std::to_string(&child - children_.data()) + " (cuda:" + std::to_string(child.gpu) + ")";
  }

  char **argv_;
  std::string secret_; // passed in the environment, which only this user can read
  std::vector<Child> children_;
  const Child *first_ = nullptr; // the first process that failed
  Clock::time_point limit_;      // deadline for the other processes after a failure
};

// Each child has its own process group: a signal of the terminal reaches only the parent, which forwards it once.
void Children::startOne(size_t index, int listening, const std::string &name) {
  Child &child = children_[index];
  int pipes[2] = {-1, -1};
  if (index > 0 && pipe2(pipes, O_CLOEXEC) != 0)
    throw systemFailure("pipe");
  std::vector<std::string> own = {"MTRUN_RANK=" + std::to_string(index), "MTRUN_LOCAL_RANK=" + std::to_string(index),
                                  "MTRUN_SIZE=" + std::to_string(children_.size()),
                                  "MTRUN_PARENT=" + std::to_string(getpid()),
                                  "MTRUN_MEETING=" + (index ? "unix:" + name : "fd:" + std::to_string(listening))};
  if (!std::getenv(secretVariable))
    own.push_back(std::string(secretVariable) + "=" + secret_);
  std::vector<char *> environment;
  for (char **each = environ; *each; ++each)
    if (std::none_of(own.begin(), own.end(), [&](const std::string &text) {
          return std::string_view(*each).starts_with(text.substr(0, text.find('=') + 1));
        }))
      environment.push_back(*each);
  for (std::string &text : own)
    environment.push_back(text.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (index == 0)
    posix_spawn_file_actions_adddup2(&actions, listening, listening); // keeps the descriptor open in the child
  else
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawn(&child.process, "/proc/self/exe", &actions, &attributes, argv_, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (pipes[1] >= 0)
    close(pipes[1]);
  child.errors = pipes[0];
  if (error != 0) {
    child.process = -1;
    kill(SIGKILL);
    errno = error;
    throw systemFailure("posix_spawn");
  }
}

void Children::read(Child &child) {
  char room[4096];
  ssize_t count = ::read(child.errors, room, sizeof room);
  if (count > 0 && child.said.size() < maxKept)
    child.said.append(room, static_cast<size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR)) {
    close(child.errors);
    child.errors = -1;
  }
}

void Children::kill(int number) {
  for (Child &child : children_)
    if (child.process > 0 && !child.ended) {
      child.killed = true;
      ::kill(child.process, number);
    }
}

void Children::reap() {
  for (Child &child : children_) {
    if (child.ended || waitpid(child.process, &child.status, WNOHANG) != child.process)
      continue;
    child.ended = true;
    if (!first_ && child.failed() && !child.killed) {
      first_ = &child;
      limit_ = Clock::now() + grace;
    }
  }
}

// A lost process makes other processes fail with MT_LOST. The cause is the first process that failed in another way.
int Children::verdict() {
  const Child *cause = first_;
  for (const Child &child : children_)
    if (child.failed() && !child.killed && (WIFSIGNALED(child.status) || child.code() != MT_LOST) &&
        (!cause || (WIFEXITED(cause->status) && cause->code() == MT_LOST)))
      cause = &child;
  if (!cause) {
    for (const Child &child : children_)
      if (child.code() != MT_OK)
        return child.code();
    return MT_OK;
  }
  fwrite(cause->said.data(), 1, cause->said.size(), stderr);
  if (WIFSIGNALED(cause->status))
    return reportError(MT_LOST, title(*cause) + " was ended by signal " + std::to_string(WTERMSIG(cause->status)) +
                                    ": " + strsignal(WTERMSIG(cause->status)));
  if (cause != &children_[0] && cause->said.empty())
    reportError(cause->code(), title(*cause) + " failed with exit code " + std::to_string(cause->code()));
  return cause->code();
}

int Children::run() {
  // Signals are blocked except while the loop waits.
  sigset_t blocked, before;
  sigemptyset(&blocked);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {}, old;
    sigaction(number, nullptr, &old);
    action.sa_handler = number == SIGCHLD ? onChild : onSignal;
    if (number != SIGCHLD && old.sa_handler == SIG_IGN)
      continue; // an ignored signal (nohup) stays ignored
    sigaction(number, &action, nullptr);
    sigaddset(&blocked, number);
  }
  sigprocmask(SIG_BLOCK, &blocked, &before);
  std::string name;
  int listening = listenSomewhere(name);
  for (size_t i = 0; i < children_.size(); ++i)
    startOne(i, listening, name);
  close(listening);
  for (int passed = 0;;) {
    reap();
    if (std::all_of(children_.begin(), children_.end(), [](const Child &c) { return c.ended && c.errors < 0; }))
      break;
    if (signalsSeen > passed && passed++ == 0 && !children_[0].ended)
      ::kill(children_[0].process, lastSignal);
    if (signalsSeen > 1 || (first_ && Clock::now() >= limit_))
      kill(SIGKILL);
    std::vector<pollfd> waits;
    std::vector<Child *> readers;
    for (Child &child : children_)
      if (child.errors >= 0) {
        waits.push_back({child.errors, POLLIN, 0});
        readers.push_back(&child);
      }
    timespec pause = {0, 100'000'000};
    if (ppoll(waits.data(), waits.size(), &pause, &before) > 0)
      for (size_t i = 0; i < waits.size(); ++i)
        if (waits[i].revents)
          read(*readers[i]);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (signalsSeen > 1) {
    signal(lastSignal, SIG_DFL);
    raise(lastSignal);
  }
  return verdict();
}

} // namespace

int runProcesses(const std::vector<int> &gpus, char **argv) { return Children(gpus, argv).run(); }

} // namespace mtrun_tool
