// SPDX-License-Identifier: Apache-2.0
#include "tools/commandline/OutputFolders.h"

#include "runtime/support/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace commandline {

static bool holdsOnly(const std::string &folder, const std::string &name) {
  DIR *listing = opendir(folder.c_str());
  bool holds = false, others = !listing;
  while (dirent *entry = others ? nullptr : readdir(listing)) {
    std::string each = entry->d_name;
    holds |= each == name;
    others |= each != name && each != "." && each != "..";
  }
  if (listing)
    closedir(listing);
  return holds && !others;
}

OutputFolders::~OutputFolders() {
  for (; !made_.empty(); made_.pop_back()) {
    try {
      if (holdsOnly(made_.back(), ".lock"))
        unlink((made_.back() + "/.lock").c_str());
    } catch (const std::bad_alloc &) { // out of memory: the folder stays
    }
    rmdir(made_.back().c_str()); // rmdir() keeps folders that are not empty
  }
}

std::string OutputFolders::prepareFolder(const std::string &path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    struct stat existing;
    bool there = stat(folder.c_str(), &existing) == 0;
    if (there && !S_ISDIR(existing.st_mode))
      return "cannot create the folder " + folder + ": " + strerror(ENOTDIR);
    int reason = there ? EEXIST : mtrun::makeFolder(folder);
    if (reason != 0 && reason != EEXIST)
      return "cannot create the folder " + folder + ": " + strerror(reason);
    if (reason == 0)
      made_.push_back(folder);
    if (slash == std::string::npos)
      break;
  }
  return access(path.c_str(), W_OK | X_OK) == 0 ? "" : "cannot write to the folder " + path + ": " + strerror(errno);
}

std::string OutputFolders::makeFresh(const std::string &path, std::string &folder) {
  size_t slash = path.rfind('/');
  if (std::string problem = prepareFolder(slash == std::string::npos ? "." : path.substr(0, slash)); !problem.empty())
    return problem;
  for (int n = 1;; ++n) {
    folder = n == 1 ? path : path + "-" + std::to_string(n);
    int reason = mtrun::makeFolder(folder);
    if (reason == 0) {
      made_.push_back(folder);
      return "";
    }
    if (reason != EEXIST)
      return "cannot create the folder " + folder + ": " + strerror(reason);
  }
}

std::string OutputFolders::prepareFile(const std::string &path) {
  if (path.empty() || path == "-")
    return "";
  struct stat existing;
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return "cannot write " + path + ": " + (S_ISDIR(existing.st_mode) ? strerror(EISDIR) : "it is not a regular file");
  size_t slash = path.rfind('/');
  if (slash + 1 == path.size())
    return "cannot write " + path + ": " + strerror(EISDIR);
  std::string problem = prepareFolder(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  return problem.empty() ? "" : "cannot write " + path + ": " + problem;
}

} // namespace commandline
