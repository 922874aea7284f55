// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/HostCommunicator.h"

#include "runtime/support/device_memory.h"
#include "runtime/support/seconds_text.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sched.h>
#include <set>
#include <thread>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t pieceElements = 1 << 20;                // 4 MiB
constexpr int eagerTests = 50;                            // tests before this thread lets others run
constexpr auto lookAround = std::chrono::milliseconds(2); // interval between checks of the other processes
constexpr auto restless = std::chrono::microseconds(100); // waiting time before this thread sleeps between tests
constexpr auto nap = std::chrono::microseconds(20);

// Waits a little more from test to test, and checks at intervals whether waiting is of use.
class Patience {
public:
  explicit Patience(double timeout)
      : limit_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(timeout, 1e6)))) {}

  void progress() { tests_ = 0; }
  // Returns true if it is time to look at the other processes.
  bool wait() {
    if (++tests_ < eagerTests)
      return false;
    auto now = Clock::now();
    if (tests_ == eagerTests) {
      since_ = look_ = now;
      look_ += lookAround;
    }
    if (now - since_ < restless)
      sched_yield();
    else
      std::this_thread::sleep_for(nap);
    if (now < look_)
      return false;
    look_ = now + lookAround;
    return true;
  }
  bool ended() const { return Clock::now() - since_ >= limit_; }

private:
  Clock::duration limit_;
  int tests_ = 0;
  Clock::time_point since_, look_;
};

size_t bytesOf(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

int64_t piecesIn(int64_t elements) { return (elements + pieceElements - 1) / pieceElements; }

int64_t lastPiece(int64_t elements) { return elements - (piecesIn(elements) - 1) * pieceElements; }

// Returns the floats of staging for received data of a piece of a vector.
int64_t receivedOf(int64_t elements, const ExchangePlaces &places) {
  auto stagingOf = [&](int64_t piece) { return exchangeStaging(chooseKind(bytesOf(piece), places), places, piece); };
  return std::max(stagingOf(std::min(elements, pieceElements)), stagingOf(lastPiece(elements)));
}

// Returns the floats for packed messages of a round of a piece: it sends at most the piece, and packed messages have
// half their size.
int64_t packedOf(int64_t elements) {
  int64_t piece = std::min(elements, pieceElements);
  return piece < leastSparse ? 0 : piece / 2;
}

int64_t largestChunk(int64_t elements, int processes) {
  int64_t largest = 0;
  for (int process = 0; process < processes; ++process)
    largest =
        std::max(largest, chunkBegin(elements, process + 1, processes) - chunkBegin(elements, process, processes));
  return largest;
}

// Returns the elements of each chunk in a piece of a reduceScatter().
int64_t partOfChunk(int64_t elements, int processes) {
  constexpr auto line = static_cast<int64_t>(partAlignment);
  return std::min(std::max(pieceElements / processes / line * line, line), largestChunk(elements, processes));
}

int64_t scatteredPiecesIn(int64_t elements, int processes) {
  int64_t part = partOfChunk(elements, processes);
  return (largestChunk(elements, processes) + part - 1) / part;
}

// Packs the messages of a round, one after the other. A process sends its result to all peers, which is packed once.
class Packer {
public:
  explicit Packer(float *memory) : next_(memory) {}

  // Replaces a message by its packed form, if it is shorter.
  void pack(float *&memory, int64_t elements, size_t &bytes) {
    if (memory != from_ || elements != elements_) {
      from_ = memory;
      elements_ = elements;
      to_ = next_;
      bytes_ = packSparse(memory, elements, to_);
      next_ += bytes_ ? elements / 2 : 0;
    }
    if (bytes_) {
      memory = to_;
      bytes = bytes_;
    }
  }

private:
  const float *from_ = nullptr;
  float *to_ = nullptr, *next_;
  int64_t elements_ = 0;
  size_t bytes_ = 0;
};

} // namespace

int64_t HostCommunicator::scatterStagingElements(int64_t elements, int processes) {
  return elements == 0
             ? 0
             : std::min(scatteredPiecesIn(elements, processes), maxRunning) *
                   (exchangeStaging(ExchangeKind::Direct, {processes}, partOfChunk(elements, processes) * processes) +
                    packedOf(partOfChunk(elements, processes) * processes));
}

int64_t HostCommunicator::stagingElements(int64_t elements, const ExchangePlaces &places) {
  return elements == 0 ? 0
                       : std::min(piecesIn(elements), maxRunning) * (receivedOf(elements, places) + packedOf(elements));
}

const HostCommunicator::Pieces &HostCommunicator::piecesOf(const Reduction &reduction,
                                                           const std::vector<TreeSum> &sums) {
  auto [at, isNew] = pieces_.try_emplace({reduction.elements, reduction.active, false});
  Pieces &pieces = at->second;
  if (!isNew || reduction.elements == 0)
    return pieces;
  int processes = transport_.processes();
  auto roundsOf = [&](int64_t elements) {
    ExchangeKind kind = chooseKind(bytesOf(elements), places_);
    return exchangeRounds({kind, processes, transport_.process(), reduction.active, elements, places_.hosts}, sums);
  };
  pieces.count = piecesIn(reduction.elements);
  pieces.received = receivedOf(reduction.elements, places_);
  pieces.slot = pieces.received + packedOf(reduction.elements);
  pieces.advance = pieceElements;
  if (pieces.count > 1)
    pieces.lists.push_back(roundsOf(pieceElements));
  pieces.lists.push_back(roundsOf(lastPiece(reduction.elements)));
  return pieces;
}

const HostCommunicator::Pieces &HostCommunicator::scatteredPiecesOf(const Reduction &reduction,
                                                                    const std::vector<TreeSum> &sums) {
  auto [at, isNew] = pieces_.try_emplace({reduction.elements, reduction.active, true});
  Pieces &pieces = at->second;
  if (!isNew || reduction.elements == 0)
    return pieces;
  int processes = transport_.processes();
  int64_t size = partOfChunk(reduction.elements, processes);
  pieces.count = scatteredPiecesIn(reduction.elements, processes);
  pieces.received = exchangeStaging(ExchangeKind::Direct, {processes}, size * processes);
  pieces.slot = pieces.received + packedOf(size * processes);
  ExchangeShape shape = {ExchangeKind::Direct, processes, transport_.process(), reduction.active, reduction.elements};
  for (int64_t piece = 0; piece < pieces.count; ++piece)
    pieces.lists.push_back(scatterRounds(shape, sums, piece * size, size));
  return pieces;
}

Status HostCommunicator::startRound(Running &running) {
  const ExchangeRound &round = (*running.rounds)[running.round];
  running.pending.clear();
  Packer packer(running.packed);
  auto begin = [&](const ExchangeMessage &message, bool sends) {
    size_t bytes = bytesOf(message.elements);
    float *memory = running.at(message.place);
    Pending pending = {0, message.peer, sends ? 0 : bytes, message.elements < leastSparse ? nullptr : memory};
    if (sends && pending.memory)
      packer.pack(memory, message.elements, bytes);
    Status status = sends ? transport_.send(message.peer, running.tag, memory, bytes, pending.request)
                          : transport_.receive(message.peer, running.tag, memory, bytes, pending.request);
    if (status.ok())
      running.pending.push_back(pending);
    return status;
  };
  for (const ExchangeMessage &message : round.receives)
    if (Status status = begin(message, false); !status.ok())
      return status;
  for (const ExchangeMessage &message : round.sends)
    if (Status status = begin(message, true); !status.ok())
      return status;
  return {};
}

Status HostCommunicator::testMessages(Running &running, bool &progress) {
  for (size_t i = 0; i < running.pending.size();) {
    bool done = false;
    const Pending &pending = running.pending[i];
    size_t bytes = pending.bytes;
    if (Status status = transport_.test(pending.request, done, pending.memory ? &bytes : nullptr); !status.ok())
      return status;
    if (!done) {
      ++i;
      continue;
    }
    if (bytes != pending.bytes &&
        !unpackSparse(pending.memory, static_cast<int64_t>(pending.bytes / sizeof(float)), bytes, bits_))
      return {MT_LOST, "expected a message of " + std::to_string(pending.bytes) + " bytes from " + title(pending.peer) +
                           ", found " + std::to_string(bytes)};
    received_ += bytes;
    running.pending[i] = running.pending.back();
    running.pending.pop_back();
    progress = true;
  }
  return {};
}

Status HostCommunicator::advance(Running &running, const Add &add, bool &progress) {
  while (running.round < running.rounds->size()) {
    if (Status status = testMessages(running, progress); !status.ok() || !running.pending.empty())
      return status;
    const ExchangeRound &round = (*running.rounds)[running.round];
    for (const ExchangeSum &sum : round.sums)
      add(running.at(sum.left), running.at(sum.right), running.at(sum.out), sum.elements);
    for (const ExchangeCopy &copy : round.copies)
      std::memcpy(running.at(copy.to), running.at(copy.from), bytesOf(copy.elements));
    progress = true;
    if (++running.round < running.rounds->size())
      if (Status status = startRound(running); !status.ok())
        return status;
  }
  running.rounds = nullptr;
  return {};
}

Status HostCommunicator::run(const Reduction &reduction, const Pieces &pieces, const Add &add) {
  Patience patience(watch_.timeout);
  for (int64_t next = 0, left = pieces.count; left > 0;) {
    bool progress = false;
    for (int64_t slot = 0; slot < maxRunning; ++slot) {
      Running &running = running_[slot];
      if (!running.rounds && next < pieces.count) {
        running.rounds = &pieces.rounds(next);
        running.round = 0;
        running.tag = tag_;
        running.partial = reduction.partial + next * pieces.advance;
        running.result = reduction.result + next * pieces.advance;
        running.staging = reduction.staging + slot * pieces.slot;
        running.packed = running.staging + pieces.received;
        tag_ = tag_ == Transport::maxTag ? 0 : tag_ + 1;
        ++next;
        if (!running.rounds->empty())
          if (Status status = startRound(running); !status.ok())
            return status;
      }
      if (!running.rounds)
        continue;
      if (Status status = advance(running, add, progress); !status.ok())
        return status;
      left -= !running.rounds;
    }
    if (progress) {
      patience.progress();
      continue;
    }
    if (left == 0 || !patience.wait())
      continue;
    if (Status status = checkWaiting(patience.ended()); !status.ok())
      return status;
  }
  return {};
}

Status HostCommunicator::checkWaiting(bool ended) const {
  if (watch_.check)
    if (Status status = watch_.check(); !status.ok())
      return status;
  return ended ? silent() : Status();
}

std::string HostCommunicator::title(int process) const {
  return watch_.title ? watch_.title(process) : "process " + std::to_string(process);
}

// Names the processes whose messages this process waits for; if there are none, the processes that take none.
Status HostCommunicator::silent() const {
  std::set<int> senders, takers;
  auto look = [&](const Running &running) {
    for (const Pending &pending : running.pending)
      (pending.bytes ? senders : takers).insert(pending.peer);
  };
  std::for_each(std::begin(running_), std::end(running_), look);
  look(messages_);
  std::string names;
  for (int process : senders.empty() ? takers : senders)
    names += (names.empty() ? "" : ", ") + title(process);
  return {MT_LOST, names + " was lost: it " + (senders.empty() ? "received" : "sent") + " nothing for " +
                       secondsText(watch_.timeout)};
}

Status HostCommunicator::fail(Status why) {
  transport_.abandon();
  for (Running &running : running_)
    running = {};
  messages_ = {};
  lost_ = std::move(why);
  if (watch_.lose)
    lost_ = watch_.lose(lost_.message());
  return lost_;
}

Status HostCommunicator::runMessages(std::span<const Message> messages) {
  constexpr uint64_t longest = 1 << 30; // a transport has a limit for its messages
  messages_.pending.clear();
  for (const Message &message : messages)
    for (uint64_t at = 0; at < message.bytes; at += longest) {
      uint64_t bytes = std::min(longest, message.bytes - at);
      Pending pending = {0, message.peer, message.sends ? 0 : bytes};
      Status status = message.sends
                          ? transport_.send(message.peer, tag_, message.memory + at, bytes, pending.request)
                          : transport_.receive(message.peer, tag_, message.memory + at, bytes, pending.request);
      if (!status.ok())
        return status;
      messages_.pending.push_back(pending);
    }
  tag_ = tag_ == Transport::maxTag ? 0 : tag_ + 1;
  Patience patience(watch_.timeout);
  while (!messages_.pending.empty()) {
    bool progress = false;
    if (Status status = testMessages(messages_, progress); !status.ok())
      return status;
    if (progress)
      patience.progress();
    if (progress || !patience.wait())
      continue;
    if (Status status = checkWaiting(patience.ended()); !status.ok())
      return status;
  }
  return {};
}

Status HostCommunicator::exchange(std::span<const Message> messages) {
  if (!lost_.ok())
    return lost_;
  Status status = runMessages(messages);
  return status.ok() ? status : fail(std::move(status));
}

Status HostCommunicator::reduceScatter(const Reduction &reduction, const std::vector<TreeSum> &sums, const Add &add) {
  if (!lost_.ok())
    return lost_;
  Status status = run(reduction, scatteredPiecesOf(reduction, sums), add);
  return status.ok() ? status : fail(std::move(status));
}

Status HostCommunicator::allReduce(const Reduction &reduction, const std::vector<TreeSum> &sums, const Add &add) {
  if (!lost_.ok())
    return lost_;
  Status status = run(reduction, piecesOf(reduction, sums), add);
  return status.ok() ? status : fail(std::move(status));
}

} // namespace mtrun
