// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Rescue.h"

#include <charconv>
#include <utility>

namespace mtrun {
namespace {

std::vector<SafeTensor> tensorsOf(const Session &session) {
  std::vector<SafeTensor> tensors;
  const auto *variables = session.plan().tables().variables();
  for (uint32_t i = 0; variables && i < variables->size(); ++i) {
    const auto &variable = *variables->Get(i);
    std::vector<int64_t> shape;
    if (variable.shape())
      shape.assign(variable.shape()->begin(), variable.shape()->end());
    tensors.push_back(
        {variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), std::move(shape), session.variable(i)});
  }
  return tensors;
}

uint64_t variableBytes(const Session &session) {
  return static_cast<uint64_t>(std::max<int64_t>(session.info().variables_bytes, 0));
}

// The newest checkpoint of a process.
struct Newest {
  int64_t step = -1, epoch = 0; // -1: it has none
  std::string path = {};
};

Newest newestOf(const Checkpoint &checkpoint, bool found) {
  if (!found)
    return {};
  return {checkpoint.manifest.state.step, checkpoint.manifest.state.epoch, checkpoint.path};
}

bool isNewer(const Newest &a, const Newest &b) { return std::pair(a.step, a.epoch) > std::pair(b.step, b.epoch); }

// Reads "NUMBER " at the beginning of `text`, and removes it.
bool takeNumber(std::string_view &text, int64_t &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ')
    return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

std::string textOf(const Newest &newest) {
  return std::to_string(newest.step) + " " + std::to_string(newest.epoch) + " " + newest.path;
}

Newest parseNewest(std::string_view text) {
  Newest newest;
  if (!takeNumber(text, newest.step) || !takeNumber(text, newest.epoch))
    return {};
  newest.path = text;
  return newest;
}

std::vector<std::byte> bytesOf(const std::string &text) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Process `root` sends its checkpoint to the others, which verify it.
Status share(Session &session, int root, const std::string &path, Checkpoint &checkpoint) {
  bool own = session.process() == root;
  std::vector<std::byte> manifest = own ? bytesOf(writeManifest(checkpoint.manifest)) : std::vector<std::byte>();
  if (Status s = session.shareBytes(manifest, root); !s.ok())
    return s;
  std::vector<std::byte> file;
  std::vector<std::byte> &shared = own ? checkpoint.file : file;
  if (Status s = session.shareBytes(shared, root); !s.ok() || own)
    return s;
  return parseCheckpoint(path, {reinterpret_cast<const char *>(manifest.data()), manifest.size()}, std::move(file),
                         checkpoint);
}

} // namespace

Status Rescue::open(Session &session, const Saver &saver, const char *option, const Saver::Note &warn) {
  bool first = session.process() == 0, together = session.processes() > 1;
  std::string named = option ? option : "";
  if (session.dividesOptimizer()) {
    if (!named.empty() && named != "none")
      return {MT_INVALID, "rescue: expected processes that each have all variables, found parts of the optimizer's "
                          "(shard_optimizer): a lost process takes its part with it, and the last checkpoint counts"};
    named = "none";
  }
  if (together && !session.sharesBytes()) {
    if (!named.empty() && named != "none")
      return {MT_INVALID, "rescue: expected processes of CPU devices, found GPUs"};
    return {};
  }
  if (first && saver.incarnation().run.empty() && !named.empty() && named != "none")
    return {MT_INVALID, "rescue: expected a folder of checkpoints (--checkpoint DIR), found none"};
  // The first line names the run, the second the folder.
  std::string word;
  if (first && !saver.incarnation().run.empty() && named != "none")
    word = incarnationText(saver.incarnation()) + (named.empty() ? defaultRescueFolder() : named);
  if (Status s = together ? session.broadcast(word) : Status(); !s.ok() || word.empty())
    return s;
  size_t end = word.find('\n') + 1;
  Incarnation incarnation;
  if (!parseIncarnation(word.substr(0, end), incarnation))
    return {MT_LOST, "expected the name of a run from process 0, found other text"};
  Status own = folder_.open(word.substr(end), incarnation, variableBytes(session), !together);
  if (!together)
    return own.code() == MT_INVALID && !named.empty() ? own : Status();
  std::vector<std::string> problems;
  if (Status s = session.gather(own.ok() ? "" : own.message(), problems); !s.ok())
    return s;
  for (size_t process = 0; process < problems.size(); ++process)
    if (!problems[process].empty())
      warn("process " + std::to_string(process) +
           " cannot keep its variables if another is lost: " + problems[process]);
  return own.code() == MT_INVALID && !named.empty() ? std::move(own).in("rescue: ") : Status();
}

Status Rescue::shareNewest(Session &session, Checkpoint &checkpoint, bool &found, bool kept) const {
  Checkpoint rescued;
  std::vector<std::string> skipped;
  if (kept && folder_.opened() && findNewest(folder_.path(), rescued, skipped) &&
      isNewer(newestOf(rescued, true), newestOf(checkpoint, found))) {
    checkpoint = std::move(rescued);
    found = true;
  }
  if (session.processes() == 1)
    return {};
  std::vector<std::string> all;
  if (Status s = session.gather(textOf(newestOf(checkpoint, found)), all); !s.ok())
    return s;
  int64_t root = 0;
  Newest newest;
  for (size_t process = 0; process < all.size(); ++process)
    if (Newest theirs = parseNewest(all[process]); isNewer(theirs, newest)) {
      newest = theirs;
      root = static_cast<int64_t>(process);
    }
  std::string word = newest.step < 0 ? "" : std::to_string(root) + " " + newest.path;
  if (Status s = session.broadcast(word); !s.ok())
    return s;
  std::string_view rest = word;
  found = !word.empty();
  if (!found)
    return {};
  if (!takeNumber(rest, root) || root < 0 || root >= session.processes())
    return {MT_LOST, "expected the number of a process from process 0, found other text"};
  return share(session, static_cast<int>(root), std::string(rest), checkpoint);
}

Status Rescue::keep(const Session &session, const Manifest &manifest) {
  return folder_.write(manifest, tensorsOf(session));
}

} // namespace mtrun
