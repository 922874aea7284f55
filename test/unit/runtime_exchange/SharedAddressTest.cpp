// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SharedAddress.h"
#include "runtime/device/ProcessGroup.h"
#include "test/unit/runtime_exchange/SimulatedTransport.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

struct Shared {
  std::string rendezvous, secret;
  Status status;
};

std::vector<Shared> share(int processes, const Shared &before) {
  std::vector<Shared> all(static_cast<size_t>(processes), before);
  inProcesses(processes, [&](SimulatedTransport &transport) {
    Shared &own = all[static_cast<size_t>(transport.process())];
    own.status = shareAddress(transport, 10, own.rendezvous, own.secret);
  });
  return all;
}

TEST(SharedAddressTest, ProcessesOfOneHostShareANameAndASecret) {
  std::vector<Shared> all = share(3, {});
  for (const Shared &each : all) {
    EXPECT_TRUE(each.status.ok()) << each.status.message();
    EXPECT_TRUE(each.rendezvous.starts_with("unix:mtrun-"));
    EXPECT_EQ(each.rendezvous, all[0].rendezvous);
    EXPECT_EQ(each.secret.size(), 32u);
    EXPECT_EQ(each.secret, all[0].secret);
  }
  EXPECT_NE(share(2, {})[0].secret, all[0].secret);
}

TEST(SharedAddressTest, AddressAndSecretOfTheUserStay) {
  for (const Shared &each : share(2, {"tcp:somewhere:1", "a secret of the user", {}})) {
    EXPECT_TRUE(each.status.ok());
    EXPECT_EQ(each.rendezvous, "tcp:somewhere:1");
    EXPECT_EQ(each.secret, "a secret of the user");
  }
}

// Collects texts, and ends in all processes at once.
TEST(SharedAddressTest, ProcessesConnectGatherAndLeave) {
  inProcesses(3, [&](SimulatedTransport &transport) {
    ProcessGroupOptions options;
    options.process = transport.process();
    options.processes = transport.processes();
    options.timeout = 10;
    ASSERT_TRUE(shareAddress(transport, 10, options.rendezvous, options.secret).ok());
    std::unique_ptr<ProcessGroup> group;
    Status status = ProcessGroup::open(options, group);
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<std::string> all;
    EXPECT_TRUE(group->gather("I am " + std::to_string(options.process), all).ok());
    EXPECT_EQ(all, options.process == 0 ? std::vector<std::string>({"I am 0", "I am 1", "I am 2"})
                                        : std::vector<std::string>());
    EXPECT_TRUE(group->leave());
  });
}

// A process that ends after less work is noticed, and nobody waits for MPI's end.
TEST(SharedAddressTest, ProcessesThatEndAloneDoNotLeave) {
  inProcesses(2, [&](SimulatedTransport &transport) {
    ProcessGroupOptions options;
    options.process = transport.process();
    options.processes = transport.processes();
    options.timeout = 10;
    ASSERT_TRUE(shareAddress(transport, 10, options.rendezvous, options.secret).ok());
    std::unique_ptr<ProcessGroup> group;
    ASSERT_TRUE(ProcessGroup::open(options, group).ok());
    if (options.process == 0) {
      group->begin();
      Status status;
      for (int turn = 0; turn < 5000 && status.ok(); ++turn) {
        status = group->check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(status.message(), "process 1 ended while the others went on");
    }
    EXPECT_FALSE(group->leave());
  });
}

TEST(SharedAddressTest, ASilentProcessIsNamed) {
  inProcesses(2, [&](SimulatedTransport &transport) {
    if (transport.process() == 1)
      return;
    Shared own;
    own.status = shareAddress(transport, 0.05, own.rendezvous, own.secret);
    EXPECT_EQ(own.status.code(), MT_LOST);
    EXPECT_EQ(own.status.message(), "process 1 was lost: it sent nothing for 0.05 seconds");
  });
}

// A process that cannot take part ends the call in all others, with its reason.
TEST(SharedAddressTest, AFailureReachesAllProcesses) {
  for (int failing = 0; failing < 3; ++failing) {
    std::vector<Shared> all(3);
    inProcesses(3, [&](SimulatedTransport &transport) {
      Shared &own = all[static_cast<size_t>(transport.process())];
      Status failure = transport.process() == failing ? Status(MT_IO, "cannot open m.mtp") : Status();
      own.status = shareAddress(transport, 10, own.rendezvous, own.secret, failure);
    });
    for (int process = 0; process < 3; ++process) {
      const Status &status = all[static_cast<size_t>(process)].status;
      bool isOwn = process == failing || failing == 0;
      EXPECT_EQ(status.code(), MT_IO);
      EXPECT_EQ(status.message(),
                (isOwn ? "" : "process " + std::to_string(failing) + ": ") + std::string("cannot open m.mtp"));
    }
  }
}

} // namespace
} // namespace mtrun::test
