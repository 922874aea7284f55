// SPDX-License-Identifier: Apache-2.0
//
// All-reduces between processes whose devices have host memory: runs the rounds of Exchange.h over a transport. A large
// all-reduce is a sequence of pieces, several of which are in flight at once, so that messages of some pieces overlap
// with sums of others. Messages are sent without blocks of zeros (SparseMessage.h).
#pragma once

#include "runtime/device/Exchange.h"
#include "runtime/device/SparseMessage.h"
#include "runtime/device/Transport.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtrun {

class HostCommunicator {
public:
  // How the communicator notices that it waits in vain.
  struct Watch {
    double timeout = 600;                            // seconds without any message
    std::function<Status()> check;                   // fails if a process is lost; may be empty
    std::function<Status(std::string message)> lose; // informs the other processes of a failure; may be empty
    std::function<std::string(int process)> title;   // names a process for messages; may be empty
  };
  // One all-reduce. partial and result do not overlap; partial may be overwritten.
  struct Reduction {
    int64_t elements;
    int active; // the number of processes with valid rows, at least 1
    float *partial, *result, *staging;
  };
  // out[i] = a[i] + b[i]; `out` may be `a`.
  using Add = std::function<void(const float *a, const float *b, float *out, int64_t elements)>;

  HostCommunicator(Transport &transport, Watch watch, ExchangePlaces places)
      : transport_(transport), watch_(std::move(watch)), places_(std::move(places)) {}

  // Returns the floats of staging memory for an all-reduce of `elements`, and for a reduceScatter().
  static int64_t stagingElements(int64_t elements, const ExchangePlaces &places);
  static int64_t scatterStagingElements(int64_t elements, int processes);

  // Begins and ends one all-reduce. All processes call it for the same all-reduces in the same order, with the same
  // `active`. `sums`: entry `active` of treeSums(). `add` may run while other messages are in flight. The first failure
  // is final: MT_LOST.
  Status allReduce(const Reduction &reduction, const std::vector<TreeSum> &sums, const Add &add);

  // The first half of an all-reduce: only this process's chunk of the result is complete (chunkBegin()).
  Status reduceScatter(const Reduction &reduction, const std::vector<TreeSum> &sums, const Add &add);

  // Memory that this process sends to a peer or receives from it.
  struct Message {
    int peer;
    bool sends;
    std::byte *memory;
    uint64_t bytes;
  };
  // Exchanges messages, whose memory does not overlap. All processes call it after the same all-reduces; a message of
  // one process has an equal one of its peer, and both have the messages between them in one order. MT_LOST.
  Status exchange(std::span<const Message> messages);

  // Returns the bytes of all messages received so far.
  uint64_t received() const { return received_; }

private:
  // The exchanges of one all-reduce. All pieces of the vector but the last have equal sizes, and so equal rounds. The
  // pieces of a reduceScatter() have different rounds, each for a part of every chunk.
  struct Pieces {
    int64_t count = 0, slot = 0; // slot: floats of staging of a piece in flight
    int64_t received = 0;        // floats of the slot for received data; the others are for packed messages
    int64_t advance = 0;         // floats from the begin of a piece to that of the next; 0: the rounds differ
    std::vector<std::vector<ExchangeRound>> lists;
    const std::vector<ExchangeRound> &rounds(int64_t piece) const {
      return advance == 0 ? lists[static_cast<size_t>(piece)] : piece + 1 < count ? lists.front() : lists.back();
    }
  };
  struct Pending {
    int request, peer;
    uint64_t bytes;          // of a message to receive; 0: a message that is sent
    float *memory = nullptr; // of a message that may be packed
  };
  // A piece in flight.
  struct Running {
    const std::vector<ExchangeRound> *rounds = nullptr; // null: none
    size_t round = 0;
    int tag = 0;
    float *partial = nullptr, *result = nullptr, *staging = nullptr;
    float *packed = nullptr; // memory for packed messages of a round
    std::vector<Pending> pending;

    float *at(const ExchangePlace &place) const {
      return (place.memory == ExchangeMemory::Partial  ? partial
              : place.memory == ExchangeMemory::Result ? result
                                                       : staging) +
             place.offset;
    }
  };
  struct Key {
    int64_t elements;
    int active;
    bool scatters;
    auto operator<=>(const Key &) const = default;
  };

  const Pieces &piecesOf(const Reduction &reduction, const std::vector<TreeSum> &sums);
  const Pieces &scatteredPiecesOf(const Reduction &reduction, const std::vector<TreeSum> &sums);
  Status run(const Reduction &reduction, const Pieces &pieces, const Add &add);
  Status startRound(Running &running);
  // Tests the messages of a piece, and goes on to its next round. Sets `progress` if a message or the piece has ended.
  Status advance(Running &running, const Add &add, bool &progress);
  Status testMessages(Running &running, bool &progress);
  // Returns the error that ends a loop that waits: the check of the run, or, after the timeout, the silent processes.
  Status checkWaiting(bool ended) const;
  Status silent() const;
  Status fail(Status why);
  std::string title(int process) const;

  Status runMessages(std::span<const Message> messages);

  Transport &transport_;
  Watch watch_;
  ExchangePlaces places_;
  std::map<Key, Pieces> pieces_;
  static constexpr int64_t maxRunning = 4; // pieces in flight
  Running running_[maxRunning];
  Running messages_; // of exchange()
  std::vector<uint8_t> bits_;
  int tag_ = 0;
  uint64_t received_ = 0;
  Status lost_;
};

} // namespace mtrun
