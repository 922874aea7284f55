// SPDX-License-Identifier: Apache-2.0
//
// The batches of a run, in order, assembled ahead by threads of their own. After the constructor nothing is allocated,
// but by decoders of pictures.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/LengthGroups.h"
#include "runtime/data/Order.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun {

// One pointer an entry of the signature: rows of the data, or null (outputs, absent sample weights).
struct Batch {
  std::vector<void *> tensors;
  int64_t rows = 0;             // 0: a resumed epoch had come to its end
  bool last = false;            // of an epoch
  Status status;                // of reading it; the rows of a failed batch mean nothing
  std::vector<uint8_t> damaged; // of data that keeps damaged pictures: 1 where a row is one, of zeros; else empty
};

struct StreamOptions {
  int64_t batch = 0;  // samples a step
  int64_t epochs = 1; // the stream runs through all of them without a pause
  bool shuffle = false;
  bool dropRemainder = false;
  int64_t seed = 0;
  int64_t stepsPerEpoch = 0;       // 0: a pass over the data; else passes follow one another, whatever the epoch
  int64_t epoch = 0, position = 0; // where a resumed run begins: complete epochs, steps of the next one
  int64_t window = 0;              // of the shuffle; 0: all samples
  int readers = 0;                 // threads; 0: one, and for pictures as many as the data says
  int held = 1;                    // batches that stay valid: the last ones that next() gave
  bool allowNan = false;           // values of floats that are not finite may pass
  bool augment = false; // training: flips and crops, as the data's specification says, and a callback's passes
};

// Steps of an epoch of `data` in batches of `batch`; 0: it ends when the data ends, which nobody knows.
int64_t epochSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options);

class BatchStream {
public:
  // `data` must outlive the stream. Throws std::bad_alloc, std::system_error.
  BatchStream(const mtrun_dataset &data, const Binding &binding, const StreamOptions &options);
  BatchStream(const BatchStream &) = delete;
  BatchStream &operator=(const BatchStream &) = delete;
  ~BatchStream(); // at any point: the threads end after the rows that they are working on

  int64_t stepsPerEpoch() const { return steps_; }

  // The next batch, valid until `held` more were taken. Not to be called after the last one of the last epoch.
  const Batch &next();
  // Whether next() would not wait.
  bool ready() const { return produced_.load(std::memory_order_acquire) > taken_; }

  // Seconds that next() waited so far.
  double waited() const { return waited_; }

private:
  struct Slot {
    Batch batch;
    std::vector<int64_t> samples;                 // of the rows, as the columns count them
    std::vector<std::byte *> staged;              // of each column of a callback: as it writes them, or null
    int64_t pass = 0;                             // over the data
    int64_t claimed = 0, filled = 0, failed = -1; // rows; the first that could not be read
  };
  // Rows of a slot that one thread fills.
  struct Part {
    Slot *slot = nullptr;
    int64_t begin = 0, end = 0;
  };

  void allocate(uint64_t rows);
  void start(int threads);
  void stop();
  void produce();
  void produceInOrder();  // of data of unknown length; SourceStream.cpp
  bool claim(Part &part); // false: there is nothing left to do
  void open(Slot &slot);
  void fill(const Part &part);
  // SourceStream.cpp: of a callback.
  Status fillFromSource(const Part &part);
  Status ask(Slot &slot, int64_t begin, mtrun_request request, int64_t &rows) const;
  Status convert(const Slot &slot, int64_t begin, int64_t rows, int64_t first) const;
  void *target(const Slot &slot, size_t entry, int64_t row) const;
  void finish(const Part &part);

  const mtrun_dataset &data_;
  Binding binding_;
  StreamOptions options_;
  bool finite_ = true;    // values must be
  int64_t steps_ = 0;     // an epoch
  int64_t passSteps_ = 0; // a pass over the data
  int64_t partRows_ = 0;  // rows that a thread claims at once
  double waited_ = 0;
  Shuffle order_, nextOrder_;            // of the pass being produced, and the one after it
  std::unique_ptr<LengthGroups> groups_; // of the pass being produced; null: its batches are of any lengths
  std::unique_ptr<std::byte[]> storage_;
  std::vector<Slot> slots_;
  uint64_t taken_ = 0, told_ = 0; // by next(); when the threads were last told of free slots
  std::mutex mutex_;              // of the two that follow, the orders and what slots say of their rows
  int64_t index_ = 0;             // the next batch to open, since the beginning of the run
  uint64_t opened_ = 0;
  std::atomic<uint64_t> produced_{0}, released_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

} // namespace mtrun
