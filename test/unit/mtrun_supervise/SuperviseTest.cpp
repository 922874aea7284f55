// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Launch.h"
#include "tools/mtrun/Losses.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

namespace mtrun_tool {
namespace {

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

std::string textOf(const Launch &launch) {
  std::string text;
  for (const std::string &word : launch.words())
    text += (text.empty() ? "" : " ") + word;
  return text;
}

// Returns the command without the host of a process; "-": no host can be left out.
std::string without(LauncherFamily family, const std::string &command, const std::string &name, int process) {
  Launch launch(family, wordsOf(command));
  std::string host = launch.hostOf(name, process);
  return !host.empty() && launch.leaveOut(host, "/nowhere") ? textOf(launch) : "-";
}

constexpr LauncherFamily open = LauncherFamily::OpenMpi, mpich = LauncherFamily::Mpich, slurm = LauncherFamily::Slurm;

} // namespace

TEST(Launch, LeavesOutTheLostHost) {
  EXPECT_EQ(without(open, "mpirun --host a,b,c mtrun train --host b", "b", 1),
            "mpirun --host a,c mtrun train --host b");
  EXPECT_EQ(without(open, "mpirun -np 3 -H a,b,c mtrun", "c", 2), "mpirun -np 2 -H a,b mtrun");
  EXPECT_EQ(without(open, "mpirun -host a:4,b:2 -np 6 mtrun", "a.cluster.org", 0), "mpirun -host b:2 -np 2 mtrun");
  EXPECT_EQ(without(mpich, "mpiexec -hosts a,b,c -ppn 2 -n 6 mtrun", "b", 3), "mpiexec -hosts a,c -ppn 2 -n 4 mtrun");
  EXPECT_EQ(without(mpich, "mpiexec -hosts a,b -np 8 mtrun", "b", 3), "mpiexec -hosts a -np 4 mtrun");
  EXPECT_EQ(without(slurm, "srun -N 4 -n4 --mpi=pmix mtrun", "b", 1), "srun --exclude=b -N 3 -n3 --mpi=pmix mtrun");
  EXPECT_EQ(without(slurm, "srun --nodelist=a,b,c --nodes=3 --ntasks=6 mtrun", "b", 1),
            "srun --nodelist=a,c --nodes=2 --ntasks=4 mtrun");
}

// Addresses do not have the names that the processes know, but processes are started in their order.
TEST(Launch, FindsAnAddressByTheProcess) {
  EXPECT_EQ(without(open, "mpirun --host 10.0.0.1,10.0.0.2,10.0.0.3 mtrun", "vm", 2),
            "mpirun --host 10.0.0.1,10.0.0.2 mtrun");
  EXPECT_EQ(without(open, "mpirun --host 10.0.0.1:2,10.0.0.2:2 -np 4 mtrun", "", 1),
            "mpirun --host 10.0.0.2:2 -np 2 mtrun");
  EXPECT_EQ(without(open, "mpirun --host 10.0.0.1,10.0.0.2 -np 4 mtrun", "vm", 2), "-"); // in an order of its own
  EXPECT_EQ(without(open, "mpirun -np 4 mtrun", "vm", 2), "-");
  EXPECT_EQ(without(open, "mpirun --host a mtrun", "a", 0), "-"); // the last
}

TEST(Launch, RewritesAFileOfHosts) {
  std::string folder = std::filesystem::temp_directory_path() / ("launch-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/given") << "# ours\na slots=2\nb slots=4 # big\n\nc:3\n";
  Launch launch(open, wordsOf("mpirun --hostfile " + folder + "/given -np 9 mtrun"));
  EXPECT_EQ(launch.hosts().size(), 3u);
  EXPECT_TRUE(launch.leaveOut("b", folder));
  EXPECT_EQ(textOf(launch), "mpirun --hostfile " + folder + "/hosts -np 5 mtrun");
  EXPECT_TRUE(launch.leaveOut("a", folder)); // from the rewritten file
  std::ifstream file(folder + "/hosts");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "# ours\n\nc:3\n");
  EXPECT_EQ(textOf(launch), "mpirun --hostfile " + folder + "/hosts -np 3 mtrun");
  std::filesystem::remove_all(folder);
}

TEST(Losses, NameTheProcessAndItsHost) {
  auto loss =
      lossIn("mtrun: error: process 2: epoch 1, step 9: process 1 (cpu:1x8 of b) was lost: it was silent for 15 "
             "seconds");
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->process, 1);
  EXPECT_EQ(loss->host, "b");
  EXPECT_FALSE(loss->answers);
  loss = lossIn("mtrun: error: epoch 1, step 9: process 12 (cpu:1x8) was lost");
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->process, 12);
  EXPECT_EQ(loss->host, "");
  EXPECT_TRUE(loss->answers);
  EXPECT_TRUE(lossIn("mtrun: error: process 3 (cpu:1x1 of c) was lost: its step stood still for 600 seconds"));
  loss = lossIn("mtrun: error: process 2: process 1 (cpu:1x1 of b) was lost: it sent nothing for 10 seconds");
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->host, "b");
  EXPECT_FALSE(loss->answers);
  for (const char *other : {"", "process 1 was lost", "mtrun: error: process x (cpu:1) was lost",
                            "mtrun: error: the run was lost", "mtrun: error: process 1 ended while the others went on"})
    EXPECT_FALSE(lossIn(other)) << other;
}

} // namespace mtrun_tool
