// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Events.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun_tool {

constexpr double kFlushSeconds = 5;

uint32_t crc32c(const std::string &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> result;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit)
        c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
      result[i] = c;
    }
    return result;
  }();
  uint32_t crc = ~0u;
  for (char c : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

static std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

static std::string masked(const std::string &bytes) {
  uint32_t crc = crc32c(bytes);
  return little((crc >> 15 | crc << 17) + 0xa282ead8u, 4);
}

static std::string record(const std::string &event) {
  std::string length = little(event.size(), 8);
  return length + masked(length) + event + masked(event);
}

// Fields of protocol buffers: a key of number and wire type, then the value.
static std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
static std::string text(int field, const std::string &bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
static std::string real(int field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return varint(static_cast<uint64_t>(field) << 3 | 1) + little(bits, 8);
}
static std::string real32(int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return varint(static_cast<uint64_t>(field) << 3 | 5) + little(bits, 4);
}

std::string versionRecord(double wallTime) { return record(real(1, wallTime) + text(3, "brain.Event:2")); }

std::string scalarRecord(double wallTime, int64_t step, const std::string &tag, float value) {
  std::string summary = text(1, text(1, tag) + real32(2, value));
  return record(real(1, wallTime) + varint(2 << 3) + varint(static_cast<uint64_t>(step)) + text(5, summary));
}

static double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventFile::~EventFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void EventFile::add(int64_t step, const std::string &tag, double value) {
  if (path_.empty()) {
    char host[256] = "localhost", name[400];
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s.%d.0", static_cast<long long>(now()), host, getpid());
    path_ = folder_ + name;
    pending_ = versionRecord(now());
  }
  pending_ += scalarRecord(now(), step, tag, static_cast<float>(value));
}

static void makeFolders(const std::string &path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0777); // what is wrong with it, opening the file tells
}

std::string EventFile::flush() {
  if (pending_.empty())
    return "";
  if (descriptor_ < 0) {
    makeFolders(path_);
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }
  ssize_t written = descriptor_ < 0 ? -1 : write(descriptor_, pending_.data(), pending_.size());
  if (written != static_cast<ssize_t>(pending_.size()))
    return "cannot write " + path_ + ": " + strerror(written < 0 ? errno : ENOSPC);
  pending_.clear();
  return "";
}

std::string EventLog::update(const mtrun_progress &progress) {
  auto strip = [](const char *name) { return strncmp(name, "val_", 4) == 0 ? name + 4 : name; };
  if (progress.step_values && progress.total_step != lastStep_)
    for (int32_t i = 0; i < progress.metrics; ++i)
      if (strip(progress.names[i]) == progress.names[i])
        train_.add(progress.total_step, std::string("batch_") + progress.names[i], progress.step_values[i]);
  lastStep_ = progress.total_step;
  if (progress.epoch_end) {
    for (int32_t i = 0; i < progress.metrics; ++i) {
      bool held = progress.validation && strip(progress.names[i]) != progress.names[i];
      (held ? validation_ : train_)
          .add(progress.epoch, std::string("epoch_") + strip(progress.names[i]), progress.values[i]);
    }
    if (progress.learning_rate == progress.learning_rate) // not NaN, which says that a schedule computes it
      train_.add(progress.epoch, "epoch_learning_rate", progress.learning_rate);
  }
  if (!progress.epoch_end && now() - lastFlush_ < kFlushSeconds)
    return "";
  lastFlush_ = now();
  std::string problem = train_.flush();
  return problem.empty() ? validation_.flush() : problem;
}

} // namespace mtrun_tool
