// SPDX-License-Identifier: Apache-2.0
//
// Four training steps of the model of TestPlan.h, by a session and as they should come out.
#pragma once

#include "LinearModel.h"
#include "TestPlan.h"

#include "runtime/session/Session.h"

#include <gtest/gtest.h>
#include <stdexcept>

namespace mtrun::test {

struct Loaded {
  explicit Loaded(const TestPlanShape &shape = {}, const std::function<void(mt::plan::PlanT &)> &change = {}) {
    std::vector<uint8_t> bytes = makePlan(shape, change);
    Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
    if (!status.ok())
      throw std::runtime_error(status.message());
  }
  std::unique_ptr<Plan> plan;
};

inline std::unique_ptr<Session> makeSession(const Plan &plan, const char *devices, bool privateVariables = false) {
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  options.private_variables = privateVariables;
  std::unique_ptr<Session> session;
  Status status = Session::create(plan, &options, session);
  EXPECT_TRUE(status.ok()) << status.message();
  return session;
}

inline void readVariables(const Session &session, LinearModel &model) {
  std::memcpy(model.w.data(), session.variable(0).data(), model.w.size() * sizeof(float));
  std::memcpy(&model.b, session.variable(1).data(), sizeof(float));
  std::memcpy(&model.iteration, session.variable(3).data(), sizeof(int32_t));
}

// Four steps of different sizes, the last of one sample; every second one with weights. The first status that is no
// success. With `spoils` temporaries are NaNs before each.
inline Status train(Session &session, const TestPlanShape &shape, const Samples &samples, LinearModel &model,
                    bool spoils = false) {
  uint64_t sizes[] = {shape.batch, shape.batch / 2 + 1, shape.batch, 1};
  for (int step = 0; step < 4; ++step) {
    if (spoils)
      session.fillTemporaries(0xff);
    const void *tensors[] = {samples.x.data(), samples.y.data(), step % 2 ? samples.weights.data() : nullptr};
    double loss = 0, weight = 0;
    mtrun_results results = {&loss, &weight, nullptr, nullptr};
    if (Status status = session.run("train_step", tensors, static_cast<int64_t>(sizes[step]), &results); !status.ok())
      return status;
    model.losses.push_back(loss);
    model.losses.push_back(weight);
  }
  readVariables(session, model);
  return session.health();
}

inline LinearModel trained(Session &session, const TestPlanShape &shape, const Samples &samples) {
  LinearModel model(shape);
  Status status = train(session, shape, samples, model, /*spoils=*/true);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

inline LinearModel expected(const TestPlanShape &shape, const Samples &samples) {
  LinearModel model(shape);
  model.initialise(7);
  uint64_t sizes[] = {shape.batch, shape.batch / 2 + 1, shape.batch, 1};
  for (int step = 0; step < 4; ++step)
    model.step(samples, sizes[step], step % 2);
  return model;
}

} // namespace mtrun::test
