// SPDX-License-Identifier: Apache-2.0
//
// The records of TensorBoard's event files. A record is u64 length, masked CRC-32C of the length, the event as a
// protocol buffer, masked CRC-32C of that; all little endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun_tool {

// The first of a file.
std::string versionRecord(double wallTime);
std::string scalarRecord(double wallTime, int64_t step, const std::string &tag, float value);

// Of the finite values alone. Bucket i counts those from limits[i - 1] (the least, for the first) to limits[i], which
// it leaves out but for the last.
struct Histogram {
  double least = 0, largest = 0, sum = 0, sumOfSquares = 0;
  int64_t count = 0;
  std::vector<double> limits;
  std::vector<int64_t> counts;
};
Histogram histogramOf(std::span<const float> values);
std::string histogramRecord(double wallTime, int64_t step, const std::string &tag, const Histogram &histogram);

std::string textRecord(double wallTime, const std::string &tag, const std::string &markdown);

// A node of a graph; slashes in names make groups.
struct GraphNode {
  std::string name, op;
  std::vector<std::string> inputs; // names of nodes
};
std::string graphRecord(double wallTime, const std::vector<GraphNode> &nodes);

} // namespace mtrun_tool
