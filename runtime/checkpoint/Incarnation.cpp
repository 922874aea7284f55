// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Incarnation.h"

#include "runtime/support/secret.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace mtrun {

constexpr size_t runDigits = 32, maxSupervisor = 64;
constexpr const char *newFile = ".incarnation.new";

static bool isWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
  });
}

std::string incarnationText(const Incarnation &incarnation) {
  return incarnation.run + " " + std::to_string(incarnation.number) + " " +
         (incarnation.supervisor.empty() ? "-" : incarnation.supervisor) + "\n";
}

bool parseIncarnation(std::string_view text, Incarnation &incarnation) {
  size_t first = text.find(' '), second = text.find(' ', first + 1), end = text.find('\n');
  if (first != runDigits || second == std::string_view::npos || end == std::string_view::npos || end < second ||
      end + 1 != text.size())
    return false;
  Incarnation read = {std::string(text.substr(0, first)), 0, std::string(text.substr(second + 1, end - second - 1))};
  std::string_view number = text.substr(first + 1, second - first - 1);
  auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), read.number);
  if (error != std::errc() || stop != number.data() + number.size() || read.number < 1 || read.number == INT64_MAX ||
      !isWord(read.run) || !isWord(read.supervisor) || read.supervisor.size() > maxSupervisor)
    return false;
  incarnation = std::move(read);
  return true;
}

Incarnation readIncarnation(int folder) {
  std::array<char, 256> room;
  Incarnation incarnation;
  int file = openat(folder, incarnationFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return incarnation;
  ssize_t count = read(file, room.data(), room.size());
  close(file);
  if (count > 0)
    (void)parseIncarnation({room.data(), static_cast<size_t>(count)}, incarnation);
  return incarnation;
}

Status writeIncarnation(Disk &disk, int folder, const std::string &path, const Incarnation &incarnation) {
  std::string text = incarnationText(incarnation), where = path + "/" + incarnationFile;
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  disk.unlink(folder, newFile); // left by a process that was killed here
  if (Status s = disk.writeFile(folder, newFile, path + "/" + newFile, {&bytes, 1}); !s.ok()) {
    disk.unlink(folder, newFile);
    return s;
  }
  if (disk.rename(folder, newFile, incarnationFile) != 0)
    return ioError("cannot write", where, errno);
  return disk.syncFolder(folder, path);
}

Status expectIncarnation(int folder, const std::string &path, const Incarnation &own) {
  Incarnation found = readIncarnation(folder);
  if (found.run == own.run && found.number == own.number)
    return {};
  return {MT_LOST, found.run == own.run ? "expected start " + std::to_string(own.number) + " of this run in " + path +
                                              ", found start " + std::to_string(found.number) +
                                              ": this process is one of an earlier start, and writes nothing"
                                        : "expected this run in " + path + ", found another: nothing was written"};
}

Status drawRun(std::string &run) {
  std::string bytes;
  if (Status s = randomBytes(runDigits / 2, bytes); !s.ok())
    return s;
  run = hexadecimal(bytes);
  return {};
}

} // namespace mtrun
