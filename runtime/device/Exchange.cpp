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
      exchangeStaging(ExchangeKind::Direct, {processes_}, std::min(elements_, size * processes_)) / processes_;
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

// A cell is a range of the vector that lies in the chunk of one process on each host. Between hosts the processes of a
// cell exchange it directly, each for a slice of it.
class HostFirst {
public:
  HostFirst(const ExchangeShape &shape, const std::vector<TreeSum> &sums)
      : process_(shape.process), active_(shape.active), elements_(shape.elements), sums_(sums) {
    for (int processes : shape.hosts)
      first_.push_back(first_.back() + processes);
    host_ = hostOf(process_);
  }

  std::vector<ExchangeRound> rounds() const {
    std::vector<ExchangeRound> rounds;
    for (ExchangeRound round : {inside(), between(), betweenResults(), insideResults()})
      Builder::keep(rounds, std::move(round));
    return rounds;
  }

private:
  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  int hosts() const { return static_cast<int>(first_.size()) - 1; }
  int hostOf(int process) const {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), process) - first_.begin()) - 1;
  }
  int size(int host) const { return first_[static_cast<size_t>(host) + 1] - first_[static_cast<size_t>(host)]; }
  bool hasRows(int host) const { return first_[static_cast<size_t>(host)] < active_; }
  // The part of the vector that a process adds for its host.
  Range chunk(int process) const {
    int host = hostOf(process), local = process - first_[static_cast<size_t>(host)];
    return {chunkBegin(elements_, local, size(host)), chunkBegin(elements_, local + 1, size(host))};
  }
  // The process of a host whose chunk has the element.
  int holder(int host, int64_t element) const {
    int process = first_[static_cast<size_t>(host)];
    while (chunk(process).end <= element)
      ++process;
    return process;
  }
  // The cells in this process's chunk.
  std::vector<Range> cells() const {
    Range own = chunk(process_);
    std::vector<int64_t> ends = {own.end};
    for (int process = 0; process < first_.back(); ++process)
      if (int64_t end = chunk(process).end; own.begin < end && end < own.end)
        ends.push_back(end);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::vector<Range> cells;
    for (int64_t begin = own.begin; int64_t end : ends) {
      if (begin < end)
        cells.push_back({begin, end});
      begin = end;
    }
    return cells;
  }
  Range slice(Range cell, int host) const {
    return {cell.begin + chunkBegin(cell.size(), host, hosts()),
            cell.begin + chunkBegin(cell.size(), host + 1, hosts())};
  }

  // Adds `sums` of `range`. `places`: where the summands are; the result goes to Result.
  template <typename Places>
  static void addSums(ExchangeRound &round, Range range, const std::vector<TreeSum> &sums, const Places &places) {
    for (const TreeSum &sum : sums)
      round.sums.push_back(
          {places(sum.left), places(sum.right),
           &sum == &sums.back() ? ExchangePlace{ExchangeMemory::Result, range.begin} : places(sum.left), range.size()});
  }

  // Each process receives its chunk of the other processes of the host.
  ExchangeRound inside() const {
    ExchangeRound round;
    Range own = chunk(process_);
    int begin = first_[static_cast<size_t>(host_)], end = first_[static_cast<size_t>(host_) + 1];
    int64_t stride = aligned(elements_ / size(host_) + 2 * static_cast<int64_t>(partAlignment));
    for (int step = 1; step < end - begin; ++step) { // each process begins with the next one
      int peer = begin + (process_ - begin + step) % (end - begin);
      Range theirs = chunk(peer);
      if (process_ < active_ && theirs.size() > 0)
        round.sends.push_back({peer, {ExchangeMemory::Partial, theirs.begin}, theirs.size()});
      if (peer < active_ && own.size() > 0)
        round.receives.push_back({peer, {ExchangeMemory::Staging, stride * (peer - begin)}, own.size()});
    }
    if (own.size() == 0 || !hasRows(host_))
      return round;
    auto place = [&](int process) {
      return process == process_ ? ExchangePlace{ExchangeMemory::Partial, own.begin}
                                 : ExchangePlace{ExchangeMemory::Staging, stride * (process - begin)};
    };
    std::vector<TreeSum> sums;
    for (const TreeSum &sum : sums_)
      if (hostOf(sum.left) == host_ && hostOf(sum.right) == host_)
        sums.push_back(sum);
    addSums(round, own, sums, place);
    if (sums.empty())
      round.copies.push_back({place(begin), {ExchangeMemory::Result, own.begin}, own.size()});
    return round;
  }

  // Each process receives its slices of the other hosts' sums.
  ExchangeRound between() const {
    ExchangeRound round;
    std::vector<TreeSum> sums;
    for (const TreeSum &sum : sums_)
      if (hostOf(sum.left) != hostOf(sum.right))
        sums.push_back({hostOf(sum.left), hostOf(sum.right)});
    int64_t staged = 0;
    for (Range cell : cells()) {
      Range own = slice(cell, host_);
      int64_t stride = aligned(own.size()), from = staged;
      for (int step = 1; step < hosts(); ++step) {
        int host = (host_ + step) % hosts(), peer = holder(host, cell.begin);
        Range theirs = slice(cell, host);
        if (hasRows(host_) && theirs.size() > 0)
          round.sends.push_back({peer, {ExchangeMemory::Result, theirs.begin}, theirs.size()});
        if (hasRows(host) && own.size() > 0)
          round.receives.push_back({peer, {ExchangeMemory::Staging, from + stride * host}, own.size()});
      }
      staged += stride * hosts();
      auto place = [&](int host) {
        return host == host_ ? ExchangePlace{ExchangeMemory::Result, own.begin}
                             : ExchangePlace{ExchangeMemory::Staging, from + stride * host};
      };
      if (own.size() == 0)
        continue;
      addSums(round, own, sums, place);
      if (sums.empty() && host_ != 0)
        round.copies.push_back({place(0), {ExchangeMemory::Result, own.begin}, own.size()});
    }
    return round;
  }

  ExchangeRound betweenResults() const {
    ExchangeRound round;
    for (Range cell : cells())
      for (int step = 1; step < hosts(); ++step) {
        int host = (host_ + step) % hosts(), peer = holder(host, cell.begin);
        if (Range own = slice(cell, host_); own.size() > 0)
          round.sends.push_back({peer, {ExchangeMemory::Result, own.begin}, own.size()});
        if (Range theirs = slice(cell, host); theirs.size() > 0)
          round.receives.push_back({peer, {ExchangeMemory::Result, theirs.begin}, theirs.size()});
      }
    return round;
  }

  ExchangeRound insideResults() const {
    ExchangeRound round;
    Range own = chunk(process_);
    int begin = first_[static_cast<size_t>(host_)], devices = size(host_);
    for (int step = 1; step < devices; ++step) {
      int peer = begin + (process_ - begin + step) % devices;
      if (own.size() > 0)
        round.sends.push_back({peer, {ExchangeMemory::Result, own.begin}, own.size()});
      if (Range theirs = chunk(peer); theirs.size() > 0)
        round.receives.push_back({peer, {ExchangeMemory::Result, theirs.begin}, theirs.size()});
    }
    return round;
  }

  int process_, active_, host_ = 0;
  int64_t elements_;
  const std::vector<TreeSum> &sums_;
  std::vector<int> first_ = {0}; // the first process of each host, and the number of processes
};

} // namespace

ExchangeKind chooseKind(uint64_t bytes, const ExchangePlaces &places) {
  int processes = places.processes;
  bool even = places.even && isPowerOfTwo(processes);
  if (bytes > smallBytes && places.hosts.size() > 1 && places.hosts.size() < static_cast<size_t>(processes))
    return ExchangeKind::HostFirst;
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
  case ExchangeKind::HostFirst:
    return HostFirst(shape, sums).rounds();
  }
  return {};
}

std::vector<ExchangeRound> scatterRounds(const ExchangeShape &shape, const std::vector<TreeSum> &sums, int64_t begin,
                                         int64_t size) {
  std::vector<ExchangeRound> rounds;
  Builder::keep(rounds, Builder(shape, sums).scatter(begin, size));
  return rounds;
}

// Inside a host a process stages its chunk of each other process; between hosts it stages its slices of each cell,
// whose sizes are rounded up. Each process of each other host may end a cell.
static int64_t hostFirstStaging(const std::vector<int> &hosts, int64_t elements) {
  constexpr auto line = static_cast<int64_t>(partAlignment);
  auto count = static_cast<int64_t>(hosts.size());
  int64_t processes = 0, most = 0;
  for (int size : hosts)
    processes += size;
  for (int size : hosts) {
    int64_t chunk = elements / size + 2 * line;
    most = std::max({most, aligned(chunk) * size, chunk + processes * count * 2 * line});
  }
  return most;
}

int64_t exchangeStaging(ExchangeKind kind, const ExchangePlaces &places, int64_t elements) {
  int processes = places.processes;
  switch (kind) {
  case ExchangeKind::Gather:
    return aligned(elements) * processes;
  case ExchangeKind::Doubling:
    return aligned(elements);
  case ExchangeKind::Halving:
    return aligned(elements / 2 + 1);
  case ExchangeKind::Direct:
    return static_cast<int64_t>(stagingElements(static_cast<uint64_t>(elements), static_cast<uint64_t>(processes)));
  case ExchangeKind::HostFirst:
    return hostFirstStaging(places.hosts, elements);
  }
  return 0;
}

} // namespace mtrun
