// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Object.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace mtc;

// The linker takes file names. The files are in memory, so that a process that is killed leaves no files.
static std::string nameOf(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

static llvm::Error systemError(const char *what) {
  return llvm::createStringError(std::error_code(errno, std::generic_category()), "cannot %s", what);
}

namespace {
struct Descriptor {
  int number = -1;
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) : number(std::exchange(other.number, -1)) {}
  ~Descriptor() { close(); }
  void close() {
    if (number >= 0)
      ::close(number);
    number = -1;
  }
};
} // namespace

static llvm::Error writeFile(const Descriptor &file, llvm::StringRef bytes) {
  llvm::raw_fd_ostream stream(file.number, /*shouldClose=*/false);
  stream.write(bytes.data(), bytes.size());
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error ? llvm::createStringError(error, "cannot write a file in memory") : llvm::Error::success();
}

static void readAll(int pipe, std::vector<char> &bytes) {
  std::vector<char> part(1 << 16);
  for (ssize_t size; (size = read(pipe, part.data(), part.size())) > 0 || (size < 0 && errno == EINTR);)
    bytes.insert(bytes.end(), part.begin(), part.begin() + std::max<ssize_t>(size, 0));
}

// Writes the objects into a few archives, because the number and the size of a process' files may be limited.
static llvm::Error writeArchives(llvm::ArrayRef<const Object *> objects, std::vector<Descriptor> &files) {
  constexpr size_t smallest = size_t{1} << 15, most = 64;
  size_t total = 0;
  for (const Object *object : objects)
    total += object->size();
  for (size_t next = 0; next < objects.size();) {
    std::vector<llvm::NewArchiveMember> members;
    for (size_t size = 0; next < objects.size() && size < std::max(smallest, total / most); ++next) {
      const Object &object = *objects[next];
      members.emplace_back(llvm::MemoryBufferRef({object.data(), object.size()}, "kernel.o"));
      size += object.size();
    }
    auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
                                              /*Deterministic=*/true, /*Thin=*/false);
    if (!archive)
      return archive.takeError();
    files.emplace_back(memfd_create("mtc-objects", MFD_CLOEXEC));
    if (files.back().number < 0)
      return systemError("create a file in memory");
    if (llvm::Error error = writeFile(files.back(), (*archive)->getBuffer()))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> mtc::linkShared(llvm::ArrayRef<const Object *> objects,
                                                  llvm::ArrayRef<Alias> aliases) {
  std::vector<Descriptor> files;
  if (llvm::Error error = writeArchives(objects, files))
    return std::move(error);
  std::vector<std::string> options;
  for (const auto &[name, symbol] : aliases)
    options.push_back("--defsym=" + name + "=" + symbol);
  // The linker keeps its state in globals.
  static std::mutex one;
  std::lock_guard<std::mutex> guard(one);
  // The linker replaces an output file by a new one, but writes into a pipe.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return systemError("create a pipe");
  Descriptor from(ends[0]), to(ends[1]);
  std::vector<char> linked;
  std::thread reader(readAll, from.number, std::ref(linked));
  std::string output = nameOf(to.number);
  std::string messages;
  llvm::raw_string_ostream errors(messages);
  std::vector<const char *> arguments{"ld.lld",
                                      "-shared",
                                      "-Bsymbolic",
                                      "-z",
                                      "noexecstack",
                                      "-z",
                                      "relro",
                                      "-z",
                                      "now",
                                      "--no-undefined",
                                      "--strip-all",
                                      "--gc-sections",
                                      "--build-id=none",
                                      "--hash-style=both",
                                      "--threads=1",
                                      "-o",
                                      output.c_str()};
  for (const std::string &option : options)
    arguments.push_back(option.c_str());
  std::vector<std::string> inputs;
  for (const Descriptor &file : files)
    inputs.push_back(nameOf(file.number));
  arguments.push_back("--whole-archive");
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  lld::Result result = lld::lldMain(arguments, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}});
  to.close(); // closes the last write end, so the reader reaches the end
  reader.join();
  if (result.retCode != 0)
    return llvm::createStringError("cannot link kernels: %s", messages.c_str());
  return linked;
}
