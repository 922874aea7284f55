// SPDX-License-Identifier: Apache-2.0
//
// A process that stopped was noticed after the timeout of a step, 600 seconds, and one that a broken link cut off went
// on alone. Heartbeats find both; a process that is slow is not lost.
#include "runtime/device/ProcessGroup.h"

#include <chrono>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::string textOf(const Status &status) {
  return status.ok() ? "0" : std::to_string(status.code()) + ": " + status.message();
}

std::string freshName() {
  static int count = 0;
  return "unix:mtrun-heartbeat-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

ProcessGroupOptions optionsOf(int process, int processes, const std::string &rendezvous) {
  ProcessGroupOptions options;
  options.process = process;
  options.processes = processes;
  options.rendezvous = rendezvous;
  options.name = "cpu:1x1 of host" + std::to_string(process);
  options.timeout = 20;
  options.interval = 0.05;
  options.silence = 1.5;
  return options;
}

// All processes of a group, in this process.
struct Processes {
  explicit Processes(int processes, const std::function<void(ProcessGroupOptions &)> &change = {}) {
    std::string rendezvous = freshName();
    groups.resize(static_cast<size_t>(processes));
    std::vector<std::thread> threads;
    for (int process = 0; process < processes; ++process)
      threads.emplace_back([&, process] {
        ProcessGroupOptions options = optionsOf(process, processes, rendezvous);
        if (change)
          change(options);
        Status status = ProcessGroup::open(options, groups[static_cast<size_t>(process)]);
        EXPECT_EQ(textOf(status), "0");
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  std::vector<std::unique_ptr<ProcessGroup>> groups;
};

// Waits for a loss.
std::string lossOf(ProcessGroup &group, Clock::duration within = 5s) {
  Status status;
  for (auto limit = Clock::now() + within; status.ok() && Clock::now() < limit;) {
    std::this_thread::sleep_for(5ms);
    status = group.check();
  }
  return textOf(status);
}

// Process 1 of a group, as a process of its own that can be stopped. It ends with the code of its loss.
pid_t forkSecond(const std::string &rendezvous, int processes = 2) {
  pid_t child = fork();
  if (child != 0)
    return child;
  std::unique_ptr<ProcessGroup> group;
  Status status = ProcessGroup::open(optionsOf(1, processes, rendezvous), group);
  for (auto limit = Clock::now() + 20s; status.ok() && Clock::now() < limit;) {
    std::this_thread::sleep_for(5ms);
    status = group->check();
  }
  std::string expected = "process 0 (cpu:1x1 of host0) was lost";
  _exit(status.message().starts_with(expected) || status.message().find("host1) was lost") != std::string::npos
            ? status.code()
            : 100);
}

int codeOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST(Heartbeat, AProcessThatOnlyWaitsIsNotLost) {
  Processes all(4);
  all.groups[1]->begin(); // the others are slow to begin this piece
  std::this_thread::sleep_for(2500ms);
  for (const auto &group : all.groups)
    EXPECT_EQ(textOf(group->check()), "0");
}

TEST(Heartbeat, AStoppedProcessIsNamedByAll) {
  std::string rendezvous = freshName();
  pid_t stopped = forkSecond(rendezvous, 3);
  std::unique_ptr<ProcessGroup> first, third;
  std::thread other([&] { EXPECT_EQ(textOf(ProcessGroup::open(optionsOf(2, 3, rendezvous), third)), "0"); });
  EXPECT_EQ(textOf(ProcessGroup::open(optionsOf(0, 3, rendezvous), first)), "0");
  other.join();
  kill(stopped, SIGSTOP);
  auto begin = Clock::now();
  const std::string expected = "9: process 1 (cpu:1x1 of host1) was lost: it was silent for 1.5 seconds";
  EXPECT_EQ(lossOf(*first), expected);
  EXPECT_EQ(lossOf(*third), expected);
  EXPECT_LT(Clock::now() - begin, 5s);
  // When it wakes up it learns that it is lost, and does not go on alone.
  kill(stopped, SIGCONT);
  EXPECT_EQ(codeOf(stopped), 9);
}

TEST(Heartbeat, AProcessThatCannotHearProcessZeroEnds) {
  std::string rendezvous = freshName();
  pid_t second = forkSecond(rendezvous);
  pid_t first = fork();
  if (first == 0) {
    std::unique_ptr<ProcessGroup> group;
    Status status = ProcessGroup::open(optionsOf(0, 2, rendezvous), group);
    pause();
    _exit(status.code());
  }
  std::this_thread::sleep_for(500ms);
  kill(first, SIGSTOP);
  EXPECT_EQ(codeOf(second), 9);
  kill(first, SIGKILL);
  EXPECT_EQ(codeOf(first), -1);
}

// This process sleeps as a whole, as a host that is suspended: the heartbeats that arrived meanwhile count.
TEST(Heartbeat, AProcessThatSleptItselfReadsBeforeItJudges) {
  std::string rendezvous = freshName();
  pid_t second = forkSecond(rendezvous);
  std::unique_ptr<ProcessGroup> first;
  ProcessGroupOptions options = optionsOf(0, 2, rendezvous);
  EXPECT_EQ(textOf(ProcessGroup::open(options, first)), "0");
  pid_t waker = fork();
  if (waker == 0) {
    kill(getppid(), SIGSTOP);
    usleep(1'000'000); // less than the silence
    kill(getppid(), SIGCONT);
    _exit(0);
  }
  EXPECT_EQ(codeOf(waker), 0);
  std::this_thread::sleep_for(1200ms);
  EXPECT_EQ(textOf(first->check()), "0");
  kill(second, SIGKILL);
  EXPECT_EQ(lossOf(*first), "9: process 1 (cpu:1x1 of host1) was lost");
  EXPECT_EQ(codeOf(second), -1);
}

TEST(Heartbeat, AStepThatStandsStillNamesTheProcessThatTheOthersWaitFor) {
  Processes all(4, [](ProcessGroupOptions &options) {
    options.timeout = 0.6;
    options.silence = 5;
  });
  for (const auto &group : all.groups)
    group->begin();
  for (int process : {0, 1, 3}) // process 2 computes for ever
    all.groups[static_cast<size_t>(process)]->beginPart();
  const std::string expected = "9: process 2 (cpu:1x1 of host2) was lost: its step stood still for 0.6 seconds";
  for (const auto &group : all.groups)
    EXPECT_EQ(lossOf(*group), expected);

  Processes slow(2, [](ProcessGroupOptions &options) { options.timeout = 0.6; });
  for (int part = 0; part < 10; ++part) { // each part takes less than the timeout
    for (const auto &group : slow.groups)
      part == 0 ? group->begin() : group->beginPart();
    std::this_thread::sleep_for(200ms);
  }
  for (const auto &group : slow.groups)
    EXPECT_EQ(textOf(group->check()), "0");
}

TEST(Heartbeat, MessagesOfTheLoopArriveBetweenHeartbeats) {
  Processes all(3);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::thread> threads;
    for (const auto &group : all.groups)
      threads.emplace_back([&] {
        std::string word = group->process() == 0 ? std::to_string(turn) : "";
        EXPECT_EQ(textOf(group->broadcast(word)), "0");
        EXPECT_EQ(word, std::to_string(turn));
        std::vector<std::string> words;
        EXPECT_EQ(textOf(group->gather(std::to_string(group->process()), words)), "0");
        if (group->process() == 0)
          EXPECT_EQ(words, (std::vector<std::string>{"0", "1", "2"}));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  std::vector<std::thread> threads;
  for (const auto &group : all.groups)
    threads.emplace_back([&] { EXPECT_TRUE(group->leave()); });
  for (std::thread &thread : threads)
    thread.join();
}

// Sets the limits of open files, and opens process 0 of `processes`. Returns the code of its failure, and 100 if it
// raised the soft limit as far as necessary.
int openWithLimit(rlim_t soft, rlim_t hard, int processes) {
  pid_t child = fork();
  if (child != 0)
    return codeOf(child);
  rlimit limit = {soft, hard};
  setrlimit(RLIMIT_NOFILE, &limit);
  std::unique_ptr<ProcessGroup> group;
  ProcessGroupOptions options = optionsOf(0, processes, freshName());
  options.timeout = 0.2;
  auto begin = Clock::now();
  Status status = ProcessGroup::open(options, group);
  if (Clock::now() - begin > 1s)
    _exit(101);
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string expected = "expected 264 open files for the connections of 200 processes, found a limit of 128 for "
                               "process 0; raise it with: ulimit -n 264";
  if (status.code() == MT_INVALID)
    _exit(status.message() == expected ? MT_INVALID : 102);
  _exit(limit.rlim_cur >= static_cast<rlim_t>(processes) + 64 ? 100 : 103);
}

TEST(Descriptors, ProcessZeroRaisesItsLimitOrSaysWhatItLacks) {
  EXPECT_EQ(openWithLimit(128, 128, 200), MT_INVALID);
  EXPECT_EQ(openWithLimit(128, 1024, 200), 100);
}

TEST(Descriptors, TwoHundredProcessesMeet) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 1000)
    GTEST_SKIP() << "expected 1000 open files for 200 processes in this one, found " << limit.rlim_cur;
  auto begin = Clock::now();
  Processes all(200, [](ProcessGroupOptions &options) { options.silence = 15; });
  EXPECT_LT(Clock::now() - begin, 10s); // 0.3 s on a quiet machine
  RecordProperty("milliseconds", static_cast<int>((Clock::now() - begin) / 1ms));
  for (const auto &group : all.groups)
    EXPECT_EQ(textOf(group->check()), "0");
}

} // namespace mtrun
