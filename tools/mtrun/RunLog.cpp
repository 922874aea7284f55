// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/RunLog.h"

#include "runtime/support/atomic_file.h"
#include "runtime/support/html.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

namespace mtrun_tool {

static constexpr const char *timingHead = "epoch,began,steps,samples,seconds,seconds_training,seconds_waited,devices\n";

std::vector<std::vector<std::string>> parseCsv(const std::string &text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool twice = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
    if (quoted && (c != '"' || twice)) {
      record.back() += c;
      i += twice;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',') {
      record.emplace_back();
    } else if (c == '\n') {
      records.push_back(std::move(record));
      record.assign(1, "");
    } else if (c != '\r') {
      record.back() += c;
    }
  }
  return records;
}

static std::string readText(const std::string &path) {
  std::string text;
  std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "rb"), fclose);
  char block[1 << 12];
  for (size_t count; file && (count = fread(block, 1, sizeof block, file.get())) > 0;)
    text.append(block, count);
  return text;
}

static int64_t whole(const std::string &text) { return strtoll(text.c_str(), nullptr, 10); }
static double real(const std::string &text) { return strtod(text.c_str(), nullptr); }

Metrics readHistory(const std::string &path, int64_t last) {
  std::vector<std::vector<std::string>> records = parseCsv(readText(path));
  Metrics metrics;
  if (records.empty() || records[0][0] != "epoch")
    return metrics;
  metrics.names.assign(records[0].begin() + 1, records[0].end());
  metrics.columns.resize(metrics.names.size());
  for (std::string &name : metrics.names)
    if (name.size() > 1 && name[0] == '\'' && strchr("=+-@", name[1])) // the apostrophe protects spreadsheets
      name.erase(0, 1);
  for (size_t i = 1; i < records.size(); ++i) {
    int64_t epoch = whole(records[i][0]);
    if (i == 1)
      metrics.first = epoch;
    if (records[i].size() != records[0].size() || epoch > last)
      break;
    for (size_t c = 0; c < metrics.columns.size(); ++c)
      metrics.columns[c].push_back(real(records[i][c + 1]));
  }
  return metrics;
}

std::vector<EpochTime> readTiming(const std::string &path, int64_t last) {
  std::vector<EpochTime> epochs;
  for (const std::vector<std::string> &r : parseCsv(readText(path)))
    if (r.size() == 8 && whole(r[0]) >= 1 && whole(r[0]) <= last)
      epochs.push_back({whole(r[0]), r[1], whole(r[2]), whole(r[3]), real(r[4]), real(r[5]), real(r[6]), r[7]});
  return epochs;
}

static std::string lineOf(const EpochTime &epoch) {
  std::string line; // device names have no quotes
  mtrun::append(line, "%lld,%s,%lld,%lld,%.6f,%.6f,%.6f,\"%s\"\n", static_cast<long long>(epoch.epoch),
                epoch.began.c_str(), static_cast<long long>(epoch.steps), static_cast<long long>(epoch.samples),
                epoch.seconds, epoch.training, epoch.waited, epoch.devices.c_str());
  return line;
}

std::string writeTiming(const std::string &path, const std::vector<EpochTime> &epochs) {
  std::string text = timingHead;
  for (const EpochTime &epoch : epochs)
    text += lineOf(epoch);
  mtrun::Status status = mtrun::writeAtomically(path, text);
  return status.ok() ? "" : status.message();
}

std::string appendTiming(const std::string &path, const EpochTime &epoch) {
  std::string line = lineOf(epoch);
  std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "ab"), fclose);
  if (file && fwrite(line.data(), 1, line.size(), file.get()) == line.size() && fflush(file.get()) == 0)
    return "";
  return "cannot write " + path + ": " + strerror(errno);
}

std::string utcNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  struct tm parts;
  gmtime_r(&now.tv_sec, &parts);
  char text[24];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string utc = text;
  mtrun::append(utc, ".%03dZ", static_cast<int>(now.tv_nsec / 1'000'000));
  return utc;
}

} // namespace mtrun_tool
