// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Launch.h"

#include "runtime/abi/mtrun.h"
#include "tools/mtrun/Run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>

namespace mtrun_tool {
namespace {

std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

int numberOf(const std::string &text, int otherwise) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : otherwise;
}

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);)
    if (!part.empty())
      parts.push_back(part);
  return parts;
}

// "NAME" or "NAME:SLOTS". An IPv6 address has more colons.
LaunchHost parseHost(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.find(':') != colon)
    return {text, 1};
  return {text.substr(0, colon), numberOf(text.substr(colon + 1), 1)};
}

// A line of a file of hosts: "NAME slots=N" or "NAME:N"; the name is "" for an empty line.
LaunchHost parseLine(std::string line) {
  line = line.substr(0, line.find('#'));
  std::istringstream stream(line);
  std::string name, word;
  if (!(stream >> name))
    return {};
  LaunchHost host = parseHost(name);
  while (stream >> word)
    if (word.starts_with("slots="))
      host.slots = numberOf(word.substr(6), 1);
  return host;
}

std::string joined(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ",") + part;
  return text;
}

std::vector<std::string> linesOf(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw Failure{MT_IO, "cannot open the file of hosts " + path};
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

int slotsOf(const std::vector<LaunchHost> &hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const LaunchHost &host) { return sum + host.slots; });
}

} // namespace

Launch::Launch(LauncherFamily family, std::vector<std::string> words) : family_(family), words_(std::move(words)) {}

// The launcher's options end where the command begins.
Launch::Place Launch::find(const std::vector<std::string> &names) const {
  for (size_t i = 1; i < words_.size() && baseName(words_[i]) != "mtrun"; ++i)
    for (const std::string &name : names) {
      if (words_[i] == name && i + 1 < words_.size())
        return {i + 1, 0};
      if (words_[i].starts_with(name + "="))
        return {i, name.size() + 1};
      bool isShort = name.size() == 2 && family_ == LauncherFamily::Slurm;
      if (isShort && words_[i].size() > 2 && words_[i].starts_with(name))
        return {i, 2};
    }
  return {};
}

Launch::Place Launch::listPlace() const {
  switch (family_) {
  case LauncherFamily::OpenMpi:
    return find({"--host", "-host", "-H"});
  case LauncherFamily::Mpich:
    return find({"-hosts", "--hosts", "-host", "--host"});
  case LauncherFamily::Slurm:
    return find({"--nodelist", "-w"});
  }
  return {};
}

Launch::Place Launch::filePlace() const {
  if (family_ == LauncherFamily::Slurm)
    return {};
  Place place = find({"--hostfile", "-hostfile", "--machinefile", "-machinefile"});
  return place.word || family_ == LauncherFamily::OpenMpi ? place : find({"-f", "--f"});
}

Launch::Place Launch::countPlace() const {
  return family_ == LauncherFamily::Slurm ? find({"--ntasks", "-n"}) : find({"-np", "--np", "-n", "--n"});
}

Launch::Place Launch::nodesPlace() const {
  return family_ == LauncherFamily::Slurm ? find({"--nodes", "-N"}) : Place();
}

std::vector<LaunchHost> Launch::hosts() const {
  std::vector<LaunchHost> hosts;
  if (Place place = listPlace(); place.word) {
    for (const std::string &part : split(value(place), ','))
      hosts.push_back(parseHost(part));
  } else if (Place file = filePlace(); file.word) {
    for (const std::string &line : linesOf(value(file)))
      if (LaunchHost host = parseLine(line); !host.name.empty())
        hosts.push_back(host);
  }
  Place each = family_ == LauncherFamily::Mpich ? find({"-ppn", "--ppn", "-perhost"}) : Place();
  for (LaunchHost &host : hosts)
    if (each.word && host.slots == 1)
      host.slots = numberOf(value(each), 1);
  return hosts;
}

int Launch::processes() const {
  Place place = countPlace();
  return place.word ? numberOf(value(place), 0) : 0;
}

std::string Launch::hostOf(const std::string &name, int process) const {
  if (family_ == LauncherFamily::Slurm && !listPlace().word)
    return name;
  auto shortName = [](const std::string &host) { return host.substr(0, host.find('.')); };
  std::vector<LaunchHost> all = hosts();
  for (const LaunchHost &host : all)
    if (host.name == name || (!name.empty() && shortName(host.name) == shortName(name) &&
                              host.name.find_first_not_of("0123456789.") != std::string::npos))
      return host.name;
  // The list has addresses, or other names: processes are started in its order.
  if (int count = processes(); count != 0 && count != slotsOf(all))
    return "";
  for (const LaunchHost &host : all)
    if ((process -= host.slots) < 0)
      return host.name;
  return "";
}

bool Launch::leaveOut(const std::string &host, const std::string &folder) {
  if (family_ == LauncherFamily::Slurm && !listPlace().word) {
    insert({"--exclude=" + host});
    int nodes = nodesPlace().word ? numberOf(value(nodesPlace()), 1) : 1;
    shrink(countPlace(), processes() / nodes);
    shrink(nodesPlace(), 1);
    return nodes > 1;
  }
  std::vector<LaunchHost> all = hosts();
  auto gone = std::find_if(all.begin(), all.end(), [&](const LaunchHost &each) { return each.name == host; });
  if (gone == all.end() || all.size() == 1)
    return false;
  int slots = gone->slots, total = slotsOf(all);
  if (Place place = listPlace(); place.word) {
    std::vector<std::string> left;
    for (const std::string &part : split(value(place), ','))
      if (parseHost(part).name != host)
        left.push_back(part);
    set(place, joined(left));
  } else {
    Place file = filePlace();
    std::string path = folder + "/hosts";
    std::vector<std::string> lines = linesOf(value(file)); // read first: it may be the same file
    std::ofstream out(path);
    for (const std::string &line : lines)
      if (parseLine(line).name != host)
        out << line << "\n";
    if (!out.flush())
      throw Failure{MT_IO, "cannot write " + path};
    set(file, path);
  }
  int count = processes(), share = count == total ? slots : count / static_cast<int>(all.size());
  shrink(countPlace(), share);
  shrink(nodesPlace(), 1);
  return true;
}

void Launch::shrink(const Place &place, int by) {
  if (place.word)
    set(place, std::to_string(std::max(numberOf(value(place), 1) - std::max(by, 1), 1)));
}

LauncherFamily familyOf(const std::string &program) {
  if (baseName(program) == "srun")
    return LauncherFamily::Slurm;
  std::string quoted, text;
  for (char c : program)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  if (FILE *pipe = popen(("'" + quoted + "' --version 2>&1").c_str(), "re")) {
    char room[512];
    while (size_t count = fread(room, 1, sizeof room, pipe))
      text.append(room, count);
    pclose(pipe);
  }
  for (const char *mark : {"Open MPI", "OpenRTE", "PRRTE"})
    if (text.find(mark) != std::string::npos)
      return LauncherFamily::OpenMpi;
  for (const char *mark : {"HYDRA", "MPICH", "Intel(R) MPI"})
    if (text.find(mark) != std::string::npos)
      return LauncherFamily::Mpich;
  throw Failure{MT_INVALID, "supervise: expected mpirun or mpiexec of Open MPI or MPICH, or srun, found " + program};
}

} // namespace mtrun_tool
