// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Archive.h"

#include "frontend/keras/ArchiveReader.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mtc::keras {
namespace {

constexpr rlim_t childSeconds = 120; // limit of processor time
// Memory in addition to three times the size of the archive: the file, the library's copy and a tensor.
constexpr uint64_t childMemory = uint64_t{1} << 30;

void limit(int resource, rlim_t value) {
  rlimit limits = {value, value};
  setrlimit(resource, &limits);
}

uint64_t addressSpace() {
  unsigned long long pages = 0;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Runs in the child, which exits without destructors and handlers of the parent.
[[noreturn]] void runChild(const std::string &path, int output, uint64_t memory) {
  limit(RLIMIT_CPU, childSeconds);
  limit(RLIMIT_AS, memory);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  RecordWriter writer(output);
  std::string problem;
  try {
    readZip(path, writer);
    writer.write(RecordKind::End, "", {}, nullptr, 0);
    _exit(0);
  } catch (const ArchiveError &error) {
    problem = error.what();
  } catch (const std::bad_alloc &) {
    problem = "expected an archive that fits the memory set aside for it, found a larger one";
  }
  writer.write(RecordKind::Error, "", {}, problem.data(), problem.size());
  _exit(0);
}

// The parent's end of the pipe. It validates everything that it reads.
class RecordReader {
public:
  RecordReader(int descriptor, uint64_t budget, Archive &archive)
      : descriptor(descriptor), budget(budget), archive(archive) {}

  // Returns an empty text if the stream ended correctly.
  std::string run() {
    for (uint64_t count = 0; count <= maxTensors; ++count) {
      RecordHeader header;
      if (!readAll(&header, sizeof header))
        return "cannot be read: the archive is damaged in a way that stopped its reader";
      if (header.kind == RecordKind::End)
        return {};
      if (std::string problem = readRecord(header); !problem.empty())
        return problem;
    }
    return "expected at most " + std::to_string(maxTensors) + " tensors, found more";
  }

private:
  static std::string damaged() { return "cannot be read: the process that reads it sent invalid data"; }

  bool readAll(void *bytes, uint64_t size) {
    char *at = static_cast<char *>(bytes);
    while (size) {
      ssize_t got = ::read(descriptor, at, size);
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        return false;
      at += got;
      size -= static_cast<uint64_t>(got);
    }
    return true;
  }

  std::string readRecord(const RecordHeader &header) {
    bool text = header.kind == RecordKind::Text || header.kind == RecordKind::Error;
    if (header.name_bytes > maxTensorName || header.rank > maxTensorRank ||
        header.bytes > (text ? maxConfigBytes : budget))
      return damaged();
    NamedTensor tensor;
    tensor.name.resize(header.name_bytes);
    tensor.shape.resize(header.rank);
    if (!readAll(tensor.name.data(), header.name_bytes) || !readAll(tensor.shape.data(), header.rank * sizeof(int64_t)))
      return damaged();
    if (text) {
      std::string content(header.bytes, '\0');
      if (!readAll(content.data(), content.size()))
        return damaged();
      if (header.kind == RecordKind::Error)
        return content.empty() ? damaged() : content;
      (tensor.name == "config.json"     ? archive.config
       : tensor.name == "metadata.json" ? archive.metadata
                                        : archive.comment) = std::move(content);
      return {};
    }
    if (header.kind != RecordKind::Floats && header.kind != RecordKind::Integers)
      return damaged();
    tensor.dtype = header.kind == RecordKind::Floats ? MT_F32 : MT_I64;
    uint64_t bytes = mt_dtype_size(tensor.dtype);
    for (int64_t size : tensor.shape)
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
        return damaged();
    if (bytes != header.bytes)
      return damaged();
    budget -= bytes;
    tensor.bytes.resize(bytes);
    if (!readAll(tensor.bytes.data(), bytes))
      return damaged();
    std::string path = tensor.name;
    archive.weights[path] = std::move(tensor);
    return {};
  }

  int descriptor;
  uint64_t budget;
  Archive &archive;
};

} // namespace

std::string readArchive(const std::string &path, Archive &archive) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return std::string("cannot be opened: ") + std::strerror(errno);
  if (!S_ISREG(status.st_mode))
    return "expected a file, found none";
  uint64_t size = static_cast<uint64_t>(status.st_size);
  if (size > maxWeightBytes)
    return "expected at most " + std::to_string(maxWeightBytes) + " bytes, found " + std::to_string(size);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return std::string("cannot be read: ") + std::strerror(errno);
  uint64_t memory = addressSpace() + childMemory + 3 * size;
  pid_t child = fork();
  if (child < 0) {
    std::string reason = std::strerror(errno);
    close(ends[0]);
    close(ends[1]);
    return "cannot be read: " + reason;
  }
  if (child == 0) {
    close(ends[0]);
    runChild(path, ends[1], memory);
  }
  close(ends[1]);
  // Members may be compressed, by a factor of up to 100.
  std::string problem;
  try {
    problem = RecordReader(ends[0], 128 * size + 4096, archive).run();
  } catch (const std::bad_alloc &) {
    problem = "expected an archive that fits into memory, found a larger one";
  }
  close(ends[0]);
  int result = 0;
  while (waitpid(child, &result, 0) < 0 && errno == EINTR)
    ;
  return problem;
}

} // namespace mtc::keras
