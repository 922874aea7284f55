// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace mtrun {

// The 64-bit fingerprint of FarmHash, by which TensorFlow and Keras' Hashing layer put texts into bins.
uint64_t fingerprint(std::string_view text);

} // namespace mtrun
