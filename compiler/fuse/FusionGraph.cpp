// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/FusionGraph.h"
#include "dialects/mt/Attention.h"
#include "dialects/mt/Compilation.h"

#include <queue>

namespace mtc {

using namespace mlir;
using mt::KernelKind;

std::optional<unsigned> FusionGraph::groupOf(Operation *op) const {
  auto found = groupOfOp.find(op);
  return found == groupOfOp.end() ? std::nullopt : std::optional(found->second);
}

std::optional<unsigned> FusionGraph::producer(Value value) const {
  return value.getDefiningOp() ? groupOf(value.getDefiningOp()) : std::nullopt;
}

const FusionGraph::Edges &FusionGraph::successors(unsigned group) const {
  successorCache.resize(groups.size());
  if (!successorCache[group])
    successorCache[group] = findSuccessors(group);
  return *successorCache[group];
}

FusionGraph::Edges FusionGraph::findSuccessors(unsigned group) const {
  Edges result;
  auto addUsers = [&](Operation *op) {
    for (Operation *user : users(op))
      if (std::optional<unsigned> to = groupOf(user); to && *to != group)
        result.insert(*to);
  };
  for (Operation *op : groups[group].ops) {
    addUsers(op);
    for (Operation *later : nextTurn(op))
      if (std::optional<unsigned> to = groupOf(later); to && *to != group)
        result.insert(*to);
    if (std::optional<int64_t> bucket = mt::bucketOf(op))
      for (auto [other, allReduce] : allReduces)
        if (other >= *bucket)
          addUsers(allReduce);
  }
  return result;
}

void FusionGraph::rankGroups() const {
  std::vector<unsigned> waiting(groups.size(), 0), ready;
  for (unsigned group = 0; group < groups.size(); ++group)
    for (unsigned next : successors(group))
      ++waiting[next];
  for (unsigned group = 0; group < groups.size(); ++group)
    if (waiting[group] == 0)
      ready.push_back(group);
  rank.assign(groups.size(), 0);
  for (size_t i = 0; i < ready.size(); ++i) {
    rank[ready[i]] = i;
    for (unsigned next : successors(ready[i]))
      if (--waiting[next] == 0)
        ready.push_back(next);
  }
  ranked = std::move(ready);
}

void FusionGraph::clearCaches() {
  successorCache.clear();
  rank.clear();
  ranked.clear();
  between.clear();
}

// Keeps the topological order valid when two groups are about to become one: of the groups ranked between them, those
// that depend on the first move behind both.
void FusionGraph::mergeRanks(unsigned into, unsigned from) {
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
  auto place = [&](unsigned group) {
    ranked[at] = group;
    rank[group] = at++;
  };
  SmallVector<unsigned> between(ranked.begin() + first, ranked.begin() + last + 1);
  for (unsigned group : between)
    if (group != into && group != from && !later.contains(group))
      place(group);
  place(into);
  for (unsigned group : between)
    if (later.contains(group))
      place(group);
  place(from); // empty from now on
}

// Is there a path `from` -> other group -> `to`?
bool FusionGraph::hasIndirectPath(unsigned from, unsigned to) const {
  if (Operation *op = between.lookup({from, to}))
    if (unsigned group = *groupOf(op); group != from && group != to)
      return true;
  if (rank.empty())
    rankGroups();
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
        between[{from, to}] = groups[seen[i]].ops.front();
        return true;
      }
      visit(next);
    }
  return false;
}

// hasIndirectPath between a group and each of `others`, in either direction, by one pass over the groups that are
// ranked between them.
std::vector<bool> FusionGraph::haveIndirectPath(unsigned group, ArrayRef<unsigned> others) const {
  if (rank.empty())
    rankGroups();
  unsigned least = rank[group], most = rank[group];
  for (unsigned other : others) {
    least = std::min(least, rank[other]);
    most = std::max(most, rank[other]);
  }
  std::vector<bool> result(groups.size()), after(groups.size()), before(groups.size());
  for (unsigned next : successors(group))
    after[next] = true;
  for (unsigned r = rank[group] + 1; r <= most; ++r)
    if (unsigned at = ranked[r]; after[at])
      for (unsigned next : successors(at))
        after[next] = result[next] = true;
  for (unsigned r = rank[group]; r-- > least;) {
    unsigned at = ranked[r];
    for (unsigned next : successors(at)) {
      result[at] = result[at] || before[next];
      before[at] = before[at] || before[next] || next == group;
    }
  }
  return result;
}

// The number of ops of a kernel is bounded, which bounds its stack and its compile time.
bool FusionGraph::fitTogether(unsigned a, unsigned b) const {
  constexpr size_t maxOps = 200;
  bool otherTurns = groups[a].turn && groups[b].turn && *groups[a].turn != *groups[b].turn;
  return a != b && !otherTurns && groups[a].ops.size() + groups[b].ops.size() <= maxOps;
}

bool FusionGraph::canMerge(unsigned a, unsigned b) const {
  return fitTogether(a, b) && !hasIndirectPath(a, b) && !hasIndirectPath(b, a);
}

// Edges to and from `from` become those of `into`.
void FusionGraph::redirectEdges(unsigned into, unsigned from) {
  successorCache.resize(groups.size());
  auto redirect = [&](unsigned group) {
    if (successorCache[group] && successorCache[group]->erase(from))
      successorCache[group]->insert(into);
  };
  for (Operation *op : groups[from].ops)
    for (Value operand : op->getOperands())
      if (std::optional<unsigned> before = producer(operand))
        redirect(*before);
  for (auto [bucket, allReduce] : allReduces)
    redirect(*groupOf(allReduce));
  if (successorCache[into] && successorCache[from])
    successorCache[into]->insert(successorCache[from]->begin(), successorCache[from]->end());
  else
    successorCache[into].reset();
  if (successorCache[into])
    successorCache[into]->erase(into);
  successorCache[from].reset();
}

void FusionGraph::merge(unsigned into, unsigned from) {
  mergeRanks(into, from);
  redirectEdges(into, from);
  std::vector<Operation *> &ops = groups[into].ops;
  for (Operation *op : groups[from].ops)
    groupOfOp[op] = into;
  std::vector<Operation *> both(ops.size() + groups[from].ops.size());
  std::merge(ops.begin(), ops.end(), groups[from].ops.begin(), groups[from].ops.end(), both.begin(),
             [&](Operation *a, Operation *b) { return position.at(a) < position.at(b); });
  ops = std::move(both);
  groups[into].reductionDepth = std::max(groups[into].reductionDepth, groups[from].reductionDepth);
  groups[into].livesByLine.reset();
  groups[into].afterProduct |= groups[from].afterProduct;
  groups[into].early |= groups[from].early;
  groups[from].ops.clear();
  if (!groups[into].turn)
    groups[into].turn = groups[from].turn;
  if (groups[into].turn)
    clearCaches(); // redirectEdges does not update the edges between blocks
}

llvm::SmallSetVector<unsigned, 8> FusionGraph::adjacent(unsigned group) const {
  llvm::SmallSetVector<unsigned, 8> result;
  llvm::SmallDenseSet<Operation *, 8> asked; // a value that many ops of the group read is asked once
  auto addReaders = [&](Operation *op) {
    if (!asked.insert(op).second)
      return;
    for (Operation *user : users(op))
      if (std::optional<unsigned> other = groupOf(user); other && *other != group)
        result.insert(*other);
  };
  for (Operation *op : groups[group].ops)
    for (Value operand : op->getOperands()) {
      if (isRecomputed(operand))
        continue;
      if (std::optional<unsigned> from = producer(operand); from && *from != group)
        result.insert(*from);
      // Groups that read the same scalar have nothing in common.
      if (cast<RankedTensorType>(operand.getType()).getRank() != 0)
        addReaders(operand.getDefiningOp());
    }
  llvm::for_each(groups[group].ops, addReaders);
  return result;
}

// Merges adjacent groups of a kind until nothing changes.
void FusionGraph::mergeAdjacent(KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed) {
  for (unsigned group = 0; group < groups.size(); ++group) {
    bool changed = groups[group].kind == kind && !groups[group].ops.empty();
    while (changed) {
      llvm::SmallSetVector<unsigned, 8> others = adjacent(group);
      std::vector<bool> apart; // computed for all candidates when the first one is checked
      auto *found = llvm::find_if(others, [&](unsigned other) {
        if (groups[other].kind != kind || !fitTogether(group, other))
          return false;
        if (apart.empty())
          apart = haveIndirectPath(group, others.getArrayRef());
        return !apart[other] && allowed(group, other);
      });
      changed = found != others.end();
      if (changed)
        merge(group, *found);
    }
  }
}

// Whether Prepare.cpp cloned this op for each of its users, so that its result is not stored.
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

// From the end, so that a cast that extends an operand is merged after the op that reads it.
void FusionGraph::mergeRepeated() {
  for (Operation &op : llvm::reverse(*body)) {
    std::optional<unsigned> group = groupOf(&op);
    if (!group || groups[*group].kind != KernelKind::rows || groups[*group].ops.size() != 1)
      continue;
    if (!isRepeated(&op) && !(op.hasOneUse() && extendedFrom(op.getResult(0))))
      continue;
    std::optional<unsigned> user = groupOf(*op.user_begin());
    if (user && groups[*user].kind == KernelKind::rows)
      merge(*user, *group);
  }
}

void FusionGraph::fuseRows(bool images) {
  mergeRepeated();
  // First the groups that work line by line: else sums over the lines, which read the same values, would take ops from
  // them.
  mergeAdjacent(KernelKind::rows, [&](unsigned a, unsigned b) {
    return (livesByLine(a) || livesByLine(b)) && mayShareRows(a, b, images);
  });
  mergeAdjacent(KernelKind::rows, [&](unsigned a, unsigned b) { return mayShareRows(a, b, images); });
}

void FusionGraph::fuseElementwise() {
  mergeAdjacent(KernelKind::elementwise, [&](unsigned a, unsigned b) {
    auto shape = [&](unsigned group) {
      return cast<RankedTensorType>(groups[group].ops.front()->getResult(0).getType()).getShape();
    };
    return shape(a) == shape(b) && !shape(a).empty();
  });
}

// Whether two groups compute different results of the same attention.
static bool canShareScores(const FusionGroup &a, const FusionGroup &b) {
  auto wordOf = [](Operation *op) {
    auto gradient = dyn_cast<mt::AttentionGradientOp>(op);
    return std::pair(op->getName(), gradient ? static_cast<int>(gradient.getOf()) : 0);
  };
  return llvm::all_of(a.ops, [&](Operation *op) {
    return llvm::all_of(
        b.ops, [&](Operation *other) { return mt::isSameAttention(op, other) && wordOf(op) != wordOf(other); });
  });
}

// An attention and its log-sums become one group, and so do the gradients of one attention: they share the scores.
void FusionGraph::fuseAttention() {
  for (KernelKind kind : {KernelKind::attention, KernelKind::attention_gradient}) {
    std::vector<unsigned> attentions = groupsOf(kind);
    for (auto [i, a] : llvm::enumerate(attentions))
      for (unsigned b : ArrayRef(attentions).drop_front(i + 1))
        if (!groups[a].ops.empty() && !groups[b].ops.empty() && canShareScores(groups[a], groups[b]) && canMerge(a, b))
          merge(a, b);
  }
}

static std::optional<int64_t> bucketOf(const FusionGroup &group) {
  for (Operation *op : group.ops)
    for (Operation *user : op->getUsers())
      if (std::optional<int64_t> bucket = mt::bucketOf(user))
        return bucket;
  return std::nullopt;
}

std::vector<unsigned> FusionGraph::groupsOf(KernelKind kind) const {
  std::vector<unsigned> result;
  for (unsigned group = 0; group < groups.size(); ++group)
    if (groups[group].kind == kind && !groups[group].ops.empty())
      result.push_back(group);
  return result;
}

// Sums of the same all-reduce bucket are needed at the same time.
void FusionGraph::fuseReductions() {
  std::vector<unsigned> reductions = groupsOf(KernelKind::reduce);
  for (auto [i, a] : llvm::enumerate(reductions))
    for (unsigned b : ArrayRef(reductions).drop_front(i + 1))
      if (!groups[a].ops.empty() && !groups[b].ops.empty() && bucketOf(groups[a]) == bucketOf(groups[b]) &&
          canMerge(a, b))
        merge(a, b);
}

// All scalar work between the same two all-reduces becomes one kernel. Larger values are merged only where they are
// adjacent.
void FusionGraph::fuseSingle() {
  auto isScalar = [](Operation *op) { return mt::elementsPerRow(op->getResult(0).getType()) == 1; };
  auto sameDepth = [&](unsigned a, unsigned b) { return groups[a].reductionDepth == groups[b].reductionDepth; };
  mergeAdjacent(KernelKind::single, sameDepth);
  std::vector<unsigned> scalars = groupsOf(KernelKind::single);
  llvm::erase_if(scalars, [&](unsigned group) { return !llvm::all_of(groups[group].ops, isScalar); });
  for (auto [i, a] : llvm::enumerate(scalars))
    for (unsigned b : ArrayRef(scalars).drop_front(i + 1))
      if (!groups[a].ops.empty() && !groups[b].ops.empty() && sameDepth(a, b) && canMerge(a, b))
        merge(a, b);
}

std::vector<const FusionGroup *> FusionGraph::ordered() const {
  auto later = [&](unsigned a, unsigned b) {
    return position.at(groups[a].ops.front()) > position.at(groups[b].ops.front());
  };
  std::priority_queue<unsigned, std::vector<unsigned>, decltype(later)> ready(later);
  std::vector<unsigned> waiting(groups.size(), 0);
  for (unsigned group = 0; group < groups.size(); ++group)
    for (unsigned next : successors(group))
      ++waiting[next];
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].ops.empty() && waiting[group] == 0)
      ready.push(group);
  std::vector<const FusionGroup *> order;
  while (!ready.empty()) {
    unsigned group = ready.top();
    ready.pop();
    order.push_back(&groups[group]);
    for (unsigned next : successors(group))
      if (--waiting[next] == 0)
        ready.push(next);
  }
  return order;
}

} // namespace mtc
