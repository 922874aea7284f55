// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Object.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace mtc;

static llvm::Expected<std::string> temporaryFile(llvm::StringRef suffix) {
  llvm::SmallString<128> path;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("mtc", suffix, path))
    return llvm::createStringError(error, "cannot create a temporary file");
  return path.str().str();
}

static llvm::Error writeFile(const std::string &path, llvm::ArrayRef<char> bytes) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  stream.write(bytes.data(), bytes.size());
  stream.close();
  if (stream.has_error()) {
    error = stream.error();
    stream.clear_error();
  }
  return error ? llvm::createStringError(error, "cannot write %s", path.c_str()) : llvm::Error::success();
}

llvm::Expected<std::vector<char>> mtc::linkShared(llvm::ArrayRef<Object> objects) {
  // The linker keeps its state in globals.
  static std::mutex one;
  std::lock_guard<std::mutex> guard(one);
  std::vector<std::string> inputs;
  auto remove = llvm::scope_exit([&] {
    for (const std::string &path : inputs)
      llvm::sys::fs::remove(path);
  });
  for (const Object &object : objects) {
    auto input = temporaryFile("o");
    if (!input)
      return input.takeError();
    inputs.push_back(*input);
    if (llvm::Error error = writeFile(*input, object))
      return std::move(error);
  }
  auto output = temporaryFile("so");
  if (!output)
    return output.takeError();
  llvm::FileRemover removeOutput(*output);
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
                                      output->c_str()};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  lld::Result result = lld::lldMain(arguments, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("cannot link kernels: %s", messages.c_str());
  auto bytes = llvm::MemoryBuffer::getFile(*output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return llvm::createStringError(bytes.getError(), "cannot read %s", output->c_str());
  return std::vector<char>((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
}
