// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Recorder.h"
#include "runtime/plan/Check.h"
#include "runtime/receipt/RunOptions.h"
#include "runtime/support/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace mtrun {

using Json = nlohmann::json;

Recorder::~Recorder() {
  if (file_ >= 0)
    close(file_);
}

void Recorder::begin(Session &session, Json head) {
  session_ = &session;
  head_ = std::move(head);
  every_ = head_.at("every").get<int64_t>();
  const Plan &plan = session.plan();
  shardRows_ = static_cast<int64_t>(plan.shardRows());
  int64_t first = 0, own = plan.shards();
  if (session.processes() > 1) {
    for (int32_t process = 0; process < session.process(); ++process)
      first += session.shards(process);
    own = session.shards(session.process());
  }
  rows_ = {first * shardRows_, (first + own) * shardRows_};
  chains_.assign(static_cast<size_t>(own), Digest{});
}

// A shard's chain is SHA-256(chain, digest of each valid row of the shard), once a step.
void Recorder::add(const Batch &batch) {
  for (size_t shard = 0; shard < chains_.size(); ++shard) {
    int64_t begin = rows_.begin + static_cast<int64_t>(shard) * shardRows_;
    Sha256 hash;
    hash.add(chains_[shard]);
    for (int64_t row = begin; row < std::min(begin + shardRows_, batch.rows); ++row)
      hash.add(batch.digests[static_cast<size_t>(row)]);
    chains_[shard] = hash.finish();
  }
}

// Collects the chains of all shards in process 0, in the order of the shards.
Status Recorder::gatherRows(std::string &root) {
  std::string own;
  for (const Digest &chain : chains_)
    own.append(chain.begin(), chain.end());
  std::fill(chains_.begin(), chains_.end(), Digest{});
  std::vector<std::string> all;
  if (Status s = session_->gather(own, all); !s.ok())
    return s;
  std::vector<Digest> entries;
  for (const std::string &text : all)
    for (size_t at = 0; at + sizeof(Digest) <= text.size(); at += sizeof(Digest))
      entries.push_back(entryDigest(text.data() + at, sizeof(Digest)));
  root = hexadecimal(rootOf(entries));
  return {};
}

// Collects what process 0 needs for a line.
Status Recorder::gatherParts(std::string &root) {
  Status status = gatherRows(root);
  return status.ok() ? session_->collect() : status;
}

Status Recorder::addVariables(Json &line, bool names) {
  if (Status s = tree_.compute(*session_); !s.ok())
    return s;
  line["variables"] = hexadecimal(tree_.root);
  line["chunks"] = tree_.chunks;
  const auto *variables = session_->plan().tables().variables();
  for (uint32_t i = 0; names && i < count(variables); ++i)
    line["by_name"][variables->Get(i)->name()->str()] = hexadecimal(tree_.ofVariables[i]);
  return {};
}

Status Recorder::resume(const std::string &path, int64_t step, int64_t &from) {
  Receipt &receipt = continued_.emplace();
  if (Status s = readReceipt(path, true, receipt); !s.ok())
    return s;
  if (receipt.every != every_)
    return {MT_INVALID, path + ": expected a record every " + std::to_string(every_) + " steps, found every " +
                            std::to_string(receipt.every)};
  while (!receipt.lines.empty() && (receipt.lines.back().end || receipt.lines.back().step > step))
    receipt.lines.pop_back();
  from = step / every_ * every_;
  if (receipt.lastStep() < from)
    return {MT_INVALID, path + ": expected records up to step " + std::to_string(from) +
                            ", because the run goes on at step " + std::to_string(step) + ", found them up to step " +
                            std::to_string(receipt.lastStep())};
  return {};
}

void Recorder::compareWith(const Receipt &expected, int64_t from, int64_t until) {
  expected_ = &expected;
  next_ = static_cast<size_t>(expected.find(from));
  until_ = until;
}

Status Recorder::openFile() {
  file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0)
    return ioError("cannot open", path_, errno);
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return {MT_INVALID, "another run writes " + path_};
  return {};
}

// The first two lines appear together, so that a receipt always has the record of step 0.
Status Recorder::create() {
  if (access(path_.c_str(), F_OK) == 0)
    return {MT_INVALID, path_ + " is there already; expected another file, or to resume its run (--resume auto)"};
  head_["prev"] = "";
  std::string text = canonical(head_);
  Json zero = {{"step", 0}, {"prev", hashOfLine(text)}};
  if (Status s = addVariables(zero, false); !s.ok())
    return s;
  std::string line = canonical(zero);
  previous_ = hashOfLine(line);
  if (Status s = writeAtomically(path_, text + "\n" + line + "\n"); !s.ok())
    return s;
  return openFile();
}

// Replaces the file by the lines that stay.
Status Recorder::goOn() {
  std::string text = continued_->headText + "\n";
  for (const ReceiptLine &line : continued_->lines)
    text += line.text + "\n";
  previous_ = hashOfLine(continued_->lines.back().text);
  continued_.reset();
  if (Status s = writeAtomically(path_, text); !s.ok())
    return s;
  return openFile();
}

Status Recorder::start(const std::string &path) {
  path_ = path;
  return share(session_->process() == 0 ? startAlone() : Status());
}

// Gives all processes what process 0 has found, where they compare.
Status Recorder::share(Status own) {
  if (!expected_ || session_->processes() == 1)
    return own;
  std::string word = own.ok() ? "" : (differs_ ? "d" : "e") + own.message();
  if (Status s = session_->broadcast(word); !s.ok() || session_->process() == 0)
    return s.ok() ? own : s;
  differs_ = word.starts_with('d');
  return word.empty() ? Status() : Status(MT_INVALID, word.substr(1));
}

Status Recorder::startAlone() {
  const Receipt *made = expected_ ? expected_ : continued_ ? &*continued_ : nullptr;
  if (!made)
    return create();
  Json then = made->head;
  then.erase("prev");
  if (std::string text = firstDifference(then, head_); !text.empty())
    return {MT_INVALID, made->path + ": made by another run: " + text};
  if (!expected_)
    return goOn();
  if (expected_->lines[next_].step == 0)
    return emit(Json{{"step", 0}});
  ++next_;
  return {};
}

Status Recorder::record(const LoopState &state, const std::vector<std::string> &names,
                        const std::vector<double> &means) {
  std::string rows;
  if (Status s = gatherParts(rows); !s.ok() || session_->process() > 0)
    return s.ok() ? share({}) : s;
  Json line = {{"step", state.step}, {"epoch", state.epoch}, {"position", state.position}, {"rows", rows}};
  line["metrics"] = Json::object();
  for (size_t i = 0; i < names.size(); ++i)
    line["metrics"][names[i]] = exactNumber(means[i]);
  return share(emit(std::move(line)));
}

Status Recorder::end(const LoopState &state) {
  std::string rows;
  if (Status s = gatherParts(rows); !s.ok() || session_->process() > 0)
    return s.ok() ? share({}) : s;
  return share(emit(Json{{"end", true}, {"epochs", state.epoch}, {"step", state.step}, {"rows", rows}}));
}

// Adds the variables and the hash of the line before, and writes or compares the line.
Status Recorder::emit(Json line) {
  if (Status s = addVariables(line, line.contains("end")); !s.ok())
    return s;
  if (expected_)
    return compare(line);
  line["prev"] = previous_;
  std::string text = canonical(line);
  previous_ = hashOfLine(text);
  return append(text + "\n");
}

// Each line is on disk before the run goes on, so that a checkpoint never has a step that the receipt lacks.
Status Recorder::append(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t written = write(file_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return ioError("cannot write", path_, written < 0 ? errno : EIO);
    at += static_cast<size_t>(written);
  }
  return fdatasync(file_) == 0 ? Status() : ioError("cannot write", path_, errno);
}

Status Recorder::compare(const Json &line) {
  int64_t step = line["step"].get<int64_t>();
  const ReceiptLine *expected = next_ < expected_->lines.size() ? &expected_->lines[next_] : nullptr;
  std::string where = expected_->path + ": differs first at step " + std::to_string(step) + ": ";
  if (!expected || expected->step != step || expected->end != line.contains("end")) {
    differs_ = true;
    return {MT_INVALID, where + (line.contains("end") ? "the run ends there, the receipt goes on"
                                                      : "the run goes on there, the receipt ends")};
  }
  ++next_;
  Json then = Json::parse(expected->text);
  then.erase("prev");
  if (then == line)
    return {};
  differs_ = true;
  return {MT_INVALID, where + recordDifference(head_["variables"], then, line)};
}

} // namespace mtrun
