// SPDX-License-Identifier: Apache-2.0
//
// Writes records of TensorBoard's event files. A record is a u64 length, its masked CRC-32C, the event as a protocol
// buffer, and the event's masked CRC-32C; all little endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun_tool {

// Makes the first record of a file.
std::string versionRecord(double wallTime);
std::string scalarRecord(double wallTime, int64_t step, const std::string &tag, float value);

// A histogram of finite values. Bucket i counts values in [limits[i - 1], limits[i]); the first bucket begins at
// `least`, and the last includes its limit.
struct Histogram {
  double least = 0, largest = 0, sum = 0, sumOfSquares = 0;
  int64_t count = 0;
  std::vector<double> limits;
  std::vector<int64_t> counts;
};
Histogram histogramOf(std::span<const float> values);
std::string histogramRecord(double wallTime, int64_t step, const std::string &tag, const Histogram &histogram);

std::string textRecord(double wallTime, const std::string &tag, const std::string &markdown);

// A node of a graph; slashes in names form groups.
struct GraphNode {
  std::string name, op;
  std::vector<std::string> inputs; // names of other nodes
};
std::string graphRecord(double wallTime, const std::vector<GraphNode> &nodes);

} // namespace mtrun_tool
