// SPDX-License-Identifier: Apache-2.0
//
// What a run's folder tells of its epochs: history.csv, which the library writes, and timing.csv beside it, with what
// each epoch took. A report is made of both, so that a resumed run's has all epochs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

// Records of CSV, as RFC 4180 has it. A last line without an end is one of a writer that was killed, and is left out.
std::vector<std::vector<std::string>> parseCsv(const std::string &text);

// Metrics of the epochs `first`, `first` + 1 ...
struct Metrics {
  std::vector<std::string> names; // without "epoch"
  std::vector<std::vector<double>> columns;
  int64_t first = 1;
  size_t epochs() const { return columns.empty() ? 0 : columns[0].size(); }
};
// Those of history.csv up to `last`; none if there is no such file, or another one.
Metrics readHistory(const std::string &path, int64_t last);

// What an epoch took in the process that ended it.
struct EpochTime {
  int64_t epoch = 0; // from 1
  std::string began; // when that process did, UTC
  int64_t steps = 0, samples = 0;
  double seconds = 0, training = 0, waited = 0; // all; without validation; the devices, for data
  std::string devices;
};
std::vector<EpochTime> readTiming(const std::string &path, int64_t last);
// Replaces the file. Return why it could not be written, or "".
std::string writeTiming(const std::string &path, const std::vector<EpochTime> &epochs);
// One more line.
std::string appendTiming(const std::string &path, const EpochTime &epoch);

// Now, as "2026-01-02T03:04:05.678Z": processes of a run are told apart by when they began.
std::string utcNow();

} // namespace mtrun_tool
