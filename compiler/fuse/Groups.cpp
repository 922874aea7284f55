// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/Groups.h"
#include "dialects/mt/Attention.h"
#include "dialects/mt/Compilation.h"

#include <queue>

namespace mtc {

using namespace mlir;
using mt::KernelKind;

std::optional<unsigned> Groups::unitOf(Operation *op) const {
  auto found = unitOfOp.find(op);
  return found == unitOfOp.end() ? std::nullopt : std::optional(found->second);
}

std::optional<unsigned> Groups::producer(Value value) const {
  return value.getDefiningOp() ? unitOf(value.getDefiningOp()) : std::nullopt;
}

const Groups::Edges &Groups::successors(unsigned unit) const {
  known.resize(units.size());
  if (!known[unit])
    known[unit] = findSuccessors(unit);
  return *known[unit];
}

Groups::Edges Groups::findSuccessors(unsigned unit) const {
  Edges result;
  auto addUsers = [&](Operation *op) {
    for (Operation *user : users(op))
      if (std::optional<unsigned> to = unitOf(user); to && *to != unit)
        result.insert(*to);
  };
  for (Operation *op : units[unit].ops) {
    addUsers(op);
    for (Operation *later : nextTurn(op))
      if (std::optional<unsigned> to = unitOf(later); to && *to != unit)
        result.insert(*to);
    if (std::optional<int64_t> bucket = mt::bucketOf(op))
      for (auto [other, allReduce] : allReduces)
        if (other >= *bucket)
          addUsers(allReduce);
  }
  return result;
}

void Groups::rankUnits() const {
  std::vector<unsigned> waiting(units.size(), 0), ready;
  for (unsigned unit = 0; unit < units.size(); ++unit)
    for (unsigned next : successors(unit))
      ++waiting[next];
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (waiting[unit] == 0)
      ready.push_back(unit);
  rank.assign(units.size(), 0);
  for (size_t i = 0; i < ready.size(); ++i) {
    rank[ready[i]] = i;
    for (unsigned next : successors(ready[i]))
      if (--waiting[next] == 0)
        ready.push_back(next);
  }
  ranked = std::move(ready);
}

void Groups::forgetGraph() {
  known.clear();
  rank.clear();
  ranked.clear();
  between.clear();
}

// The order stays one when two units are about to become one: between them, what follows the first moves behind both.
void Groups::joinRanks(unsigned into, unsigned from) {
  if (rank.empty())
    return;
  unsigned first = std::min(rank[into], rank[from]), last = std::max(rank[into], rank[from]);
  llvm::SmallSetVector<unsigned, 32> later;
  auto visit = [&](unsigned next) {
    if (rank[next] < last)
      later.insert(next);
  };
  llvm::for_each(successors(ranked[first]), visit);
  for (size_t i = 0; i < later.size(); ++i)
    llvm::for_each(successors(later[i]), visit);
  unsigned at = first;
  auto place = [&](unsigned unit) {
    ranked[at] = unit;
    rank[unit] = at++;
  };
  SmallVector<unsigned> between(ranked.begin() + first, ranked.begin() + last + 1);
  for (unsigned unit : between)
    if (unit != into && unit != from && !later.contains(unit))
      place(unit);
  place(into);
  for (unsigned unit : between)
    if (later.contains(unit))
      place(unit);
  place(from); // empty from now on
}

// Is there a path `from` -> other unit -> `to`?
bool Groups::hasIndirectPath(unsigned from, unsigned to) const {
  if (Operation *op = between.lookup({from, to}))
    if (unsigned unit = *unitOf(op); unit != from && unit != to)
      return true;
  if (rank.empty())
    rankUnits();
  llvm::SmallSetVector<unsigned, 32> seen;
  // Ranks ascend along a path.
  auto visit = [&](unsigned next) {
    if (rank[next] < rank[to])
      seen.insert(next);
  };
  if (rank[from] < rank[to])
    llvm::for_each(successors(from), visit);
  for (size_t i = 0; i < seen.size(); ++i)
    for (unsigned next : successors(seen[i])) {
      if (next == to) {
        between[{from, to}] = units[seen[i]].ops.front();
        return true;
      }
      visit(next);
    }
  return false;
}

// The same of a unit and each of `others`, in either direction: by one pass over the units whose ranks lie between,
// which asking about each alone would make for each.
std::vector<bool> Groups::haveIndirectPath(unsigned unit, ArrayRef<unsigned> others) const {
  if (rank.empty())
    rankUnits();
  unsigned least = rank[unit], most = rank[unit];
  for (unsigned other : others) {
    least = std::min(least, rank[other]);
    most = std::max(most, rank[other]);
  }
  std::vector<bool> result(units.size()), after(units.size()), before(units.size());
  for (unsigned next : successors(unit))
    after[next] = true;
  for (unsigned r = rank[unit] + 1; r <= most; ++r)
    if (unsigned at = ranked[r]; after[at])
      for (unsigned next : successors(at))
        after[next] = result[next] = true;
  for (unsigned r = rank[unit]; r-- > least;) {
    unsigned at = ranked[r];
    for (unsigned next : successors(at)) {
      result[at] = result[at] || before[next];
      before[at] = before[at] || before[next] || next == unit;
    }
  }
  return result;
}

// The size of kernels is bounded, and with it the stack that one takes and the time to make and to compile it.
bool Groups::fitTogether(unsigned a, unsigned b) const {
  constexpr size_t maxOps = 200;
  bool otherTurns = units[a].turn && units[b].turn && *units[a].turn != *units[b].turn;
  return a != b && !otherTurns && units[a].ops.size() + units[b].ops.size() <= maxOps;
}

bool Groups::canMerge(unsigned a, unsigned b) const {
  return fitTogether(a, b) && !hasIndirectPath(a, b) && !hasIndirectPath(b, a);
}

// Edges to and from `from` become those of `into`.
void Groups::redirectEdges(unsigned into, unsigned from) {
  known.resize(units.size());
  auto redirect = [&](unsigned unit) {
    if (known[unit] && known[unit]->erase(from))
      known[unit]->insert(into);
  };
  for (Operation *op : units[from].ops)
    for (Value operand : op->getOperands())
      if (std::optional<unsigned> before = producer(operand))
        redirect(*before);
  for (auto [bucket, allReduce] : allReduces)
    redirect(*unitOf(allReduce));
  if (known[into] && known[from])
    known[into]->insert(known[from]->begin(), known[from]->end());
  else
    known[into].reset();
  if (known[into])
    known[into]->erase(into);
  known[from].reset();
}

void Groups::merge(unsigned into, unsigned from) {
  joinRanks(into, from);
  redirectEdges(into, from);
  std::vector<Operation *> &ops = units[into].ops;
  for (Operation *op : units[from].ops)
    unitOfOp[op] = into;
  std::vector<Operation *> both(ops.size() + units[from].ops.size());
  std::merge(ops.begin(), ops.end(), units[from].ops.begin(), units[from].ops.end(), both.begin(),
             [&](Operation *a, Operation *b) { return position.at(a) < position.at(b); });
  ops = std::move(both);
  units[into].reductionDepth = std::max(units[into].reductionDepth, units[from].reductionDepth);
  units[into].livesByLine.reset();
  units[into].afterProduct |= units[from].afterProduct;
  units[into].early |= units[from].early;
  units[from].ops.clear();
  if (!units[into].turn)
    units[into].turn = units[from].turn;
  if (units[into].turn)
    forgetGraph(); // edges from turn to turn are not kept up to date
}

llvm::SmallSetVector<unsigned, 8> Groups::neighbours(unsigned unit) const {
  llvm::SmallSetVector<unsigned, 8> result;
  llvm::SmallDenseSet<Operation *, 8> asked; // a value that many ops of the unit read is asked once
  auto addReaders = [&](Operation *op) {
    if (!asked.insert(op).second)
      return;
    for (Operation *user : users(op))
      if (std::optional<unsigned> other = unitOf(user); other && *other != unit)
        result.insert(*other);
  };
  for (Operation *op : units[unit].ops)
    for (Value operand : op->getOperands()) {
      if (isCheap(operand))
        continue;
      if (std::optional<unsigned> from = producer(operand); from && *from != unit)
        result.insert(*from);
      // Units that read the same scalar have nothing in common.
      if (cast<RankedTensorType>(operand.getType()).getRank() != 0)
        addReaders(operand.getDefiningOp());
    }
  llvm::for_each(units[unit].ops, addReaders);
  return result;
}

// Merges units of a kind with their neighbours until nothing changes.
void Groups::mergeNeighbours(KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed) {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    bool changed = units[unit].kind == kind && !units[unit].ops.empty();
    while (changed) {
      llvm::SmallSetVector<unsigned, 8> others = neighbours(unit);
      std::vector<bool> apart; // found for all of them when it is asked of the first
      auto *found = llvm::find_if(others, [&](unsigned other) {
        if (units[other].kind != kind || !fitTogether(unit, other))
          return false;
        if (apart.empty())
          apart = haveIndirectPath(unit, others.getArrayRef());
        return !apart[other] && allowed(unit, other);
      });
      changed = found != others.end();
      if (changed)
        merge(unit, *found);
    }
  }
}

// Prepare.cpp made one of these for each user, so that none is stored.
static bool isRepeated(Operation *op) {
  auto split = llvm::find_if(op->getOperands(), [](Value value) { return mt::isSplit(value.getType()); });
  if (!op->hasOneUse() || split == op->operand_end())
    return false;
  auto repeats = [&](Operation *other) { return other != op && sameComputation(op, other); };
  return llvm::any_of(truncated(*split).getUsers(), [&](Operation *reader) {
    bool extends = reader->getNumResults() == 1 && extendedFrom(reader->getResult(0));
    return repeats(reader) || (extends && llvm::any_of(reader->getUsers(), repeats));
  });
}

// From the end, so that what extends an operand of a repeated op follows it.
void Groups::joinRepeated() {
  for (Operation &op : llvm::reverse(*body)) {
    std::optional<unsigned> unit = unitOf(&op);
    if (!unit || units[*unit].kind != KernelKind::rows || units[*unit].ops.size() != 1)
      continue;
    if (!isRepeated(&op) && !(op.hasOneUse() && extendedFrom(op.getResult(0))))
      continue;
    std::optional<unsigned> user = unitOf(*op.user_begin());
    if (user && units[*user].kind == KernelKind::rows)
      merge(*user, *unit);
  }
}

void Groups::fuseRows(bool images) {
  joinRepeated();
  // What works by line first: sums over the lines, which read the same values, would take ops away from it.
  mergeNeighbours(KernelKind::rows, [&](unsigned a, unsigned b) {
    return (livesByLine(a) || livesByLine(b)) && mayShareRows(a, b, images);
  });
  mergeNeighbours(KernelKind::rows, [&](unsigned a, unsigned b) { return mayShareRows(a, b, images); });
}

void Groups::fuseMaps() {
  mergeNeighbours(KernelKind::elementwise, [&](unsigned a, unsigned b) {
    auto shape = [&](unsigned unit) {
      return cast<RankedTensorType>(units[unit].ops.front()->getResult(0).getType()).getShape();
    };
    return shape(a) == shape(b) && !shape(a).empty();
  });
}

// Neither has what the other has.
static bool canShareScores(const Unit &a, const Unit &b) {
  auto wordOf = [](Operation *op) {
    auto gradient = dyn_cast<mt::AttentionGradientOp>(op);
    return std::pair(op->getName(), gradient ? static_cast<int>(gradient.getOf()) : 0);
  };
  return llvm::all_of(a.ops, [&](Operation *op) {
    return llvm::all_of(b.ops, [&](Operation *other) {
      return mt::isSameAttention(op, other) && wordOf(op) != wordOf(other);
    });
  });
}

// An attention and its log sums; the gradients of one attention: they have the scores in common.
void Groups::fuseAttention() {
  for (KernelKind kind : {KernelKind::attention, KernelKind::attention_gradient}) {
    std::vector<unsigned> attentions = unitsOf(kind);
    for (auto [i, a] : llvm::enumerate(attentions))
      for (unsigned b : ArrayRef(attentions).drop_front(i + 1))
        if (!units[a].ops.empty() && !units[b].ops.empty() && canShareScores(units[a], units[b]) && canMerge(a, b))
          merge(a, b);
  }
}

static std::optional<int64_t> bucketOf(const Unit &unit) {
  for (Operation *op : unit.ops)
    for (Operation *user : op->getUsers())
      if (std::optional<int64_t> bucket = mt::bucketOf(user))
        return bucket;
  return std::nullopt;
}

std::vector<unsigned> Groups::unitsOf(KernelKind kind) const {
  std::vector<unsigned> result;
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (units[unit].kind == kind && !units[unit].ops.empty())
      result.push_back(unit);
  return result;
}

// Sums that leave in the same bucket are needed at the same time.
void Groups::fuseReductions() {
  std::vector<unsigned> reductions = unitsOf(KernelKind::reduce);
  for (auto [i, a] : llvm::enumerate(reductions))
    for (unsigned b : ArrayRef(reductions).drop_front(i + 1))
      if (!units[a].ops.empty() && !units[b].ops.empty() && bucketOf(units[a]) == bucketOf(units[b]) && canMerge(a, b))
        merge(a, b);
}

// Scalars between the same two all-reduces share a kernel, related or not; larger values only with their neighbours.
void Groups::fuseWhole() {
  auto isScalar = [](Operation *op) { return mt::elementsPerRow(op->getResult(0).getType()) == 1; };
  auto sameDepth = [&](unsigned a, unsigned b) { return units[a].reductionDepth == units[b].reductionDepth; };
  mergeNeighbours(KernelKind::single, sameDepth);
  std::vector<unsigned> scalars = unitsOf(KernelKind::single);
  llvm::erase_if(scalars, [&](unsigned unit) { return !llvm::all_of(units[unit].ops, isScalar); });
  for (auto [i, a] : llvm::enumerate(scalars))
    for (unsigned b : ArrayRef(scalars).drop_front(i + 1))
      if (!units[a].ops.empty() && !units[b].ops.empty() && sameDepth(a, b) && canMerge(a, b))
        merge(a, b);
}

std::vector<const Unit *> Groups::ordered() const {
  auto later = [&](unsigned a, unsigned b) {
    return position.at(units[a].ops.front()) > position.at(units[b].ops.front());
  };
  std::priority_queue<unsigned, std::vector<unsigned>, decltype(later)> ready(later);
  std::vector<unsigned> waiting(units.size(), 0);
  for (unsigned unit = 0; unit < units.size(); ++unit)
    for (unsigned next : successors(unit))
      ++waiting[next];
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (!units[unit].ops.empty() && waiting[unit] == 0)
      ready.push(unit);
  std::vector<const Unit *> order;
  while (!ready.empty()) {
    unsigned unit = ready.top();
    ready.pop();
    order.push_back(&units[unit]);
    for (unsigned next : successors(unit))
      if (--waiting[next] == 0)
        ready.push(next);
  }
  return order;
}

} // namespace mtc
