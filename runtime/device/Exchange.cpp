// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Exchange.h"

#include "runtime/device/Collectives.h"
#include "runtime/support/device_memory.h"

#include <algorithm>
#include <bit>

namespace mtrun {
namespace {

constexpr uint64_t smallBytes = 16 << 10, middleBytes = 1 << 20;
constexpr int manyProcesses = 64;

bool isPowerOfTwo(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

int64_t aligned(int64_t elements) {
  constexpr auto line = static_cast<int64_t>(partAlignment);
  return (elements + line - 1) / line * line;
}

class Builder {
public:
  Builder(const ExchangeShape &shape, const std::vector<TreeSum> &sums)
      : sums_(sums), processes_(shape.processes), process_(shape.process), active_(shape.active),
        elements_(shape.elements) {}

  std::vector<ExchangeRound> gather();
  std::vector<ExchangeRound> doubling();
  std::vector<ExchangeRound> halving();
  std::vector<ExchangeRound> direct();
  ExchangeRound scatter(int64_t begin, int64_t size) const;
  static void keep(std::vector<ExchangeRound> &rounds, ExchangeRound round) {
    if (!round.sends.empty() || !round.receives.empty() || !round.sums.empty() || !round.copies.empty())
      rounds.push_back(std::move(round));
  }

private:
  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  // The part of the vector that this process keeps in round `bit` of halving, and the part of its partner.
  struct Halves {
    Range kept, given;
  };

  bool hasRows(int process) const { return process < active_; }
  // Returns true if the 2^level processes around `process` have rows.
  bool groupHasRows(int process, int level) const { return hasRows(process >> level << level); }
  Range chunk(int process) const {
    return {chunkBegin(elements_, process, processes_), chunkBegin(elements_, process + 1, processes_)};
  }
  void addNodes(ExchangeRound &round, Range range, int64_t stride) const;
  void exchangeHalves(ExchangeRound &round, int bit, const Halves &halves, ExchangeMemory &sum) const;
  Halves halve(Range range, int bit) const;

  const std::vector<TreeSum> &sums_;
  int processes_, process_, active_;
  int64_t elements_;
};

// Adds the partial sums of `range`. The partial sum of process p is at p * `stride` in staging, except for the
// process's own.
void Builder::addNodes(ExchangeRound &round, Range range, int64_t stride) const {
  auto node = [&](int process) {
    return process == process_ ? ExchangePlace{ExchangeMemory::Partial, range.begin}
                               : ExchangePlace{ExchangeMemory::Staging, stride * process};
  };
  ExchangePlace result = {ExchangeMemory::Result, range.begin};
  for (const TreeSum &sum : sums_)
    round.sums.push_back(
        {node(sum.left), node(sum.right), &sum == &sums_.back() ? result : node(sum.left), range.size()});
  if (sums_.empty())
    round.copies.push_back({node(0), result, range.size()});
}

std::vector<ExchangeRound> Builder::gather() {
  ExchangeRound round;
  Range all = {0, elements_};
  int64_t stride = aligned(elements_);
  for (int peer = 0; peer < processes_; ++peer) {
    if (peer == process_)
      continue;
    if (hasRows(process_))
      round.sends.push_back({peer, {ExchangeMemory::Partial, 0}, elements_});
    if (hasRows(peer))
      round.receives.push_back({peer, {ExchangeMemory::Staging, stride * peer}, elements_});
  }
  addNodes(round, all, stride);
  return {std::move(round)};
}

ExchangeRound Builder::scatter(int64_t begin, int64_t size) const {
  auto partOf = [&](int process) {
    Range all = chunk(process);
    int64_t first = std::min(all.begin + begin, all.end);
    return Range{first, std::min(first + size, all.end)};
  };
  ExchangeRound round;
  Range own = partOf(process_);
  int64_t stride =
      exchangeStaging(ExchangeKind::Direct, processes_, std::min(elements_, size * processes_)) / processes_;
  for (int step = 1; step < processes_; ++step) { // each process begins with the next one
    int peer = (process_ + step) % processes_;
    Range theirs = partOf(peer);
    if (hasRows(process_) && theirs.size() > 0)
      round.sends.push_back({peer, {ExchangeMemory::Partial, theirs.begin}, theirs.size()});
    if (hasRows(peer) && own.size() > 0)
      round.receives.push_back({peer, {ExchangeMemory::Staging, stride * peer}, own.size()});
  }
  if (own.size() > 0)
    addNodes(round, own, stride);
  return round;
}

std::vector<ExchangeRound> Builder::direct() {
  ExchangeRound out;
  Range own = chunk(process_);
  for (int step = 1; step < processes_; ++step) {
    int peer = (process_ + step) % processes_;
    Range theirs = chunk(peer);
    if (own.size() > 0)
      out.sends.push_back({peer, {ExchangeMemory::Result, own.begin}, own.size()});
    if (theirs.size() > 0)
      out.receives.push_back({peer, {ExchangeMemory::Result, theirs.begin}, theirs.size()});
  }
  std::vector<ExchangeRound> rounds;
  keep(rounds, scatter(0, elements_));
  keep(rounds, std::move(out));
  return rounds;
}

// Sends the other half of the sum to the partner at distance 2^bit, and adds the partner's data to the kept half. `sum`
// is the memory of this process's sum so far. The groups of the two partners are the two children of a node of the
// tree; a group without rows has no sum.
void Builder::exchangeHalves(ExchangeRound &round, int bit, const Halves &halves, ExchangeMemory &sum) const {
  int partner = process_ ^ (1 << bit);
  bool mine = groupHasRows(process_, bit), theirs = groupHasRows(partner, bit);
  if (mine && halves.given.size() > 0)
    round.sends.push_back({partner, {sum, halves.given.begin}, halves.given.size()});
  if (!theirs)
    return;
  ExchangePlace result = {ExchangeMemory::Result, halves.kept.begin};
  ExchangePlace received = mine ? ExchangePlace{ExchangeMemory::Staging, 0} : result;
  if (halves.kept.size() > 0)
    round.receives.push_back({partner, received, halves.kept.size()});
  ExchangePlace own = {sum, halves.kept.begin};
  if (mine && halves.kept.size() > 0)
    round.sums.push_back(
        {process_ < partner ? own : received, process_ < partner ? received : own, result, halves.kept.size()});
  sum = ExchangeMemory::Result;
}

std::vector<ExchangeRound> Builder::doubling() {
  std::vector<ExchangeRound> rounds;
  ExchangeMemory sum = ExchangeMemory::Partial;
  Range all = {0, elements_};
  for (int bit = 0; 1 << bit < processes_; ++bit) {
    ExchangeRound round;
    exchangeHalves(round, bit, {all, all}, sum);
    keep(rounds, std::move(round));
  }
  if (sum == ExchangeMemory::Partial) // only this process has rows
    keep(rounds, {{}, {}, {}, {{{ExchangeMemory::Partial, 0}, {ExchangeMemory::Result, 0}, elements_}}});
  return rounds;
}

Builder::Halves Builder::halve(Range range, int bit) const {
  int64_t middle = range.begin + aligned(range.size() / 2);
  middle = middle < range.end ? middle : range.end;
  Range low = {range.begin, middle}, high = {middle, range.end};
  return process_ >> bit & 1 ? Halves{high, low} : Halves{low, high};
}

std::vector<ExchangeRound> Builder::halving() {
  std::vector<ExchangeRound> rounds;
  std::vector<Halves> halves;
  ExchangeMemory sum = ExchangeMemory::Partial;
  Range range = {0, elements_};
  for (int bit = 0; 1 << bit < processes_; ++bit) {
    halves.push_back(halve(range, bit));
    range = halves.back().kept;
    ExchangeRound round;
    exchangeHalves(round, bit, halves.back(), sum);
    keep(rounds, std::move(round));
  }
  if (sum == ExchangeMemory::Partial && range.size() > 0)
    keep(rounds,
         {{}, {}, {}, {{{ExchangeMemory::Partial, range.begin}, {ExchangeMemory::Result, range.begin}, range.size()}}});
  for (size_t bit = halves.size(); bit-- > 0;) {
    ExchangeRound round;
    int partner = process_ ^ (1 << bit);
    auto [kept, given] = halves[bit];
    if (kept.size() > 0)
      round.sends.push_back({partner, {ExchangeMemory::Result, kept.begin}, kept.size()});
    if (given.size() > 0)
      round.receives.push_back({partner, {ExchangeMemory::Result, given.begin}, given.size()});
    keep(rounds, std::move(round));
  }
  return rounds;
}

} // namespace

ExchangeKind chooseKind(uint64_t bytes, int processes, bool even) {
  even = even && isPowerOfTwo(processes);
  if (bytes <= smallBytes && (even || processes <= manyProcesses))
    return even ? ExchangeKind::Doubling : ExchangeKind::Gather;
  return even && (bytes <= middleBytes || processes > manyProcesses) ? ExchangeKind::Halving : ExchangeKind::Direct;
}

std::vector<ExchangeRound> exchangeRounds(const ExchangeShape &shape, const std::vector<TreeSum> &sums) {
  if (shape.elements == 0)
    return {};
  Builder builder(shape, sums);
  switch (shape.kind) {
  case ExchangeKind::Gather:
    return builder.gather();
  case ExchangeKind::Doubling:
    return builder.doubling();
  case ExchangeKind::Halving:
    return builder.halving();
  case ExchangeKind::Direct:
    return builder.direct();
  }
  return {};
}

std::vector<ExchangeRound> scatterRounds(const ExchangeShape &shape, const std::vector<TreeSum> &sums, int64_t begin,
                                         int64_t size) {
  std::vector<ExchangeRound> rounds;
  Builder::keep(rounds, Builder(shape, sums).scatter(begin, size));
  return rounds;
}

int64_t exchangeStaging(ExchangeKind kind, int processes, int64_t elements) {
  switch (kind) {
  case ExchangeKind::Gather:
    return aligned(elements) * processes;
  case ExchangeKind::Doubling:
    return aligned(elements);
  case ExchangeKind::Halving:
    return aligned(elements / 2 + 1);
  case ExchangeKind::Direct:
    return static_cast<int64_t>(stagingElements(static_cast<uint64_t>(elements), static_cast<uint64_t>(processes)));
  }
  return 0;
}

} // namespace mtrun
