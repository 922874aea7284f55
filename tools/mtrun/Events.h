// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard's event files: scalars, readable while training goes on. A record is u64 length, masked CRC-32C of the
// length, the event as a protocol buffer, masked CRC-32C of that; all little endian.
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78).
uint32_t crc32c(const std::string &bytes);

// Records: the first of a file, and one of a scalar.
std::string versionRecord(double wallTime);
std::string scalarRecord(double wallTime, int64_t step, const std::string &tag, float value);

// One file, opened when it is first written to. Whole records go to the system, so that a killed run leaves none in
// halves.
class EventFile {
public:
  // FOLDER/events.out.tfevents.TIME.HOST.PID.0
  explicit EventFile(std::string folder) : folder_(std::move(folder)) {}
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;
  ~EventFile();

  void add(int64_t step, const std::string &tag, double value);
  // The path and the system's reason, or "".
  std::string flush();

private:
  std::string folder_, path_, pending_;
  int descriptor_ = -1;
};

// What Keras' callback writes: train/ and validation/ with epoch_NAME by epoch, and batch_NAME by step in train/.
class EventLog {
public:
  explicit EventLog(const std::string &folder) : train_(folder + "/train"), validation_(folder + "/validation") {}
  // "", or what went wrong with a file; there is nothing more to do with the log then.
  std::string update(const mtrun_progress &progress);

private:
  EventFile train_, validation_;
  int64_t lastStep_ = -1;
  double lastFlush_ = 0;
};

} // namespace mtrun_tool
