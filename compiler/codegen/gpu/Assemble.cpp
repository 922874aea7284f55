// SPDX-License-Identifier: Apache-2.0
//
// Assembles PTX to cubins with ptxas, one child process per architecture, and reads the resources that kernels use from
// its output.
#include "compiler/codegen/gpu/Gpu.h"
#include "runtime/support/temporary_folder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include <list>

using namespace mtc;

std::string mtc::findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  llvm::SmallVector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (auto found = llvm::sys::findProgramByName("ptxas", {folder}))
      return *found;
  return "";
}

namespace {
struct Run {
  std::string architecture;
  std::string cubin, messages; // paths
  llvm::sys::ProcessInfo process;
};
} // namespace

// Parses the output of `ptxas -v`: a line with the kernel's name, then its stack and spills, then its registers.
static std::vector<KernelUsage> readUsage(llvm::StringRef text, llvm::ArrayRef<std::string> kernels) {
  llvm::StringMap<KernelUsage> found;
  llvm::Regex name("Compiling entry function '([^']*)'"),
      stack("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores"), registers("Used ([0-9]+) registers"),
      shared("([0-9]+) bytes smem");
  KernelUsage *usage = nullptr;
  llvm::SmallVector<llvm::StringRef> lines, parts;
  text.split(lines, '\n');
  auto number = [&](llvm::Regex &pattern, llvm::StringRef line, size_t part, int64_t &into) {
    if (usage && pattern.match(line, &parts))
      parts[part].getAsInteger(10, into);
  };
  for (llvm::StringRef line : lines) {
    if (name.match(line, &parts))
      usage = &found[parts[1]];
    number(stack, line, 1, usage ? usage->stackBytes : found[""].stackBytes);
    number(stack, line, 2, usage ? usage->spillBytes : found[""].spillBytes);
    number(registers, line, 1, usage ? usage->registers : found[""].registers);
    number(shared, line, 1, usage ? usage->sharedBytes : found[""].sharedBytes);
  }
  std::vector<KernelUsage> all;
  for (const std::string &kernel : kernels)
    all.push_back(found.lookup(kernel));
  return all;
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(const std::string &path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return llvm::createStringError(bytes.getError(), "cannot read %s", path.c_str());
  return std::move(*bytes);
}

// ptxas of CUDA 12.1 and newer optimizes kernels in several threads. The number of threads is stored in the cubin, so
// it must not depend on the machine.
static bool hasThreads(const std::string &ptxas, const std::string &folder) {
  std::string help = folder + "/help.txt";
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), help, llvm::StringRef("")};
  if (llvm::sys::ExecuteAndWait(ptxas, {ptxas, "--help"}, std::nullopt, redirects) != 0)
    return false;
  auto text = llvm::MemoryBuffer::getFile(help);
  return text && (*text)->getBuffer().contains("--split-compile");
}

static llvm::Error start(Run &run, const std::string &ptxas, const std::string &source, bool threads) {
  std::string architecture = "-arch=" + run.architecture;
  llvm::SmallVector<llvm::StringRef> arguments{ptxas,        "-v", "-O3",     "--fmad=false",
                                               architecture, "-o", run.cubin, source};
  if (threads)
    arguments.push_back("--split-compile=8");
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), run.messages, run.messages};
  std::string message;
  run.process = llvm::sys::ExecuteNoWait(ptxas, arguments, std::nullopt, redirects, /*MemoryLimit=*/0, &message);
  if (run.process.Pid == 0)
    return llvm::createStringError("cannot run %s: %s", ptxas.c_str(), message.c_str());
  return llvm::Error::success();
}

static llvm::Expected<Cubin> finish(Run &run, const std::string &ptxas, llvm::ArrayRef<std::string> kernels) {
  std::string message;
  llvm::sys::ProcessInfo ended = llvm::sys::Wait(run.process, std::nullopt, &message);
  auto messages = readFile(run.messages);
  if (!messages)
    return messages.takeError();
  if (ended.ReturnCode != 0)
    return llvm::createStringError("%s failed for %s with status %d: %s", ptxas.c_str(), run.architecture.c_str(),
                                   ended.ReturnCode, (*messages)->getBuffer().take_front(2000).str().c_str());
  auto bytes = readFile(run.cubin);
  if (!bytes)
    return bytes.takeError();
  return Cubin{{(*bytes)->getBufferStart(), (*bytes)->getBufferEnd()}, readUsage((*messages)->getBuffer(), kernels)};
}

llvm::Expected<std::vector<Cubin>> mtc::assemble(const std::string &ptxas, const std::string &ptx,
                                                 llvm::ArrayRef<std::string> architectures, const std::string &suffix,
                                                 llvm::ArrayRef<std::string> kernels) {
  mtrun::TemporaryFolder folder;
  if (mtrun::Status status = folder.make(); !status.ok())
    return llvm::createStringError(status.message());
  std::string source = folder.path() + "/source.ptx";
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(source, error);
    stream << ptx;
    stream.close();
    if (stream.has_error()) {
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return llvm::createStringError(error, "cannot write %s", source.c_str());
  }
  std::list<Run> runs;
  bool threads = !architectures.empty() && hasThreads(ptxas, folder.path());
  llvm::Error problem = llvm::Error::success();
  for (const std::string &architecture : architectures) {
    std::string name = folder.path() + "/" + architecture;
    runs.push_back({architecture + suffix, name + ".cubin", name + ".txt", {}});
    if (llvm::Error error = start(runs.back(), ptxas, source, threads)) {
      runs.pop_back();
      problem = llvm::joinErrors(std::move(problem), std::move(error));
      break;
    }
  }
  std::vector<Cubin> cubins;
  for (Run &run : runs) { // waits for all processes, even after an error
    auto cubin = finish(run, ptxas, kernels);
    if (cubin)
      cubins.push_back(std::move(*cubin));
    else
      problem = llvm::joinErrors(std::move(problem), cubin.takeError());
  }
  if (problem)
    return std::move(problem);
  return cubins;
}
