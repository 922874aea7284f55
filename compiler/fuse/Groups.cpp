// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/Groups.h"
#include "compiler/fuse/Prepare.h"

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

const Groups::Set &Groups::successors(unsigned unit) const {
  known.resize(units.size());
  if (!known[unit])
    known[unit] = findSuccessors(unit);
  return *known[unit];
}

Groups::Set Groups::findSuccessors(unsigned unit) const {
  Set result;
  auto addUsers = [&](Operation *op) {
    for (Operation *user : op->getUsers())
      if (std::optional<unsigned> to = unitOf(user); to && *to != unit)
        result.insert(*to);
  };
  for (Operation *op : units[unit].ops) {
    addUsers(op);
    if (auto bucket = op->getAttrOfType<IntegerAttr>("mt.bucket"))
      for (auto [other, allReduce] : allReduces)
        if (other >= bucket.getInt())
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
      if (next == to)
        return true;
      visit(next);
    }
  return false;
}

void Groups::merge(unsigned into, unsigned from) {
  joinRanks(into, from);
  for (Operation *op : units[from].ops) {
    unitOfOp[op] = into;
    units[into].ops.push_back(op);
  }
  llvm::sort(units[into].ops, [&](Operation *a, Operation *b) { return position.at(a) < position.at(b); });
  units[into].reductionDepth = std::max(units[into].reductionDepth, units[from].reductionDepth);
  units[from].ops.clear();
  for (auto [unit, set] : llvm::enumerate(known)) {
    if (!set || (unit != into && unit != from && !set->contains(from)))
      continue;
    if (units[unit].kind) {
      set.reset();
      continue;
    }
    // An all-reduce, followed by the users of many: nothing depends on their order.
    set->remove(from);
    set->insert(into);
  }
}

Groups::Set Groups::neighbours(unsigned unit) const {
  Set result;
  for (Operation *op : units[unit].ops)
    for (Value operand : op->getOperands()) {
      if (isCheap(operand))
        continue;
      if (std::optional<unsigned> from = producer(operand); from && *from != unit)
        result.insert(*from);
      // Units that read the same scalar have nothing in common.
      if (cast<RankedTensorType>(operand.getType()).getRank() == 0)
        continue;
      for (Operation *user : operand.getUsers())
        if (std::optional<unsigned> other = unitOf(user); other && *other != unit)
          result.insert(*other);
    }
  for (unsigned next : successors(unit))
    result.insert(next);
  return result;
}

// Merges units of a kind with their neighbours until nothing changes.
void Groups::mergeNeighbours(KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed) {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    bool changed = units[unit].kind == kind && !units[unit].ops.empty();
    while (changed) {
      changed = false;
      for (unsigned other : neighbours(unit))
        if (units[other].kind == kind && allowed(unit, other) && canMerge(unit, other)) {
          merge(unit, other);
          changed = true;
          break;
        }
    }
  }
}

// A value of a sample that is too large for a place of a thread's own, between steps that do not walk it element by
// element.
static bool needsPlace(Value value, Operation *user) {
  if (staysInCache(value))
    return false;
  return !isa<mt::ElementwiseOpInterface>(user) || !isa<mt::ElementwiseOpInterface>(value.getDefiningOp());
}

// Prepare.cpp made one of these for each user, so that none is stored.
static bool isRepeated(Operation *op) {
  return op->hasOneUse() && op->getNumOperands() && llvm::any_of(op->getOperand(0).getUsers(), [&](Operation *other) {
           return other != op && other->getName() == op->getName() && other->getOperands() == op->getOperands() &&
                  other->getAttrDictionary() == op->getAttrDictionary();
         });
}

void Groups::joinRepeated() {
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    if (units[unit].kind != KernelKind::rows || units[unit].ops.size() != 1)
      continue;
    Operation *op = units[unit].ops.front();
    if (!isRepeated(op) && !(op->hasOneUse() && widenedFrom(op->getResult(0))))
      continue;
    std::optional<unsigned> user = unitOf(*units[unit].ops.front()->user_begin());
    if (user && units[*user].kind == KernelKind::rows)
      merge(*user, unit);
  }
}

void Groups::fuseRows(bool images) {
  joinRepeated();
  auto small = [&](unsigned from, unsigned to) {
    return llvm::all_of(units[to].ops, [&](Operation *op) {
      return llvm::none_of(op->getOperands(), [&](Value operand) {
        bool stored = !images && isa<mt::Conv2DKernelGradientOp>(op);
        return producer(operand) == from && (stored || needsPlace(operand, op));
      });
    });
  };
  mergeNeighbours(KernelKind::rows, [&](unsigned a, unsigned b) { return small(a, b) && small(b, a); });
}

void Groups::fuseMaps() {
  mergeNeighbours(KernelKind::map, [&](unsigned a, unsigned b) {
    auto shape = [&](unsigned unit) {
      return cast<RankedTensorType>(units[unit].ops.front()->getResult(0).getType()).getShape();
    };
    return shape(a) == shape(b) && !shape(a).empty();
  });
}

static std::optional<int64_t> bucketOf(const Unit &unit) {
  for (Operation *op : unit.ops)
    for (Operation *user : op->getUsers())
      if (auto bucket = user->getAttrOfType<IntegerAttr>("mt.bucket"))
        return bucket.getInt();
  return std::nullopt;
}

// Sums that leave in the same bucket are needed at the same time.
void Groups::fuseReductions() {
  for (unsigned a = 0; a < units.size(); ++a)
    for (unsigned b = a + 1; b < units.size(); ++b)
      if (!units[a].ops.empty() && !units[b].ops.empty() && units[a].kind == KernelKind::reduce &&
          units[b].kind == KernelKind::reduce && bucketOf(units[a]) == bucketOf(units[b]) && canMerge(a, b))
        merge(a, b);
}

// Scalars between the same two all-reduces share a kernel, related or not; larger values only with their neighbours.
void Groups::fuseWhole() {
  auto scalars = [&](unsigned unit) {
    return llvm::all_of(units[unit].ops,
                        [](Operation *op) { return mt::elementsPerRow(op->getResult(0).getType()) == 1; });
  };
  auto sameDepth = [&](unsigned a, unsigned b) { return units[a].reductionDepth == units[b].reductionDepth; };
  mergeNeighbours(KernelKind::whole, sameDepth);
  for (unsigned a = 0; a < units.size(); ++a)
    for (unsigned b = a + 1; b < units.size(); ++b)
      if (!units[a].ops.empty() && !units[b].ops.empty() && units[a].kind == KernelKind::whole &&
          units[b].kind == KernelKind::whole && sameDepth(a, b) && scalars(a) && scalars(b) && canMerge(a, b))
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
