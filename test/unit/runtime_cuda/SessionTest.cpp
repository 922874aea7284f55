// SPDX-License-Identifier: Apache-2.0
//
// Sessions on simulated GPUs: the same bits on any number of them, and as many of them on one GPU.
#include "../runtime/Training.h"

#include "Child.h"

namespace mtrun::test {
namespace {

TestPlanShape withGpu(TestPlanShape shape) {
  shape.gpu = true;
  return shape;
}

TEST(CudaSession, SameBitsOnEveryNumberOfDevices) {
  EXPECT_EQ(inChild({{"MTC_SIM_DEVICES", "8"}},
                    [] {
                      for (TestPlanShape shape : {TestPlanShape{21, 8, 37}, TestPlanShape{8, 8, 1},
                                                  TestPlanShape{33, 16, 140}, TestPlanShape{10, 1, 3}}) {
                        shape = withGpu(shape);
                        Loaded loaded(shape);
                        Samples samples(shape, 3);
                        LinearModel want = expected(shape, samples);
                        for (const char *devices : {"cuda", "cuda:0", "cuda:3", "cuda:0*4", "cuda:0-1", "cuda:0,2,7",
                                                    "cuda:0-7", "cuda:1-2*3"}) {
                          if (shape.shards == 1 && std::string(devices).size() > 6)
                            continue; // more than one device
                          std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
                          EXPECT_EQ(trained(*session, shape, samples), want) << devices << " batch " << shape.batch;
                        }
                      }
                      return Status();
                    }),
            "0");
}

TEST(CudaSession, PredictWritesValidRowsOnly) {
  EXPECT_EQ(inChild({{"MTC_SIM_DEVICES", "3"}},
                    [] {
                      TestPlanShape shape = withGpu({});
                      Loaded loaded(shape);
                      Samples samples(shape, 5);
                      LinearModel model(shape);
                      model.initialise(7);
                      for (const char *devices : {"cuda:0", "cuda:0-2", "cuda:0*8"}) {
                        std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
                        for (uint64_t n : {uint64_t{1}, uint64_t{10}, shape.batch}) {
                          std::vector<float> out(shape.batch, -1.0f);
                          const void *tensors[] = {samples.x.data(), out.data()};
                          EXPECT_TRUE(session->run("predict", tensors, static_cast<int64_t>(n), nullptr).ok());
                          for (uint64_t row = 0; row < shape.batch; ++row)
                            EXPECT_EQ(out[row], row < n ? model.predict(samples, row) : -1.0f) << row;
                        }
                      }
                      return Status();
                    }),
            "0");
}

TEST(CudaSession, CollectivesMoveTheBytesOfARingAndPartialSumsTravel) {
  EXPECT_EQ(inChild({{"MTC_SIM_DEVICES", "7"}},
                    [] {
                      TestPlanShape shape = withGpu({});
                      Loaded loaded(shape);
                      Samples samples(shape, 3);
                      const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
                      int64_t partials = static_cast<int64_t>(shape.features + 1 + 2) * 4;
                      for (int devices : {1, 2, 3, 7}) {
                        std::string name = "cuda:0-" + std::to_string(devices - 1);
                        std::unique_ptr<Session> session = makeSession(*loaded.plan, name.c_str());
                        EXPECT_TRUE(
                            session->run("train_step", tensors, static_cast<int64_t>(shape.batch), nullptr).ok());
                        EXPECT_EQ(session->info().collective_bytes, 2 * (devices - 1) * partials) << devices;
                      }
                      std::unique_ptr<Session> good = makeSession(*loaded.plan, "cuda:0-1");
                      std::unique_ptr<Session> bad = makeSession(*loaded.plan, "cuda:0-1");
                      bad->corruptPartial(0, 1);
                      EXPECT_FALSE(trained(*good, shape, samples) == trained(*bad, shape, samples));
                      return Status();
                    }),
            "0");
}

TEST(CudaSession, TakesTheMemoryThatItSays) {
  EXPECT_EQ(inChild({},
                    [] {
                      Loaded loaded(withGpu({}));
                      std::unique_ptr<Session> session = makeSession(*loaded.plan, "cuda:0*2");
                      EXPECT_GT(session->info().peak_bytes, session->info().variables_bytes);
                      EXPECT_EQ(session->info().devices, 2);
                      EXPECT_EQ(session->shards(0) + session->shards(1), 8);
                      EXPECT_STREQ(session->info().target, "cuda:simulated");
                      EXPECT_GT(session->info().taken_bytes, session->info().variables_bytes);
                      EXPECT_LE(session->info().taken_bytes, session->info().peak_bytes);
                      EXPECT_EQ(session->info().peak_flops, 2 * 128 * 4 * 1e9); // cuda:0 is there once
                      EXPECT_EQ(session->info().peak_bandwidth, 64e9);
                      return Status();
                    }),
            "0");
}

} // namespace
} // namespace mtrun::test
