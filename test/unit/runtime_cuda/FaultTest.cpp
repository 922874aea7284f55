// SPDX-License-Identifier: Apache-2.0
//
// Whatever the driver refuses ends in a message, never in a hang, a crash or wrong results.
#include "../runtime/Training.h"

#include "Child.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace mtrun::test {

static std::string readAll(FILE *file) {
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;)
    text += static_cast<char>(c);
  return text;
}

Child start(const Settings &settings, const std::function<Status()> &body, bool log) {
  Child child;
  FILE *messages = child.messages = std::tmpfile(), *errors = child.errors = std::tmpfile();
  std::fflush(nullptr);
  child.process = fork();
  if (child.process == 0) {
    setenv("MTRUN_CUDA_DRIVER", MTC_BINARY_DIR "/lib/libcuda-simulated.so", 1);
    setenv("MTRUN_NCCL", MTC_BINARY_DIR "/lib/libnccl-simulated.so", 1);
    for (const auto &[name, value] : settings)
      setenv(name, value.c_str(), 1);
    if (log)
      dup2(fileno(errors), STDERR_FILENO);
    alarm(60);
    Status status = body();
    std::fputs(status.message().c_str(), messages);
    std::fflush(messages);
    std::exit(testing::Test::HasFailure() ? 100 : status.code());
  }
  return child;
}

std::string finish(const Child &child, std::string *log) {
  int status = 0;
  waitpid(child.process, &status, 0);
  std::string text = readAll(child.messages), written = readAll(child.errors);
  std::fclose(child.messages);
  std::fclose(child.errors);
  if (log)
    *log = written;
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " " + written;
  if (WEXITSTATUS(status) == 100)
    return "failed " + written;
  return std::to_string(WEXITSTATUS(status)) + (WEXITSTATUS(status) ? ": " + text : "");
}

std::string inChild(const Settings &settings, const std::function<Status()> &body, std::string *log) {
  return finish(start(settings, body, log != nullptr), log);
}

namespace {

Status create(const char *devices, bool gpu, std::unique_ptr<Session> &session) {
  static Loaded loaded({21, 8, 37, gpu}); // outlives the session
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  return Session::create(*loaded.plan, &options, session);
}

std::string outcome(const char *devices, const Settings &settings, bool gpu = true) {
  return inChild(settings, [&] {
    std::unique_ptr<Session> session;
    return create(devices, gpu, session);
  });
}

void expectOutcome(const std::string &found, const std::string &begin, const std::string &part) {
  EXPECT_EQ(found.substr(0, begin.size()), begin) << found;
  EXPECT_NE(found.find(part), std::string::npos) << found;
}

TEST(CudaFaults, NoDriver) {
  expectOutcome(outcome("cuda:0", {{"MTRUN_CUDA_DRIVER", "/nowhere/libcuda.so.1"}}),
                "8: GPUs need the NVIDIA driver's library, which cannot be opened: /nowhere/libcuda.so.1",
                "install the driver, or use --devices cpu");
}

TEST(CudaFaults, DriverTooOld) {
  expectOutcome(outcome("cuda:0", {{"MTC_SIM_VERSION", "11030"}}),
                "8: expected an NVIDIA driver for CUDA 11.4 or newer, found ", "for 11.3; install a newer driver");
  expectOutcome(outcome("cuda:0", {{"MTRUN_CUDA_DRIVER", "libm.so.6"}}),
                "8: expected an NVIDIA driver for CUDA 11.4 or newer, found ", "libm.so.6 without cuInit");
}

TEST(CudaFaults, NoSuchDevice) {
  expectOutcome(outcome("cuda:0", {{"MTC_SIM_DEVICES", "0"}}), "8: expected an NVIDIA GPU, the driver finds none", "");
  expectOutcome(outcome("cuda:2", {{"MTC_SIM_DEVICES", "2"}}), "8: expected a GPU cuda:2, found 2 GPUs", "");
  for (const char *wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:1-0", "cuda:0*0", "cuda:0*", "cuda:0,", "cuda:0x4"})
    expectOutcome(outcome(wrong, {}), "1: expected GPUs as cuda:0, cuda:0-3, cuda:0,2 or cuda:0*4, found ", wrong);
  expectOutcome(outcome("cuda:0*1025", {}), "1: expected ", "found cuda:0*1025");
  expectOutcome(outcome("cuda:0*9", {}), "1: expected at most 8 devices for a plan of 8 shards, found 9", "");
}

TEST(CudaFaults, NoCodeForTheGpu) {
  expectOutcome(outcome("cuda:0", {{"MTC_SIM_CAPABILITY", "9.0"}}),
                "5: expected code for a GPU of compute capability 9.0 in the plan, found cuda:simulated", "sm_90");
  expectOutcome(outcome("cuda:0", {}, false), "5: expected code for GPUs in the plan, found none", "--target cuda");
}

TEST(CudaFaults, OutOfMemoryAtLoad) {
  expectOutcome(outcome("cuda:0*2", {{"MTC_SIM_MEMORY", "20000"}}), "4: ", "bytes of free memory for 2 devices, found");
}

TEST(CudaFaults, ALostDeviceStaysLost) {
  std::string log;
  std::string found = inChild(
      {{"MTC_SIM_LOST", "3"}},
      [] { // the first is init's
        std::unique_ptr<Session> session;
        EXPECT_TRUE(create("cuda:0", true, session).ok());
        Samples samples({}, 3);
        const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
        EXPECT_TRUE(session->run("train_step", tensors, 21, nullptr).ok());
        EXPECT_EQ(session->run("train_step", tensors, 21, nullptr).code(), MT_LOST);
        EXPECT_EQ(session->init(0).code(), MT_LOST);
        (void)session->variable(0);
        EXPECT_EQ(session->health().code(), MT_LOST);
        return session->run("train_step", tensors, 21, nullptr);
      },
      &log);
  expectOutcome(found, "9: cuda:0 (Simulated GPU): the GPU failed in a step: CUDA_ERROR_LAUNCH_FAILED", "");
}

// All that a session does: the model, or the first status that is no success.
Status trainOnTwo(LinearModel &model, const TestPlanShape &shape, const Samples &samples) {
  std::unique_ptr<Session> session;
  if (Status status = create("cuda:0-1", true, session); !status.ok())
    return status;
  return train(*session, shape, samples, model);
}

TEST(CudaFaults, EveryCallInTurn) {
  TestPlanShape shape;
  Samples samples(shape, 3);
  LinearModel want = expected(shape, samples);
  int failures = 0;
  for (int call = 1;; ++call) {
    ASSERT_LT(call, 5000) << "no end of calls";
    std::string log;
    std::string found = inChild(
        {{"MTC_SIM_DEVICES", "2"}, {"MTC_SIM_FAIL", std::to_string(call)}},
        [&] {
          LinearModel model(shape);
          Status status = trainOnTwo(model, shape, samples);
          if (status.ok())
            EXPECT_EQ(model, want);
          return status;
        },
        &log);
    if (found == "0") { // a call that frees, or one without which copies are slower
      if (log.find("was not reached") != std::string::npos)
        break;
      continue;
    }
    ++failures;
    int code = std::atoi(found.c_str());
    ASSERT_TRUE(code == MT_DEVICE || code == MT_NO_MEMORY || code == MT_NO_DEVICE || code == MT_LOST)
        << "call " << call << ": " << found << "\n"
        << log;
    ASSERT_NE(found.find("CUDA_ERROR"), std::string::npos) << "call " << call << ": " << found << "\n" << log;
  }
  EXPECT_GT(failures, 100);
}

} // namespace
} // namespace mtrun::test
