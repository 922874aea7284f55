// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Compiler.h"

#include "runtime/abi/plan_header.h"
#include "runtime/support/device_spec.h"
#include "runtime/support/hash_text.h"
#include "tools/commandline/Options.h"
#include "tools/commandline/OutputFolders.h"
#include "tools/mtrun/Run.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace mtrun_tool {
namespace {

constexpr const char *modelSuffixes[] = {".keras", ".mlir", ".json", ".h5", ".hdf5", ".onnx", ".pt", ".pth", ".pt2"};

std::string folderOf(const std::string &path) { return path.substr(0, path.rfind('/')); }

Failure systemFailure(const std::string &what, const std::string &path) {
  return {MT_IO, what + " " + path + ": " + strerror(errno)};
}

std::string commandLine(const std::vector<std::string> &words) {
  std::string text = "mtc";
  for (size_t i = 1; i < words.size(); ++i)
    text += " " + words[i];
  return text;
}

// The child's standard output goes to standard error, because a program may read this program's output as a table.
void runCompiler(std::vector<std::string> words) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  int error = posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ), status = 0;
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Failure{MT_IO, "cannot start " + words[0] + ": " + strerror(error)};
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  if (!WIFEXITED(status))
    throw Failure{MT_DEVICE, commandLine(words) + ": ended by signal " + std::to_string(WTERMSIG(status))};
  if (int code = WEXITSTATUS(status))
    throw Failure{static_cast<mt_code>(code), commandLine(words) + ": ended with exit code " + std::to_string(code)};
}

bool isModel(const std::string &path) {
  std::string start = startOf(path, sizeof(mt_plan_header::magic));
  return start != std::string_view(MT_PLAN_MAGIC, sizeof(mt_plan_header::magic)) &&
         (start.starts_with("PK\3\4") ||
          std::ranges::any_of(modelSuffixes, [&](const char *suffix) { return path.ends_with(suffix); }));
}

mtrun::Hash128 hashOfFile(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0)
    throw systemFailure("cannot open", path);
  auto size = static_cast<size_t>(facts.st_size);
  void *bytes = size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  close(file);
  if (bytes == MAP_FAILED)
    throw systemFailure("cannot read", path);
  mtrun::Hash128 hash = mtrun::hash128({static_cast<const uint8_t *>(bytes), size});
  if (bytes)
    munmap(bytes, size);
  return hash;
}

// Part of the cache key: a new build of the compiler makes new plans.
std::string stampOf(const std::string &path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 ? std::to_string(facts.st_size) + "." + std::to_string(facts.st_mtim.tv_sec) +
                                               "." + std::to_string(facts.st_mtim.tv_nsec)
                                         : "";
}

std::string cacheFolder() {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && *cache == '/')
    return std::string(cache) + "/mtc";
  if (home && *home == '/')
    return std::string(home) + "/.cache/mtc";
  throw Failure{MT_INVALID, "expected HOME or XDG_CACHE_HOME to say where plans are kept, found neither: mtc compile "
                            "MODEL -o PLAN makes one elsewhere"};
}

// A plan is executable code, so only this user may write to the folder.
void keepToOneself(const std::string &folder) {
  struct stat facts;
  if (stat(folder.c_str(), &facts) != 0)
    throw systemFailure("cannot read", folder);
  if (facts.st_uid != geteuid())
    throw Failure{MT_INVALID, "expected a folder of this user for plans, which are programs, found " + folder +
                                  " of user " + std::to_string(facts.st_uid) +
                                  "; compile the model yourself: mtc compile MODEL -o PLAN"};
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) && chmod(folder.c_str(), facts.st_mode & 07777 & ~022u) != 0)
    throw systemFailure("cannot remove the write permission of other users from", folder);
}

bool isOurs(const std::string &plan) {
  struct stat facts;
  return lstat(plan.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid();
}

// What the options of a model ask for.
std::vector<std::string> flagsOf(const Arguments &arguments) {
  return commandline::wordsOf(mtrun::mtcOptions, arguments.compile);
}

bool loads(const std::string &path) {
  mtrun_plan *plan = nullptr;
  mt_status *status = mtrun_plan_load(path.c_str(), &plan);
  bool good = status == nullptr;
  mt_status_free(status);
  mtrun_plan_free(plan);
  return good;
}

// Checks compiler options that are used with a plan. A batch equal to the plan's batch is accepted.
void checkFixed(const Arguments &arguments) {
  std::vector<std::string> flags = flagsOf(arguments);
  if (flags.empty())
    return;
  mtrun_plan *loaded = nullptr;
  check(mtrun_plan_load(arguments.plan.c_str(), &loaded));
  PlanPtr plan(loaded);
  int64_t batch = mtrun_plan_batch(loaded);
  bool onlyBatch = flags.size() == 2 && arguments.compile.batch;
  if (onlyBatch && arguments.compile.batch == batch)
    return;
  std::string text;
  for (const std::string &flag : flags)
    text += " " + flag;
  throw Failure{MT_INVALID, arguments.plan + " is a plan, for which this was fixed when it was compiled" +
                                (arguments.compile.batch ? ", with a batch of " + std::to_string(batch) : "") +
                                ": mtc compile MODEL" + text + " -o PLAN makes another"};
}

} // namespace

std::string startOf(const std::string &path, size_t size) {
  std::string text(size, '\0');
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? 0 : read(file, text.data(), size);
  if (file >= 0)
    close(file);
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::string findCompiler() {
  std::string own(4096, '\0');
  ssize_t size = readlink("/proc/self/exe", own.data(), own.size());
  own.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  std::vector<std::string> folders = {folderOf(own)};
  std::string path = getenv("PATH") ? getenv("PATH") : "";
  for (size_t at = 0, end; at < path.size(); at = end + 1) {
    end = std::min(path.find(':', at), path.size());
    if (path[at] == '/')
      folders.push_back(path.substr(at, end - at));
  }
  for (const std::string &folder : folders) {
    struct stat facts;
    std::string mtc = folder + "/mtc";
    if (stat(mtc.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(mtc.c_str(), X_OK) == 0)
      return mtc;
  }
  return "";
}

// Returns targets for CPUs and for GPUs of the requested kind, or of all kinds.
static std::string targetsOf(const mtrun::DeviceKind *asked) {
  std::string targets = "cpu";
  for (const mtrun::DeviceKind &kind : mtrun::deviceKinds)
    if (kind.gpu && (!asked || asked == &kind))
      targets.append(",").append(kind.name);
  return targets;
}

std::string planOf(const Arguments &arguments) {
  const std::string &model = arguments.plan;
  if (model.empty())
    return model;
  if (!isModel(model)) {
    checkFixed(arguments);
    return model;
  }
  std::vector<std::string> flags = flagsOf(arguments);
  int64_t gpus = 0;
  auto count = [](void *user, const char *) { ++*static_cast<int64_t *>(user); };
  if (arguments.devices.empty())
    mt_status_free(mtrun_list_devices(count, &gpus));
  const mtrun::DeviceKind *kind = mtrun::kindOfDevices(arguments.devices);
  if (gpus > 0 || (kind && kind->gpu))
    flags.insert(flags.end(), {"--target", targetsOf(kind)});
  std::string mtc = findCompiler();
  std::string command = "mtc compile " + model;
  for (const std::string &flag : flags)
    command += " " + flag;
  if (mtc.empty())
    throw Failure{MT_INVALID, model + " is a model, expected a plan or an installed mtc, found neither: " + command +
                                  " -o PLAN makes the plan, where mtc is"};
  std::string key = mtrun::hashText(hashOfFile(model)) + "\n" MT_VERSION "\n" + stampOf(mtc) + "\n" +
                    stampOf(folderOf(folderOf(mtc)) + "/lib/libmtc.so");
  for (const std::string &flag : flags)
    key += "\n" + flag;
  for (const char *file : {arguments.compile.vocabulary, arguments.compile.columns})
    if (file)
      key += "\n" + mtrun::hashText(hashOfFile(file));
  std::string folder = cacheFolder();
  commandline::OutputFolders folders;
  if (std::string problem = folders.prepareFolder(folder); !problem.empty())
    throw Failure{MT_IO, problem};
  keepToOneself(folder);
  auto *bytes = reinterpret_cast<const uint8_t *>(key.data());
  std::string plan = folder + "/" + mtrun::hashText(mtrun::hash128({bytes, key.size()})) + ".mtp";
  if (!isOurs(plan) || !loads(plan)) {
    fprintf(stderr, "mtrun: %s\n", command.c_str());
    std::vector<std::string> words = {mtc, "compile", model, "-o", plan};
    words.insert(words.end(), flags.begin(), flags.end());
    runCompiler(std::move(words));
  }
  return plan;
}

ImportedVariables::ImportedVariables(const std::string &kerasFile) {
  std::string mtc = findCompiler();
  if (mtc.empty())
    throw Failure{MT_INVALID, "expected an installed mtc to read " + kerasFile + ", found none"};
  if (mtrun::Status status = folder_.make(); !status.ok())
    throw Failure{status.code(), status.message()};
  runCompiler({mtc, "import", kerasFile, "-o", folder_.path() + "/model.mlir"});
}

} // namespace mtrun_tool
