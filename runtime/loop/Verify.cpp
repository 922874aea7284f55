// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Verify.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/loop/Fit.h"
#include "runtime/plan/Check.h"
#include "runtime/receipt/RunOptions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <sstream>

namespace mtrun {

using Json = nlohmann::json;

static std::string stepsText(const Window &window) {
  return "steps " + std::to_string(window.begin) + " to " + std::to_string(window.end);
}

void joinWindows(std::vector<Window> &windows) {
  std::sort(windows.begin(), windows.end(), [](const Window &a, const Window &b) { return a.begin < b.begin; });
  std::vector<Window> joined;
  for (const Window &window : windows)
    if (!joined.empty() && window.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, window.end);
    else
      joined.push_back(window);
  windows = std::move(joined);
}

Status chooseWindows(const Receipt &receipt, const mtrun_verify_options &options, std::vector<Window> &windows) {
  int64_t last = receipt.lastStep(), every = receipt.every, count = (last + every - 1) / every;
  windows.clear();
  if (options.windows < 0 || options.begin < 0 || options.end < 0)
    return {MT_INVALID, "expected numbers of at least 0 for the windows, found a negative one"};
  if (last == 0)
    return {MT_INVALID, receipt.path + ": expected a step to check, found the record of step 0 alone"};
  if (options.windows == 0) {
    int64_t end = options.end ? options.end : last;
    if (options.begin >= end || end > last)
      return {MT_INVALID, receipt.path + ": expected a window inside steps 0 to " + std::to_string(last) + ", found " +
                              stepsText({options.begin, end})};
    windows.push_back({options.begin / every * every, std::min((end + every - 1) / every * every, last)});
    return {};
  }
  // Draws without repetition: the first numbers of a permutation.
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    order[static_cast<size_t>(i)] = i;
  std::mt19937_64 random(static_cast<uint64_t>(options.seed));
  int64_t drawn = std::min(options.windows, count);
  for (int64_t i = 0; i < drawn; ++i) {
    auto other = static_cast<size_t>(i) + static_cast<size_t>(random() % static_cast<uint64_t>(count - i));
    std::swap(order[static_cast<size_t>(i)], order[other]);
    int64_t begin = order[static_cast<size_t>(i)] * every;
    windows.push_back({begin, std::min(begin + every, last)});
  }
  joinWindows(windows);
  return {};
}

namespace {

class Verification {
public:
  Verification(Session &session, mtrun_dataset &data, const mtrun_verify_options &options, mtrun_verify_result &result)
      : session_(session), data_(data), options_(options), result_(result) {}

  Status run(const char *path);

private:
  void note(const std::string &line) const {
    if (options_.note && session_.process() == 0)
      options_.note(options_.note_user, line.c_str());
  }
  int64_t startOf(int64_t step);
  bool isProved(int64_t step);
  int64_t differingChunks(const std::string &chunks) const;
  Status setAll(std::span<const std::byte> bytes);
  std::vector<std::byte> allVariables() const;
  Status begin();
  Status replay(const Window &window);
  void tellShare(const std::vector<Window> &drawn) const;
  Status findWindows(std::vector<Window> &drawn, std::vector<Window> &windows);
  Status shareWindows(std::vector<Window> &windows);

  Session &session_;
  mtrun_dataset &data_;
  const mtrun_verify_options &options_;
  mtrun_verify_result &result_;
  Receipt receipt_;
  std::string folder_;
  std::vector<int64_t> steps_;       // of the checkpoints, newest first
  std::map<int64_t, bool> proved_;   // whether a checkpoint has the variables of its record
  std::vector<std::byte> beginning_; // the variables that were loaded; empty: none
};

} // namespace

// Returns true if the checkpoint of a step has the variables of the receipt's record.
bool Verification::isProved(int64_t step) {
  if (auto known = proved_.find(step); known != proved_.end())
    return known->second;
  bool &proved = proved_[step];
  std::string path = folder_ + "/" + checkpointName(step);
  Checkpoint checkpoint;
  if (Status s = readCheckpoint(path, checkpoint); !s.ok()) {
    note("skipped " + path + ": " + s.message());
    return false;
  }
  std::map<std::string, Digest> digests;
  for (const SafeTensor &tensor : checkpoint.tensors)
    digests[tensor.name] = rootOfBytes(tensor.bytes);
  std::vector<Digest> entries;
  for (const Json &variable : receipt_.head["variables"])
    entries.push_back(namedDigest(variable[0].get<std::string>(), digests[variable[0].get<std::string>()]));
  std::string expected = Json::parse(receipt_.lines[static_cast<size_t>(receipt_.find(step))].text)["variables"],
              found = hexadecimal(rootOf(entries));
  proved = expected == found;
  if (!proved)
    note("skipped " + path + ": expected variables with root " + expected + ", as the receipt says, found " + found);
  return proved;
}

// Returns the newest step up to `step` from which the run can be trained again.
int64_t Verification::startOf(int64_t step) {
  for (int64_t other : steps_)
    if (other <= step && receipt_.find(other) >= 0 && isProved(other))
      return other;
  return 0;
}

// Returns the number of chunks whose digits are others than in the record of step 0.
int64_t Verification::differingChunks(const std::string &chunks) const {
  std::string expected = Json::parse(receipt_.lines[0].text)["chunks"];
  int64_t count = expected.size() != chunks.size();
  for (size_t at = 0; at < std::min(expected.size(), chunks.size()); at += chunkDigits)
    count += expected.compare(at, chunkDigits, chunks, at, chunkDigits) != 0;
  return count;
}

Status Verification::setAll(std::span<const std::byte> bytes) {
  Status status;
  for (uint32_t i = 0; i < count(session_.plan().tables().variables()) && status.ok(); ++i) {
    status = session_.setVariable(i, bytes.first(session_.variableSize(i)));
    bytes = bytes.subspan(session_.variableSize(i));
  }
  return status;
}

std::vector<std::byte> Verification::allVariables() const {
  std::vector<std::byte> all;
  for (uint32_t i = 0; i < count(session_.plan().tables().variables()); ++i) {
    std::span<const std::byte> bytes = session_.variable(i);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

// Sets the variables of step 0: the seed's, or else the variables that were loaded, if they are nearer to the
// receipt's.
Status Verification::begin() {
  VariableTree own, given;
  if (Status s = session_.init(receipt_.head["run"]["seed"].get<int64_t>()); !s.ok())
    return s;
  if (Status s = own.compute(session_); !s.ok())
    return s;
  if (beginning_.empty() || differingChunks(own.chunks) == 0)
    return {};
  std::vector<std::byte> seeded = allVariables();
  if (Status s = setAll(beginning_); !s.ok())
    return s;
  if (Status s = given.compute(session_); !s.ok())
    return s;
  return differingChunks(given.chunks) < differingChunks(own.chunks) ? Status() : setAll(seeded);
}

Status Verification::replay(const Window &window) {
  mtrun_loop_options options = {};
  mtrun_checkpoint_options checkpoint = {};
  options.struct_size = sizeof options;
  checkpoint.struct_size = sizeof checkpoint;
  OptionTexts texts;
  if (Status s = setRunOptions(receipt_.head["run"], options, texts); !s.ok())
    return std::move(s).in(receipt_.path + ", line 1: ");
  std::string from = folder_ + "/" + checkpointName(window.begin);
  bool toEnd = receipt_.ended() && window.end == receipt_.lastStep();
  constexpr int64_t many = int64_t{1} << 40; // the window ends the fit
  options.epochs = toEnd ? Json::parse(receipt_.lines.back().text)["epochs"].get<int64_t>() : many;
  options.validation = options_.validation;
  options.in_flight = 1;
  if (window.begin > 0) {
    checkpoint.resume = from.c_str();
    options.checkpoint = &checkpoint;
  } else if (Status s = begin(); !s.ok()) {
    return s;
  }
  Fit fit;
  fit.replay(receipt_, window.begin, toEnd ? -1 : window.end);
  Status status = fit.open(session_, &data_, options);
  if (status.ok())
    status = fit.run();
  result_.differs = fit.differs();
  return status;
}

// Random windows find a run of which a share f is wrong with probability 1 - (1 - f)^M.
void Verification::tellShare(const std::vector<Window> &drawn) const {
  int64_t windows = 0;
  for (const Window &window : drawn)
    windows += (window.end - window.begin + receipt_.every - 1) / receipt_.every;
  std::string text = std::to_string(windows) + " random windows find a run of which";
  for (double share : {0.5, 0.1, 0.01}) {
    char part[80];
    snprintf(part, sizeof part, "%s %g %% is wrong with probability %.3g", share == 0.5 ? "" : ",", 100 * share,
             1 - std::pow(1 - share, static_cast<double>(windows)));
    text += part;
  }
  note(text);
}

// Finds the checkpoints from which the windows begin. Process 0 alone reads them.
Status Verification::findWindows(std::vector<Window> &drawn, std::vector<Window> &windows) {
  if (options_.checkpoints) {
    folder_ = options_.checkpoints;
    steps_ = checkpointSteps(folder_);
    if (steps_.empty())
      return {MT_INVALID, "expected checkpoints in " + folder_ + ", found none"};
  }
  if (Status s = chooseWindows(receipt_, options_, drawn); !s.ok())
    return s;
  for (const Window &window : drawn)
    windows.push_back({startOf(window.begin), window.end});
  joinWindows(windows);
  return {};
}

// Gives all processes the windows of process 0.
Status Verification::shareWindows(std::vector<Window> &windows) {
  std::string text;
  for (const Window &window : windows)
    text += std::to_string(window.begin) + " " + std::to_string(window.end) + " ";
  if (Status s = session_.broadcast(text); !s.ok())
    return s;
  windows.clear();
  std::istringstream numbers(text);
  for (Window window; numbers >> window.begin >> window.end;)
    windows.push_back(window);
  return windows.empty() ? Status(MT_LOST, "expected the windows of process 0, found other text") : Status();
}

Status Verification::run(const char *path) {
  bool together = session_.processes() > 1;
  if (Status s = readReceipt(path, false, receipt_); !s.ok())
    return s;
  // The last line has the hash of the line before it, and so on.
  if (Status s = together ? session_.agree("receipt: " + hashOfLine(receipt_.lines.back().text)) : Status(); !s.ok())
    return s;
  result_.steps = receipt_.lastStep();
  std::vector<Window> drawn, windows;
  if (Status s = session_.process() == 0 ? findWindows(drawn, windows) : Status(); !s.ok())
    return s;
  if (Status s = together ? shareWindows(windows) : Status(); !s.ok())
    return s;
  // Session::create() makes a change for each initial value, and one for the program `init`.
  uint64_t changes = 1;
  for (const mt::plan::Variable *variable : Each(session_.plan().tables().variables()))
    changes += variable->initial() >= 0;
  if (windows[0].begin == 0 && session_.changes() > changes)
    beginning_ = allVariables();
  for (const Window &window : windows) {
    if (Status s = replay(window); !s.ok())
      return s;
    result_.checked += window.end - window.begin;
    note(stepsText(window) + " agree");
  }
  if (options_.windows > 0)
    tellShare(drawn);
  if (!receipt_.ended())
    note("the receipt has no end: the run went on after step " + std::to_string(result_.steps) + ", or was stopped");
  return {};
}

Status verifyReceipt(Session &session, mtrun_dataset &data, const char *path, const mtrun_verify_options &options,
                     mtrun_verify_result &result) {
  result = {};
  return Verification(session, data, options, result).run(path);
}

} // namespace mtrun
