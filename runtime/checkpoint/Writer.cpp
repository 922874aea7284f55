// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Writer.h"

#include "runtime/support/blocked_signals.h"
#include "runtime/support/hash_text.h"

#include <cmath>
#include <cstring>
#include <new>

namespace mtrun {

// Returns the variables of a plan, without bytes.
static std::vector<SafeTensor> tensorsOf(const Session &session) {
  std::vector<SafeTensor> tensors;
  const auto *variables = session.plan().tables().variables();
  for (uint32_t i = 0; variables && i < variables->size(); ++i) {
    const auto &variable = *variables->Get(i);
    std::vector<int64_t> shape;
    if (variable.shape())
      shape.assign(variable.shape()->begin(), variable.shape()->end());
    tensors.push_back({variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), std::move(shape), {}});
  }
  return tensors;
}

DividedFile::DividedFile(const Session &session) : session_(session), file_(tensorsOf(session)) {
  for (const SafeTensor &tensor : file_.tensors)
    variables_.push_back(static_cast<uint32_t>(session.plan().variable(tensor.name)));
}

Status DividedFile::writeParts(Disk &disk, const std::string &place, std::string &hashes) const {
  std::vector<Disk::Piece> pieces;
  hashes.clear();
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!session_.divides(variables_[i]))
      continue;
    std::span<const std::byte> bytes = session_.ownPart(variables_[i]);
    pieces.push_back({file_.offsets[i] + session_.partOf(variables_[i], session_.process()).begin, bytes});
    hashes += hashText(bytes.data(), bytes.size());
  }
  return writePieces(disk, place, file_.size, pieces);
}

CheckpointWriter::CheckpointWriter(const CheckpointFolder &folder, const Session &session, const Keep &keep,
                                   bool together)
    : folder_(folder), session_(session), keep_(keep) {
  if (together)
    divided_ = std::make_unique<DividedFile>(session);
  tensors_ = tensorsOf(session);
  auto copies = [&](uint32_t i) { return !together || !session.divides(i); };
  uint64_t copied = 0;
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    bytes_ += session.variableSize(i);
    copied += copies(i) ? session.variableSize(i) : 0;
  }
  copy_.resize(copied);
  copied = 0;
  for (uint32_t i = 0; i < tensors_.size(); ++i)
    if (copies(i)) {
      tensors_[i].bytes = std::span(copy_).subspan(copied, session.variableSize(i));
      copied += session.variableSize(i);
    }
  for (size_t t = 0; divided_ && t < divided_->file().tensors.size(); ++t)
    divided_->setBytes(t, tensors_[divided_->variableOf(t)].bytes);
  BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool CheckpointWriter::idle() {
  std::lock_guard lock(mutex_);
  return !busy_;
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

Status CheckpointWriter::takeError() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, Status());
}

void CheckpointWriter::save(Manifest manifest, bool finite, int64_t keptStep) {
  wait();
  std::byte *to = copy_.data();
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].bytes.empty()) // the processes have written it
      continue;
    std::span<const std::byte> bytes = session_.variable(i);
    if (!bytes.empty())
      memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  manifest_ = std::move(manifest);
  finite_ = finite;
  keptStep_ = keptStep;
  {
    std::lock_guard lock(mutex_);
    if (const Status &health = session_.health(); !health.ok()) { // the copy is invalid
      error_ = health;
      return;
    }
    busy_ = true;
  }
  changed_.notify_all();
}

template <typename Number> Status CheckpointWriter::checkNumbersOf(const SafeTensor &tensor) const {
  for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(Number)) {
    Number value;
    memcpy(&value, tensor.bytes.data() + at, sizeof value);
    if (!std::isfinite(value))
      return {MT_INVALID, "variable \"" + tensor.name + "\" holds " + (std::isnan(value) ? "NaN" : "infinity") +
                              " after step " + std::to_string(manifest_.state.step) +
                              ", which would make every resumed run invalid"};
  }
  return {};
}

Status CheckpointWriter::checkNumbers(const SafeTensor &tensor) const {
  return tensor.dtype == MT_F32   ? checkNumbersOf<float>(tensor)
         : tensor.dtype == MT_F64 ? checkNumbersOf<double>(tensor)
                                  : Status();
}

Status CheckpointWriter::checkNumbers() const {
  for (const SafeTensor &tensor : tensors_)
    if (Status status = checkNumbers(tensor); !status.ok())
      return status;
  return {};
}

Status CheckpointWriter::begin(int64_t step, std::string &place) {
  wait();
  if (Status s = folder_.checkRoom(bytes_); !s.ok())
    return s;
  return folder_.begin(step, divided_->file(), place);
}

void CheckpointWriter::abandon(int64_t step, Status why) {
  folder_.abandon(step);
  std::lock_guard lock(mutex_);
  error_ = std::move(why);
}

Status CheckpointWriter::writeTogether() {
  size_t at = 0, digits = hashText({}).size(); // of the next divided tensor in each process's hashes
  auto check = [&](size_t index, std::span<const std::byte> bytes) -> Status {
    uint32_t variable = divided_->variableOf(index);
    if (!session_.divides(variable))
      return {};
    SafeTensor tensor = divided_->file().tensors[index];
    tensor.bytes = bytes;
    for (size_t process = 0; process < hashes_.size(); ++process) {
      Session::Part part = session_.partOf(variable, static_cast<int>(process));
      if (hashes_[process].compare(at, digits, hashText(bytes.data() + part.begin, part.bytes)) != 0)
        return {MT_IO, "expected the part of variable \"" + tensor.name + "\" that process " + std::to_string(process) +
                           " has written, found other bytes in the file"};
    }
    at += digits;
    return keep_.notFinite || finite_ ? Status() : checkNumbers(tensor);
  };
  return folder_.end(manifest_, divided_->file(), check);
}

Status CheckpointWriter::write() {
  try {
    if (Status s = keep_.notFinite || finite_ ? Status() : checkNumbers(); !s.ok())
      return s;
    if (Status s = divided_ ? Status() : folder_.checkRoom(bytes_); !s.ok())
      return s;
    if (Status s = divided_ ? writeTogether() : folder_.write(manifest_, tensors_); !s.ok())
      return s;
    folder_.prune(keep_.newest, keep_.largest, manifest_.monitor, keptStep_);
    return {};
  } catch (const std::bad_alloc &) {
    return {MT_NO_MEMORY, "out of memory"}; // a short text is stored inside the string and needs no memory
  }
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || end_; });
    if (!busy_)
      return;
    lock.unlock();
    Status status = write();
    if (divided_ && !status.ok())
      folder_.abandon(manifest_.state.step);
    lock.lock();
    if (!status.ok())
      error_ = std::move(status);
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace mtrun
