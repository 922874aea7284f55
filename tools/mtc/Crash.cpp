// SPDX-License-Identifier: Apache-2.0
#include "tools/mtc/Crash.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#if defined(__has_feature)
#define MTC_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define MTC_SANITIZED 0
#endif

namespace {

constexpr char option[] = "--after-crash";
constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// The handler reads these, since a signal handler may not allocate.
std::vector<char *> command; // this program, --after-crash, the number, the arguments, null
char number[4];
char handlerStack[1 << 16]; // the thread's own may be what has overflowed

// Only calls that POSIX allows here.
void onCrash(int signal) {
  number[0] = static_cast<char>('0' + signal / 10);
  number[1] = static_cast<char>('0' + signal % 10);
  pid_t child = fork();
  if (child == 0) {
    execve("/proc/self/exe", command.data(), environ);
    _exit(1);
  }
  if (child > 0)
    waitpid(child, nullptr, 0);
  raise(signal); // SA_RESETHAND: ends the process
}

// Without messages, and without a core file, which the first crash leaves.
[[noreturn]] void compileSilently(const char *folder, const std::function<void(const char *folder)> &compile) {
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
  compile(folder);
  _exit(0);
}

} // namespace

void handleCrashes(int argc, char **argv) {
  if (MTC_SANITIZED)
    return;
  static char flag[sizeof option];
  std::strcpy(flag, option);
  command = {argv[0], flag, number};
  command.insert(command.end(), argv + 1, argv + argc);
  command.push_back(nullptr);
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof handlerStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  for (int signal : crashes)
    sigaction(signal, &action, nullptr);
}

int takeCrash(int &argc, char **argv) {
  if (argc < 3 || std::strcmp(argv[1], option) != 0)
    return 0;
  int signal = std::atoi(argv[2]);
  std::copy(argv + 3, argv + argc + 1, argv + 1);
  argc -= 2;
  return signal;
}

void reportCrash(int signal, const std::function<void(const char *folder)> &compile) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "mtc-crash-XXXXXX").string();
  if (error || !mkdtemp(folder.data())) { // of this user alone
    std::fprintf(stderr, "mtc: error: mtc crashed (%s); no folder for a reproducer could be made\n", strsignal(signal));
    return;
  }
  pid_t child = fork();
  if (child == 0)
    compileSilently(folder.c_str(), compile);
  int status = 0;
  bool again = child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
  std::vector<std::string> stages;
  for (const auto &file : std::filesystem::directory_iterator(folder, error))
    stages.push_back(file.path().string());
  std::sort(stages.begin(), stages.end());
  for (size_t i = 0; i + (again ? 1 : 0) < stages.size(); ++i)
    std::filesystem::remove(stages[i], error);
  if (!again || stages.empty())
    std::filesystem::remove(folder, error);
  std::string found = !again           ? "a second run did not"
                      : stages.empty() ? "the model itself reproduces it"
                                       : stages.back() + " reproduces it: mt-opt --run-reproducer " + stages.back();
  std::fprintf(stderr, "mtc: error: mtc crashed (%s): a fault of mtc, and not of the model; please report it; %s\n",
               strsignal(signal), found.c_str());
}
