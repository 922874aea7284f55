// SPDX-License-Identifier: Apache-2.0
//
// Small pictures and records, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fixtures {

// A PNG of 8 bits a channel; `type` 0 grey, 2 colour; the rows one after the other.
std::string png(uint32_t width, uint32_t height, int type, const std::string &pixels);
// The checksum of PNG chunks, big endian.
std::string crcOf(const std::string &bytes);

// A TFRecord around `bytes`.
std::string record(const std::string &bytes);
// A tf.train.Example of features that are written already, and those.
std::string example(const std::vector<std::string> &features);
std::string feature(const std::string &name, const std::vector<int64_t> &values);
std::string feature(const std::string &name, const std::vector<float> &values);
std::string feature(const std::string &name, const std::vector<std::string> &values);

} // namespace fixtures
