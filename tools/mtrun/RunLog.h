// SPDX-License-Identifier: Apache-2.0
//
// Reads the epochs of a run's folder: history.csv, which the library writes, and timing.csv with the times of each
// epoch. A report uses both, so that the report of a resumed run has all epochs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

// Parses CSV (RFC 4180). A last line without a line end was written by a killed process and is ignored.
std::vector<std::vector<std::string>> parseCsv(const std::string &text);

// Metrics of consecutive epochs from `first` on.
struct Metrics {
  std::vector<std::string> names; // without "epoch"
  std::vector<std::vector<double>> columns;
  int64_t first = 1;
  size_t epochs() const { return columns.empty() ? 0 : columns[0].size(); }
};
// Reads the epochs of history.csv up to `last`; empty if the file does not exist or has another format.
Metrics readHistory(const std::string &path, int64_t last);

// The times of an epoch in the process that completed it.
struct EpochTime {
  int64_t epoch = 0; // number of the epoch, from 1
  std::string began; // start of that process, UTC
  int64_t steps = 0, samples = 0;
  double seconds = 0, training = 0, waited = 0; // total; without validation; waiting for data
  std::string devices;
};
std::vector<EpochTime> readTiming(const std::string &path, int64_t last);
// Replaces the file. Returns "" or the error.
std::string writeTiming(const std::string &path, const std::vector<EpochTime> &epochs);
// Appends a line. Returns "" or the error.
std::string appendTiming(const std::string &path, const EpochTime &epoch);

// Returns the current time, such as "2026-01-02T03:04:05.678Z". The processes of a run are identified by their start.
std::string utcNow();

} // namespace mtrun_tool
