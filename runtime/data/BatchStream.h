// SPDX-License-Identifier: Apache-2.0
//
// Assembles the batches of a run in order, ahead of time, in separate threads. After the constructor only decoders of
// pictures allocate memory.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/LengthGroups.h"
#include "runtime/data/Order.h"
#include "runtime/data/RowDigests.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun {

// A batch: one pointer per entry of the signature, to rows of the data; null for outputs and absent sample weights.
struct Batch {
  std::vector<void *> tensors;
  int64_t rows = 0;  // 0: a resumed epoch has no samples left
  bool last = false; // true for the last batch of an epoch
  Status status;     // error of reading the batch; the rows of a failed batch are invalid
  // if the data keeps damaged pictures: 1 for each row of a damaged picture, which is all zeros; else empty
  std::vector<uint8_t> damaged;
  // The rows [begin, end) are the samples; the others are undefined. In a stream of all rows, 0 and `rows`; also if a
  // callback gave more than its process needs.
  int64_t begin = 0, end = 0;
  std::vector<Digest> digests; // if StreamOptions::hashed is not empty: of each row; others than these are undefined
};

struct StreamOptions {
  int64_t batch = 0;  // samples per step
  int64_t epochs = 1; // number of epochs of the stream, without a pause between them
  bool shuffle = false;
  bool dropRemainder = false;
  int64_t seed = 0;
  int64_t stepsPerEpoch = 0;       // 0: one pass over the data; else passes follow each other independently of epochs
  int64_t epoch = 0, position = 0; // position of a resumed run: completed epochs, and steps of the next epoch
  int64_t window = 0;              // size of the shuffle window; 0: all samples
  int readers = 0;                 // number of threads; 0: one, or for pictures the number that the data specifies
  int held = 1;                    // number of the latest batches from next() that stay valid
  bool allowNan = false;           // accept floats that are not finite
  // The rows of a batch that this process needs. Samples of other rows are neither read nor decoded. All processes have
  // the order of all samples, which is a function of the seed and the epoch.
  int64_t firstRow = 0, needed = INT64_MAX;
  RowRange hashed = {}; // rows of each batch to hash
  // training: apply the flips and crops of the data's specification, and tell a callback that it is training
  bool augment = false;
};

// Returns the number of steps per epoch for batches of `batch` samples; 0 if the length of the data is unknown.
int64_t epochSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options);

class BatchStream {
public:
  // `data` must outlive the stream. Throws std::bad_alloc and std::system_error.
  BatchStream(const mtrun_dataset &data, const Binding &binding, const StreamOptions &options);
  BatchStream(const BatchStream &) = delete;
  BatchStream &operator=(const BatchStream &) = delete;
  ~BatchStream(); // may run at any time; the threads finish their current rows first

  int64_t stepsPerEpoch() const { return steps_; }

  // Returns the next batch, which is valid until `held` more batches are taken. Must not be called after the last batch
  // of the last epoch.
  const Batch &next();
  // Returns true if next() would not wait.
  bool ready() const { return produced_.load(std::memory_order_acquire) > taken_; }

  // Returns the seconds that next() has waited so far.
  double waited() const { return waited_; }

  // Returns what the stream has read so far, batches ahead of next() included.
  ReadCount &read() { return read_; }

private:
  struct Slot {
    Batch batch;
    std::vector<int64_t> samples; // indices of the rows' samples in the columns
    // with a callback: by column, the buffer that the callback writes, or null
    std::vector<std::byte *> staged;
    int64_t pass = 0;                             // number of the pass over the data
    int64_t begin = 0, end = 0;                   // the rows that this process needs
    int64_t claimed = 0, filled = 0, failed = -1; // rows; `failed`: the first row that could not be read
  };
  // The rows of a slot that one thread fills.
  struct Part {
    Slot *slot = nullptr;
    int64_t begin = 0, end = 0;
  };

  void allocate(uint64_t rows);
  void start(int threads);
  void stop();
  void produce();
  void produceInOrder();  // reads data of unknown length; defined in SourceStream.cpp
  bool claim(Part &part); // false: there are no rows left
  void open(Slot &slot);
  void takeOwnRows(Slot &slot) const; // sets the rows of the batch that this process needs
  void publish();                     // makes the batches that are complete known to next()
  void fill(const Part &part);
  // In SourceStream.cpp: reading from a callback.
  Status fillFromSource(const Part &part);
  // `ownOnly`: the callback wrote only the rows that this process needs.
  Status ask(Slot &slot, int64_t begin, mtrun_request request, int64_t &rows, bool &ownOnly);
  Status convert(const Slot &slot, int64_t begin, int64_t rows, int64_t first) const;
  void *target(const Slot &slot, size_t entry, int64_t row) const;
  void finish(const Part &part);

  const mtrun_dataset &data_;
  Binding binding_;
  StreamOptions options_;
  bool finite_ = true;    // refuse values that are not finite
  int64_t steps_ = 0;     // per epoch
  int64_t passSteps_ = 0; // per pass over the data
  int64_t partRows_ = 0;  // number of rows that a thread claims at once
  double waited_ = 0;
  Shuffle order_, nextOrder_;            // orders of the current and of the next pass
  std::unique_ptr<RowDigests> digests_;  // null: no rows are hashed
  std::unique_ptr<LengthGroups> groups_; // groups of the current pass; null: batches are not grouped by length
  std::unique_ptr<std::byte[]> storage_;
  std::vector<Slot> slots_;
  uint64_t taken_ = 0, wokenAt_ = 0; // batches taken by next(); value of taken_ when threads were last woken
  std::mutex mutex_;                 // guards index_, opened_, the orders and the row counts of slots
  int64_t index_ = 0;                // number of the next batch to open, from the beginning of the run
  uint64_t opened_ = 0;
  std::atomic<uint64_t> produced_{0}, released_{0};
  std::atomic<bool> stop_{false};
  ReadCount read_;
  int64_t sampleBytes_ = 0; // of a sample from a callback
  std::vector<std::thread> threads_;
};

} // namespace mtrun
