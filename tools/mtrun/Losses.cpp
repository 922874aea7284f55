// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Losses.h"

#include <charconv>

namespace mtrun_tool {

// The last "process N (DEVICE of HOST)" before "was lost" is the lost process: others may report it.
std::optional<Loss> lossIn(std::string_view line) {
  constexpr std::string_view lost = " was lost", begin = "process ", of = " of ";
  size_t end = line.find(lost);
  if (end == line.npos || line.find("mtrun: error: ") == line.npos)
    return std::nullopt;
  Loss loss;
  auto says = [&](std::string_view reason) { return line.find(reason, end) != line.npos; };
  loss.answers = !says(": it was silent") && !says("stood still") && !says(" nothing for ");
  size_t at = line.rfind(begin, end);
  if (at == line.npos)
    return std::nullopt;
  std::string_view name = line.substr(at + begin.size(), end - at - begin.size());
  auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), loss.process);
  if (error != std::errc() || loss.process < 0)
    return std::nullopt;
  if (size_t host = name.rfind(of); host != name.npos && name.ends_with(')'))
    loss.host = name.substr(host + of.size(), name.size() - host - of.size() - 1);
  return loss;
}

} // namespace mtrun_tool
