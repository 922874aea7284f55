// SPDX-License-Identifier: Apache-2.0
//
// The command line of a launcher of MPI, as far as `mtrun supervise` changes it: the hosts, and the number of
// processes.
#pragma once

#include <string>
#include <vector>

namespace mtrun_tool {

enum class LauncherFamily { OpenMpi, Mpich, Slurm };

struct LaunchHost {
  std::string name;
  int slots = 1;
};

class Launch {
public:
  // `words`: the launcher's program, its options, and the command that it starts.
  Launch(LauncherFamily family, std::vector<std::string> words);

  LauncherFamily family() const { return family_; }
  const std::vector<std::string> &words() const { return words_; }
  // Returns the hosts of the launcher's list; empty if it has none. Throws Failure if a file of hosts cannot be read.
  std::vector<LaunchHost> hosts() const;
  // Returns the number of processes; 0 if the launcher chooses it.
  int processes() const;
  // Returns the list's name of the host that the processes call `name`, on which process `process` runs; "" if it is
  // not in the list.
  std::string hostOf(const std::string &name, int process) const;
  // Leaves out a host. A new file of hosts is written into `folder`. Returns false if it would be the last.
  bool leaveOut(const std::string &host, const std::string &folder);
  // Adds words after the launcher's program.
  void insert(const std::vector<std::string> &words) { words_.insert(words_.begin() + 1, words.begin(), words.end()); }

private:
  // The place of an option's value: the word, and where the value begins in it. word 0: the option is not there.
  struct Place {
    size_t word = 0, begin = 0;
  };
  Place find(const std::vector<std::string> &names) const;
  std::string value(const Place &place) const { return words_[place.word].substr(place.begin); }
  void set(const Place &place, const std::string &value) { words_[place.word].replace(place.begin, value.npos, value); }
  void shrink(const Place &place, int by);
  Place listPlace() const;
  Place filePlace() const;
  Place countPlace() const;
  Place nodesPlace() const;

  LauncherFamily family_;
  std::vector<std::string> words_;
};

// Finds the family of a launcher: srun by its name, others by what they print for --version. Throws Failure.
LauncherFamily familyOf(const std::string &program);

} // namespace mtrun_tool
