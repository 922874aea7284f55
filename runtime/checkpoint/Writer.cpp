// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Writer.h"

#include "runtime/support/blocked_signals.h"

#include <cmath>
#include <cstring>
#include <new>

namespace mtrun {

CheckpointWriter::CheckpointWriter(const CheckpointFolder &folder, const Session &session, const Keep &keep)
    : folder_(folder), session_(session), keep_(keep) {
  const auto *variables = session.plan().tables().variables();
  size_t bytes = 0;
  for (uint32_t i = 0; variables && i < variables->size(); ++i)
    bytes += session.variableSize(i);
  copy_.resize(bytes);
  bytes = 0;
  for (uint32_t i = 0; variables && i < variables->size(); ++i) {
    const auto &variable = *variables->Get(i);
    std::vector<int64_t> shape;
    if (variable.shape())
      shape.assign(variable.shape()->begin(), variable.shape()->end());
    size_t size = session.variableSize(i);
    tensors_.push_back({variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), std::move(shape),
                        std::span(copy_).subspan(bytes, size)});
    bytes += size;
  }
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

Status CheckpointWriter::checkNumbers() const {
  for (const SafeTensor &tensor : tensors_) {
    Status status = tensor.dtype == MT_F32   ? checkNumbersOf<float>(tensor)
                    : tensor.dtype == MT_F64 ? checkNumbersOf<double>(tensor)
                                             : Status();
    if (!status.ok())
      return status;
  }
  return {};
}

Status CheckpointWriter::write() {
  try {
    if (Status s = keep_.notFinite || finite_ ? Status() : checkNumbers(); !s.ok())
      return s;
    if (Status s = folder_.checkRoom(copy_.size()); !s.ok())
      return s;
    if (Status s = folder_.write(manifest_, tensors_); !s.ok())
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
    lock.lock();
    if (!status.ok())
      error_ = std::move(status);
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace mtrun
