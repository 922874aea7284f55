// SPDX-License-Identifier: Apache-2.0
//
// Values of JSON as text, for what is written piece by piece: headers of tensors, traces, histories, lines of a log.
#pragma once

#include <string>
#include <string_view>

namespace mtrun {

// With quotes. `text` may be any bytes: what is no UTF-8 becomes U+FFFD.
std::string jsonString(std::string_view text);
// Reads back as the same double; null where it is not finite, which JSON has no number for.
std::string jsonNumber(double value);

} // namespace mtrun
