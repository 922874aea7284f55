// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Launches.h"
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/Recorder.h"
#include "runtime/support/atomic_file.h"
#include "runtime/support/text.h"

#include <stdexcept>

namespace mtrun {

using Json = nlohmann::json;

Status LaunchDigests::begin(Session &session, int64_t step) {
  head_ = {{"format", "mtc-launches"},
           {"plan", hexadecimal(stepsDigest(session.plan()))},
           {"step", step},
           {"version", receiptVersion}};
  launches_.clear();
  // Kernels may leave parts of their results unwritten.
  session.fillTemporaries(0);
  return session.watchLaunches([this](const Session::Launch &launch) {
    Json results = Json::array();
    for (std::span<const std::byte> bytes : launch.results)
      results.push_back(hexadecimal(sha256({reinterpret_cast<const char *>(bytes.data()), bytes.size()})));
    launches_.push_back({{"kernel", launch.kernel}, {"launch", launches_.size()}, {"results", std::move(results)}});
  });
}

Status LaunchDigests::write(const std::string &path) const {
  std::string text = canonical(head_) + "\n";
  for (const Json &launch : launches_)
    text += canonical(launch) + "\n";
  return writeAtomically(path, text);
}

static Status readLaunches(const std::string &path, std::vector<Json> &lines) {
  std::string text;
  if (Status s = readLimited(path, text); !s.ok())
    return s;
  for (std::string_view rest = text; !rest.empty();) {
    std::string place = path + ", line " + std::to_string(lines.size() + 1) + ": ";
    try {
      size_t end = rest.find('\n');
      if (end == std::string_view::npos)
        throw std::runtime_error("expected a newline at its end, found the end of the file");
      Json line = parseLine(rest.substr(0, end));
      rest.remove_prefix(end + 1);
      if (lines.empty() &&
          (line.value("format", Json()) != "mtc-launches" || line.value("version", Json()) != receiptVersion))
        throw std::runtime_error("expected digests of launches of version " + std::to_string(receiptVersion) +
                                 ", found another file");
      if (!lines.empty() && (!line.value("kernel", Json()).is_string() || !line.value("results", Json()).is_array() ||
                             line.value("launch", Json()) != lines.size() - 1))
        throw std::runtime_error("expected launch " + std::to_string(lines.size() - 1) + ", found another line");
      lines.push_back(std::move(line));
    } catch (const std::exception &error) { // from the JSON parser, or thrown above
      return {MT_INVALID, place + printable(error.what())};
    }
  }
  return lines.empty() ? Status(MT_INVALID, path + ": expected digests of launches, found an empty file") : Status();
}

Status compareLaunches(const std::string &first, const std::string &second, std::vector<std::string> &lines) {
  std::vector<Json> a, b;
  if (Status s = readLaunches(first, a); !s.ok())
    return s;
  if (Status s = readLaunches(second, b); !s.ok())
    return s;
  if (std::string text = firstDifference(a[0], b[0]); !text.empty()) {
    lines.push_back("the steps differ: " + text);
    return {};
  }
  size_t count = 0;
  for (size_t i = 1; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i])
      continue;
    if (count++ > 0)
      continue;
    if (i >= a.size() || i >= b.size())
      lines.push_back("launch " + std::to_string(i - 1) + ": in one of the files only");
    else
      lines.push_back("launch " + std::to_string(i - 1) + ", kernel " + a[i]["kernel"].get<std::string>() + ": " +
                      firstDifference(a[i], b[i]));
  }
  if (count > 0)
    lines.push_back(std::to_string(count) + " of " + std::to_string(std::max(a.size(), b.size()) - 1) +
                    " launches differ");
  return {};
}

} // namespace mtrun
