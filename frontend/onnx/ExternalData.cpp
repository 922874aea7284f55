// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/ExternalData.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtc::onnx {
namespace {

// Closes a file.
struct Descriptor {
  int number;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
};

// A number of a key; -1: no number.
int64_t numberOf(const std::map<std::string, std::string> &keys, const char *key, int64_t otherwise) {
  auto found = keys.find(key);
  if (found == keys.end())
    return otherwise;
  const std::string &text = found->second;
  int64_t value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

std::string resolved(const std::string &path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) ? std::string(buffer) : std::string();
}

// Whether it is the name of a file in a folder or below it, as it is written.
bool staysInside(const std::string &location) {
  if (location.empty() || location[0] == '/' || location.find('\\') != std::string::npos ||
      location.find('\0') != std::string::npos)
    return false;
  for (size_t begin = 0; begin <= location.size();) {
    size_t end = std::min(location.find('/', begin), location.size());
    if (location.compare(begin, end - begin, "..") == 0)
      return false;
    begin = end + 1;
  }
  return true;
}

} // namespace

std::string ExternalData::read(const std::map<std::string, std::string> &keys, int64_t bytes, std::string &content) {
  auto found = keys.find("location");
  std::string location = found == keys.end() ? "" : found->second;
  // Links are followed first: they must not lead out of the folder either.
  std::string root = resolved(folder.empty() ? "." : folder),
              path = root.empty() ? "" : resolved(root + "/" + location);
  std::string inside = root == "/" ? root : root + "/";
  if (!staysInside(location) || (!path.empty() && path.compare(0, inside.size(), inside) != 0))
    return "expected data in a file of the model's folder, found '" + location + "'";
  Descriptor file(path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (file.number < 0 || fstat(file.number, &status) != 0)
    return "expected data in '" + location + "' beside the model, which cannot be opened: " + std::strerror(errno);
  if (!S_ISREG(status.st_mode))
    return "expected data in a file, found '" + location + "', which is none";
  int64_t offset = numberOf(keys, "offset", 0), length = numberOf(keys, "length", bytes), end;
  if (offset < 0 || length != bytes || __builtin_add_overflow(offset, bytes, &end) || end > status.st_size)
    return "expected " + std::to_string(bytes) + " bytes in '" + location + "' of " + std::to_string(status.st_size) +
           " bytes, found another length, or a place behind its end";
  if ((bytesRead[path] += bytes) > status.st_size)
    return "expected tensors in parts of '" + location + "' of their own, found parts in common";
  content.resize(static_cast<size_t>(bytes));
  for (int64_t at = 0; at < bytes;) {
    ssize_t count = pread(file.number, content.data() + at, static_cast<size_t>(bytes - at), offset + at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return "cannot read '" + location + "'";
    at += count;
  }
  return {};
}

} // namespace mtc::onnx
