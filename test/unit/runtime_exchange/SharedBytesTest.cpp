// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SharedBytes.h"
#include "runtime/device/SharedAddress.h"
#include "test/unit/runtime_exchange/SimulatedTransport.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

std::vector<std::byte> bytesOf(size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<size_t>(seed));
  return bytes;
}

// Every process may be the root, and the last piece may be short, absent or the only one.
TEST(SharedBytesTest, AllReceiveTheBytesOfTheRoot) {
  for (int processes : {2, 3, 5, 8})
    inProcesses(processes, [&](SimulatedTransport &transport) {
      ProcessGroupOptions options;
      options.process = transport.process();
      options.processes = processes;
      options.timeout = 30;
      ASSERT_TRUE(shareAddress(transport, 30, options.rendezvous, options.secret).ok());
      std::unique_ptr<ProcessGroup> group;
      ASSERT_TRUE(ProcessGroup::open(options, group).ok());
      for (int root = 0; root < processes; ++root)
        for (size_t size : {size_t{0}, size_t{1}, size_t{4097}, (size_t{1} << 24) + 3}) {
          if (size > 5000 && root != 1)
            continue;
          std::vector<std::byte> expected = bytesOf(size, root);
          std::vector<std::byte> bytes = transport.process() == root ? expected : bytesOf(17, 99);
          Status status = shareBytes(transport, *group, bytes, root);
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_TRUE(bytes == expected) << "process " << transport.process() << " of " << processes << ", root "
                                         << root << ", " << size << " bytes";
        }
      EXPECT_TRUE(group->leave());
    });
}

// Process 0 receives two parts of each process, one of which may be empty.
TEST(SharedBytesTest, TheFirstProcessCollectsParts) {
  constexpr int processes = 3;
  inProcesses(processes, [&](SimulatedTransport &transport) {
    ProcessGroupOptions options;
    options.process = transport.process();
    options.processes = processes;
    options.timeout = 30;
    ASSERT_TRUE(shareAddress(transport, 30, options.rendezvous, options.secret).ok());
    std::unique_ptr<ProcessGroup> group;
    ASSERT_TRUE(ProcessGroup::open(options, group).ok());
    std::vector<std::vector<std::byte>> memory;
    std::vector<SharedPart> parts;
    for (int part = 0; part < 2; ++part)
      for (int process = 1; process < processes; ++process) {
        size_t size = part == 0 ? 1000 * static_cast<size_t>(process - 1) : (size_t{1} << 24) + 5;
        bool receives = transport.process() == 0;
        if (!receives && process != transport.process())
          continue;
        memory.push_back(receives ? std::vector<std::byte>(size) : bytesOf(size, process + part));
        parts.push_back({process, memory.back().data(), size});
      }
    ASSERT_TRUE(collectParts(transport, *group, parts).ok());
    if (transport.process() == 0)
      for (size_t i = 0; i < memory.size(); ++i)
        EXPECT_TRUE(memory[i] == bytesOf(memory[i].size(), parts[i].process + (i < 2 ? 0 : 1))) << i;
    EXPECT_TRUE(group->leave());
  });
}

} // namespace
} // namespace mtrun::test
