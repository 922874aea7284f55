// SPDX-License-Identifier: Apache-2.0
//
// A process a simulated GPU, with simulated NCCL between them: the bits of one process, and no failure that hangs.
#include "../runtime/Training.h"

#include "Child.h"

#include <chrono>
#include <unistd.h>

namespace mtrun::test {
namespace {

const TestPlanShape shape = {21, 8, 37, true};

// Processes 0 to n - 1 of a session; what each did.
class Together {
public:
  explicit Together(int n, double timeout = 30) : n_(n), timeout_(timeout) {
    static int rendezvous = 0;
    rendezvous_ = "unix:mtc-test-" + std::to_string(getpid()) + "-" + std::to_string(++rendezvous);
  }

  // Of process `of`, or of all.
  Together &with(int of, const char *name, const std::string &value) {
    settings_.push_back({of, {name, value}});
    return *this;
  }
  Together &shards(int of, uint64_t count) {
    differing_ = of;
    shards_ = count;
    return *this;
  }

  Together &fast() {
    fast_ = true;
    return *this;
  }
  // The plan has PTX, for real GPUs.
  Together &ptx() {
    ptx_ = true;
    return *this;
  }
  // The list of GPUs of process `of`.
  Together &gpus(int of, const std::string &list) {
    elsewhere_ = of;
    gpus_ = list;
    return *this;
  }

  std::vector<std::string> run(const std::function<Status(Session &, int)> &body) {
    std::vector<Child> children;
    for (int process = 0; process < n_; ++process) {
      Settings settings = {{"MTC_SIM_DEVICES", std::to_string(n_)}, {"MTC_SIM_ORDER", std::to_string(process)}};
      for (const auto &[of, setting] : settings_)
        if (of < 0 || of == process)
          settings.push_back(setting);
      children.push_back(start(settings, [&] { return alone(process, body); }, true));
    }
    std::vector<std::string> outcomes;
    for (const Child &child : children)
      outcomes.push_back(finish(child, &logs.emplace_back()));
    return outcomes;
  }

  std::vector<std::string> logs;

private:
  Status alone(int process, const std::function<Status(Session &, int)> &body) const {
    TestPlanShape own = shape;
    if (process == differing_)
      own.shards = shards_;
    own.ptx = ptx_;
    Loaded loaded(own, [this](mt::plan::PlanT &plan) { plan.fast = fast_; });
    std::string devices = process == elsewhere_ ? gpus_ : "cuda:0-" + std::to_string(n_ - 1);
    mtrun_options options = mtrun_options_init();
    options.devices = devices.c_str();
    options.processes = n_;
    options.process = options.local_process = process;
    options.rendezvous = rendezvous_.c_str();
    options.timeout = timeout_;
    std::unique_ptr<Session> session;
    if (Status status = Session::create(*loaded.plan, &options, session); !status.ok())
      return status;
    return body(*session, process);
  }

  int n_, differing_ = -1, elsewhere_ = -1;
  std::string gpus_;
  uint64_t shards_ = 0;
  bool fast_ = false, ptx_ = false;
  double timeout_;
  std::string rendezvous_;
  std::vector<std::pair<int, Settings::value_type>> settings_;
};

Status trainAsExpected(Session &session, int) {
  Samples samples(shape, 3);
  LinearModel model(shape);
  Status status = train(session, shape, samples, model);
  if (status.ok())
    EXPECT_EQ(model, expected(shape, samples));
  return status;
}

TEST(Processes, SameBitsOnEveryNumberOfThem) {
  for (int n : {2, 3, 8})
    for (const std::string &outcome : Together(n).run(trainAsExpected))
      EXPECT_EQ(outcome, "0") << n;
}

TEST(Processes, EachWritesItsOwnRowsOfOutputs) {
  auto predict = [](Session &session, int process) -> Status {
    Samples samples(shape, 5);
    LinearModel model(shape);
    model.initialise(7);
    std::vector<float> out(shape.batch, -1.0f);
    const void *tensors[] = {samples.x.data(), out.data()};
    Status status = session.run("predict", tensors, 10, nullptr);
    uint64_t shardRows = (shape.batch + 7) / 8, begin = process * shardRows * 4, end = begin + shardRows * 4;
    for (uint64_t row = 0; row < shape.batch; ++row)
      EXPECT_EQ(out[row], row < 10 && row >= begin && row < end ? model.predict(samples, row) : -1.0f) << row;
    return status;
  };
  for (const std::string &outcome : Together(2).run(predict))
    EXPECT_EQ(outcome, "0");
}

TEST(Processes, WhatTheFirstSaysAllHave) {
  auto share = [](Session &session, int process) -> Status {
    for (int turn = 0; turn < 100; ++turn) {
      std::string bytes = process == 0 ? std::string(static_cast<size_t>(turn), 'x') : "other";
      if (Status status = session.broadcast(bytes); !status.ok())
        return status;
      EXPECT_EQ(bytes, std::string(static_cast<size_t>(turn), 'x'));
    }
    EXPECT_EQ(session.process(), process);
    EXPECT_EQ(session.processes(), 3);
    return Status();
  };
  for (const std::string &outcome : Together(3).run(share))
    EXPECT_EQ(outcome, "0");
}

// Of a fast plan NCCL adds: near the tree's sums, the same in all processes; a device without rows adds nothing.
TEST(Processes, FastPlansAddInNcclsOrder) {
  auto near = [](Session &session, int) -> Status {
    Samples samples(shape, 3);
    LinearModel model(shape), want = expected(shape, samples);
    Status status = train(session, shape, samples, model);
    for (size_t i = 0; status.ok() && i < want.w.size(); ++i)
      EXPECT_NEAR(model.w[i], want.w[i], 1e-4) << i;
    for (size_t i = 0; status.ok() && i < want.losses.size(); ++i)
      EXPECT_NEAR(model.losses[i], want.losses[i], 1e-4) << i;
    return status;
  };
  for (int n : {2, 8})
    for (const std::string &outcome : Together(n).fast().run(near))
      EXPECT_EQ(outcome, "0") << n;
}

void expectPart(const std::string &found, const std::string &begin, const std::string &part) {
  EXPECT_EQ(found.substr(0, begin.size()), begin) << found;
  EXPECT_NE(found.find(part), std::string::npos) << found;
}

TEST(Processes, OneThatDiesIsNamed) {
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> outcomes = Together(3).with(2, "MTC_SIM_NCCL_DIE", "4").run(trainAsExpected);
  expectPart(outcomes[2], "signal 9", "");
  expectPart(outcomes[0], "9: ", "process 2 (cuda:2) was lost");
  expectPart(outcomes[1], "9: ", "process 2 (cuda:2) was lost");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Processes, OneThatDoesNotAnswerEndsInTime) {
  std::vector<std::string> outcomes = Together(2, 10).with(1, "MTC_SIM_NCCL_STALL", "3").run(trainAsExpected);
  for (const std::string &outcome : outcomes) // whichever gives up first, the other hears why
    expectPart(outcome, "9: ", "did not answer for 10 seconds");
}

TEST(Processes, AnErrorOfTheConnectionIsTold) {
  std::vector<std::string> outcomes = Together(2).with(1, "MTC_SIM_NCCL_ASYNC", "3").run(trainAsExpected);
  expectPart(outcomes[1], "9: cuda:1 (Simulated GPU): the exchange between processes failed: NCCL 2.21.5: ",
             "remote process exited or there was a network error");
  expectPart(outcomes[0], "9: process 1 (cuda:1): ", "the exchange between processes failed");
}

TEST(Processes, OneThatEndsEarlyIsNamed) {
  auto half = [](Session &session, int process) -> Status {
    return process == 1 ? Status(MT_IO, "no more") : trainAsExpected(session, process);
  };
  std::vector<std::string> outcomes = Together(3).run(half);
  EXPECT_EQ(outcomes[1], "7: no more");
  for (int process : {0, 2})
    expectPart(outcomes[static_cast<size_t>(process)], "9: ", "process 1 (cuda:1) ended while the others went on");
}

TEST(Processes, OneThatIsMissingIsNamed) {
  std::vector<std::string> outcomes = Together(3).with(1, "MTC_SIM_DEVICES", "0").run(trainAsExpected);
  expectPart(outcomes[1], "8: ", "");
  for (int process : {0, 2})
    expectPart(outcomes[static_cast<size_t>(process)], "9: ", "process 1 (cuda:1)");
}

TEST(Processes, PlansMustBeOne) {
  for (const std::string &outcome : Together(2).shards(1, 4).run(trainAsExpected))
    expectPart(outcome, "1: process 1 (cuda:1): expected plan: ", ", found plan: ");
}

// What would change the bits of one process alone ends all of them, and each says what differs.
TEST(Processes, TheyComputeTheSameBits) {
  auto differing = [](const char *name, const char *value) {
    return Together(2)
        .ptx()
        .with(-1, "MTC_SIM_PTX", simulatedCode)
        .with(0, "MTC_SIM_CAPABILITY", "9.0")
        .with(1, "MTC_SIM_CAPABILITY", name == std::string("MTC_SIM_CAPABILITY") ? value : "9.0")
        .with(1, name, value)
        .run(trainAsExpected);
  };
  for (auto [name, value, part] :
       {std::tuple("MTC_SIM_CAPABILITY", "8.0", "compute capability: 9.0, found compute capability: 8.0"),
        std::tuple("MTC_SIM_NAME", "Other GPU", "GPU: Simulated GPU, found GPU: Other GPU"),
        std::tuple("MTC_SIM_VERSION", "13000", "driver: 12040, found driver: 13000")})
    for (const std::string &outcome : differing(name, value)) {
      expectPart(outcome, "5: process 1 (cuda:1) would compute other bits than process 0: expected ", part);
      expectPart(outcome, "5: ", "one driver and the same libraries (or --libraries off); --force goes on");
    }
}

TEST(Processes, EachHasAGpuOfItsOwn) {
  std::vector<std::string> outcomes = Together(2).gpus(1, "cuda:1,0").run(trainAsExpected);
  for (const std::string &outcome : outcomes)
    expectPart(outcome,
               "1: expected a GPU of its own for each process, found 0000:00:00.0 in process 0 (cuda:0) and "
               "in process 1 (cuda:0)",
               "several devices on one GPU are one process: --devices 'cuda:0*2' --processes 1");
  // Of another host, it is another GPU.
  for (const std::string &outcome :
       Together(2).gpus(1, "cuda:1,0").with(1, "NCCL_HOSTID", "another").run(trainAsExpected))
    EXPECT_EQ(outcome, "0");
}

TEST(Processes, NoNccl) {
  for (const std::string &outcome : Together(2).with(-1, "MTRUN_NCCL", "/nowhere/libnccl.so.2").run(trainAsExpected))
    expectPart(outcome,
               "8: a process per GPU needs NVIDIA's library NCCL, which cannot be opened: /nowhere/libnccl.so.2",
               "install it (Debian, Ubuntu: libnccl2; pip: nvidia-nccl-cu12), or use --processes 1");
  for (const std::string &outcome : Together(2).with(-1, "MTC_SIM_NCCL_VERSION", "21704").run(trainAsExpected))
    expectPart(outcome, "8: expected NCCL 2.18 or newer for a process per GPU, found ", " 2.17.4; install a newer one");
}

// Releases that are reported to hang between hosts hang there alone. NCCL_HOSTID is NCCL's own name for a host.
TEST(Processes, AnNcclThatHangsBetweenHosts) {
  for (const char *version : {"22602", "22809"}) {
    for (const std::string &outcome : Together(2).with(-1, "MTC_SIM_NCCL_VERSION", version).run(trainAsExpected))
      EXPECT_EQ(outcome, "0");
    expectPart(
        Together(2).with(-1, "MTC_SIM_NCCL_VERSION", version).with(1, "NCCL_HOSTID", "another").run(trainAsExpected)[1],
        "8: expected an NCCL that does not hang between hosts, found 2.2", "MTRUN_NCCL");
  }
  for (const std::string &outcome : Together(2).with(1, "NCCL_HOSTID", "another").run(trainAsExpected))
    EXPECT_EQ(outcome, "0");
}

// A program that uses the C API had none of mtrun's settings.
TEST(Processes, SettingsOfNcclAreMadeForEveryProgram) {
  auto settings = [](Session &, int process) -> Status {
    EXPECT_STREQ(std::getenv("NCCL_GRAPH_MIXING_SUPPORT"), "0");
    EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), process == 0 ? "0" : "1"); // the user's
    return {};
  };
  for (const std::string &outcome : Together(2).with(1, "NCCL_GRAPH_REGISTER", "1").run(settings))
    EXPECT_EQ(outcome, "0");
}

// Each call of NCCL in turn, and of the driver's query, which one process does not call.
TEST(Processes, EveryCallInTurn) {
  int failures = 0;
  for (int call = 1;; ++call) {
    ASSERT_LT(call, 500) << "no end of calls";
    Together together(2);
    std::vector<std::string> outcomes =
        together.with(1, "MTC_SIM_NCCL_FAIL", std::to_string(call)).run(trainAsExpected);
    if (outcomes[1] == "0") { // the end of a communicator; the first question after errors
      EXPECT_EQ(outcomes[0], "0");
      if (together.logs[1].find("was not reached") != std::string::npos)
        break;
      continue;
    }
    ++failures;
    int code = std::atoi(outcomes[1].c_str());
    ASSERT_TRUE(code == MT_DEVICE || code == MT_NO_DEVICE || code == MT_LOST) << call << ": " << outcomes[1];
    ASSERT_NE(outcomes[1].find("NCCL"), std::string::npos) << call << ": " << outcomes[1];
    if (outcomes[0] != "0") // it has all that it needs where only the other's last question failed
      expectPart(outcomes[0], "9: ", "process 1 (cuda:1)");
  }
  EXPECT_GT(failures, 20);
}

} // namespace
} // namespace mtrun::test
