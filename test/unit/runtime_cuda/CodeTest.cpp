// SPDX-License-Identifier: Apache-2.0
//
// A driver that is older than the toolkit which made a plan's cubins: such plans were called damaged, although their
// PTX text runs there. What the driver takes of a GPU's memory beside the session's own, and GPUs' rates by precision.
#include "../runtime/Training.h"
#include "runtime/abi/plan_file.h"
#include "runtime/device/cuda/Gpus.h"

#include "Child.h"

#include <map>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

// With code for "cuda:sm_90", as ptxas of CUDA 13.0 leaves its notes in it, and with PTX text.
std::unique_ptr<Plan> planWithCubin(const TestPlanShape &given) {
  TestPlanShape shape = given;
  shape.gpu = shape.ptx = true;
  fb::PlanT tables = makeTables(shape);
  tables.precision = "bf16"; // for rates alone: its kernels are of float32
  auto target = std::make_unique<fb::TargetT>();
  target->name = "cuda:sm_90";
  target->device = "cuda";
  target->features = {"sm_90"};
  target->section = 3;
  tables.targets.push_back(std::move(target));
  static constexpr char cubin[] = "\x7f"
                                  "ELF\2\1\1\0Cuda compilation tools, release 13.0, V13.0.88\n";
  std::vector<uint8_t> code = kernelFile(), ptx = kernelFile("gpu_kernels.ptx");
  uint64_t constants[] = {tables.shard_rows, shape.features};
  SectionBytes sections[] = {{"cpu", code},
                             {"constants", {reinterpret_cast<uint8_t *>(constants), sizeof(constants)}},
                             {"cuda:ptx", ptx},
                             {"cuda:sm_90", {reinterpret_cast<const uint8_t *>(cubin), sizeof(cubin) - 1}}};
  std::vector<uint8_t> bytes = writePlanFile(tables, sections);
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  EXPECT_TRUE(status.ok()) << status.message();
  return plan;
}

TEST(CudaCode, WhereTheDriverRefusesACubinItsPtxRuns) {
  EXPECT_EQ(inChild({{"MTC_SIM_CAPABILITY", "9.0"}, {"MTC_SIM_PTX", simulatedCode}, {"MTC_SIM_DEVICES", "2"}},
                    [] {
                      TestPlanShape shape;
                      std::unique_ptr<Plan> plan = planWithCubin(shape);
                      Samples samples(shape, 3);
                      std::unique_ptr<Session> session = makeSession(*plan, "cuda:0-1");
                      EXPECT_STREQ(session->info().target, "cuda:ptx");
                      EXPECT_EQ(trained(*session, shape, samples), expected(shape, samples));
                      // Two GPUs of 4 multiprocessors at 1 GHz, tensor cores of Hopper in BF16.
                      EXPECT_EQ(session->info().peak_flops, 2 * 2.0 * 2048 * 4 * 1e9);
                      return Status();
                    }),
            "0");
}

TEST(CudaCode, WhatNoTargetRunsIsNamedWithTheToolkitAndTheDriver) {
  auto outcome = [](const char *target) {
    return inChild({{"MTC_SIM_CAPABILITY", "9.0"}}, [&] {
      std::unique_ptr<Plan> plan = planWithCubin({});
      mtrun_options options = mtrun_options_init();
      options.devices = "cuda:0";
      options.cpu = target;
      std::unique_ptr<Session> session;
      return Session::create(*plan, &options, session);
    });
  };
  std::string expected = "5: cuda:0 (Simulated GPU): target cuda:sm_90, a cubin of CUDA 13.0: its code does not load "
                         "with a driver for CUDA 12.4: CUDA_ERROR_NO_BINARY_FOR_GPU";
  EXPECT_EQ(outcome(nullptr).substr(0, expected.size()), expected) << outcome(nullptr);
  EXPECT_NE(outcome("cuda:sm_90").find("install a newer driver"), std::string::npos);
  expected = "5: cuda:0 (Simulated GPU): target cuda:ptx, PTX ";
  EXPECT_EQ(outcome("cuda:ptx").substr(0, expected.size()), expected) << outcome("cuda:ptx");
}

TEST(CudaCode, RatesAreOfThePrecision) {
  auto rates = [](const char *capability, double flops, double tf32, double half) {
    EXPECT_EQ(inChild({{"MTC_SIM_CAPABILITY", capability}},
                      [&] {
                        const cuda::Driver *driver = nullptr;
                        std::vector<cuda::Gpu> gpus;
                        Status status = cuda::openDriver(driver);
                        if (status.ok())
                          status = cuda::listGpus(*driver, gpus);
                        if (status.ok()) {
                          EXPECT_EQ(gpus[0].flopRate, flops * 8e9) << capability; // 4 multiprocessors, 1 GHz
                          EXPECT_EQ(gpus[0].tf32Rate, tf32 * 8e9) << capability;
                          EXPECT_EQ(gpus[0].halfRate, half * 8e9) << capability;
                        }
                        return status;
                      }),
              "0");
  };
  rates("7.5", 64, 64, 64);
  rates("8.0", 64, 512, 1024);
  rates("8.9", 128, 256, 512);
  rates("9.0", 128, 1024, 2048);
  rates("10.0", 128, 2048, 4096);
  rates("12.0", 128, 256, 512);
}

// Stacks of a kernel's threads are taken for all threads that a GPU can hold, 2,048 of each of 4 multiprocessors.
TEST(CudaCode, StacksOfThreadsArePromised) {
  EXPECT_EQ(inChild({},
                    [] {
                      constexpr uint32_t stack = 768;
                      TestPlanShape shape;
                      shape.gpu = true;
                      Loaded plain(shape), loaded(shape, [](fb::PlanT &plan) {
                        for (size_t i = 0; i < plan.kernels.size(); ++i) {
                          plan.targets.back()->usage.push_back(std::make_unique<fb::GpuUsageT>());
                          plan.targets.back()->usage.back()->stack_bytes = i == 1 ? stack : 0;
                        }
                      });
                      uint64_t before = makeSession(*plain.plan, "cuda:0")->info().peak_bytes;
                      std::unique_ptr<Session> session = makeSession(*loaded.plan, "cuda:0");
                      EXPECT_EQ(session->info().peak_bytes - before, stack * 2048 * 4u);
                      EXPECT_GT(session->info().taken_bytes, stack * 2048 * 4u);
                      EXPECT_LE(session->info().taken_bytes, session->info().peak_bytes);
                      return Status();
                    }),
            "0");
}

// Workgroup memory beyond what every GPU gives: a driver must be told before a launch asks for it.
TEST(CudaCode, LaunchesGiveWorkgroupMemory) {
  EXPECT_EQ(inChild({{"MTC_SIM_DEVICES", "2"}},
                    [] {
                      TestPlanShape shape;
                      shape.gpu = true;
                      auto giving = [](uint32_t bytes) {
                        return [bytes](fb::PlanT &plan) {
                          for (size_t i = 0; i < plan.kernels.size(); ++i) {
                            plan.targets.back()->usage.push_back(std::make_unique<fb::GpuUsageT>());
                            plan.targets.back()->usage.back()->dynamic_shared_bytes = i % 2 ? bytes : 0;
                          }
                        };
                      };
                      Loaded loaded(shape, giving(96 << 10));
                      Samples samples(shape, 3);
                      EXPECT_EQ(trained(*makeSession(*loaded.plan, "cuda:0-1"), shape, samples),
                                expected(shape, samples));
                      return Status();
                    }),
            "0");
}

TEST(CudaProcesses, WithoutAccessCopiesGoThroughTheHost) {
  EXPECT_EQ(
      inChild({{"MTC_SIM_DEVICES", "8"}, {"MTC_SIM_PEERS", "0"}},
              [] {
                TestPlanShape shape;
                shape.gpu = true;
                Loaded loaded(shape);
                Samples samples(shape, 3);
                for (const char *devices : {"cuda:0-1", "cuda:0-2", "cuda:0-7", "cuda:0-1*2"})
                  EXPECT_EQ(trained(*makeSession(*loaded.plan, devices), shape, samples), expected(shape, samples))
                      << devices;
                return Status();
              }),
      "0");
}

// All devices once read device 0 first, then device 1.
TEST(CudaProcesses, NoTwoReadFromOneAtATime) {
  std::string log;
  EXPECT_EQ(inChild(
                {{"MTC_SIM_DEVICES", "4"}, {"MTC_SIM_COPIES", "1"}},
                [] {
                  TestPlanShape shape;
                  shape.gpu = true;
                  shape.features = 1000; // a chunk for each
                  Loaded loaded(shape);
                  (void)makeSession(*loaded.plan, "cuda:0-3");
                  return Status();
                },
                &log),
            "0");
  std::map<int, std::vector<int>> sources;
  for (size_t at = 0; (at = log.find("copy to ", at)) != std::string::npos; ++at) {
    int to = -1, from = -1;
    ASSERT_EQ(std::sscanf(log.c_str() + at, "copy to %d from %d", &to, &from), 2);
    sources[to].push_back(from);
  }
  ASSERT_EQ(sources.size(), 4u) << log;
  for (auto &[to, list] : sources) {
    ASSERT_GE(list.size(), 3u);
    EXPECT_EQ(std::vector<int>(list.begin(), list.begin() + 3),
              (std::vector<int>{(to + 1) % 4, (to + 2) % 4, (to + 3) % 4}));
  }
}

} // namespace
} // namespace mtrun::test
