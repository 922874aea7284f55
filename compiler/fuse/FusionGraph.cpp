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

bool FusionGraph::isOfEither(Operation *op, unsigned a, unsigned b) const {
  std::optional<unsigned> group = groupOf(op);
  return group == a || group == b;
}

std::optional<unsigned> FusionGraph::producer(Value value) const {
  return value.getDefiningOp() ? groupOf(value.getDefiningOp()) : std::nullopt;
}

// Adds the edges between a group and the groups that exist already.
void FusionGraph::connect(unsigned group) {
  auto edge = [&](std::optional<unsigned> before, std::optional<unsigned> after) {
    if (before && after)
      edges.connect(*before, *after);
  };
  for (Operation *op : groups[group].ops) {
    for (Operation *user : users(op))
      edge(group, groupOf(user));
    for (Operation *next : nextTurn(op))
      edge(group, groupOf(next));
    for (Operation *former : formerTurn(op))
      edge(groupOf(former), group);
    for (Value operand : op->getOperands()) {
      edge(producer(operand), group);
      Operation *from = operand.getDefiningOp();
      if (std::optional<int64_t> bucket = from ? mt::bucketOf(from) : std::nullopt)
        edge(completions.at(*bucket), group);
    }
    if (std::optional<int64_t> bucket = mt::bucketOf(op)) {
      edge(group, completions.at(*bucket));
      for (Operation *user : users(op))
        edge(completions.at(*bucket), groupOf(user));
    }
  }
}

void FusionGraph::connectAll() {
  edges = AcyclicGraph(groups.size());
  for (unsigned group = 0; group < groups.size(); ++group)
    connect(group);
  if (!completions.empty())
    for (auto [former, latter] : llvm::zip(completions, llvm::drop_begin(completions)))
      edges.connect(former.second, latter.second);
  edges.sort();
}

bool FusionGraph::canMerge(unsigned a, unsigned b) const { return fitTogether(a, b) && !edges.haveIndirectPath(a, b); }

// The ops of both groups, in program order.
std::vector<Operation *> FusionGraph::opsOfBoth(unsigned a, unsigned b) const {
  const std::vector<Operation *> &first = groups[a].ops, &second = groups[b].ops;
  std::vector<Operation *> both(first.size() + second.size());
  std::merge(first.begin(), first.end(), second.begin(), second.end(), both.begin(),
             [&](Operation *one, Operation *other) { return position.at(one) < position.at(other); });
  return both;
}

void FusionGraph::merge(unsigned into, unsigned from) {
  edges.merge(into, from);
  join(into, from);
}

// Valid only before edges are added.
void FusionGraph::join(unsigned into, unsigned from) {
  for (Operation *op : groups[from].ops)
    groupOfOp[op] = into;
  groups[into].ops = opsOfBoth(into, from);
  groups[into].reductionDepth = std::max(groups[into].reductionDepth, groups[from].reductionDepth);
  groups[into].livesByLine.reset();
  groups[into].afterProduct |= groups[from].afterProduct;
  groups[into].early |= groups[from].early;
  groups[from].ops.clear();
  if (!groups[into].turn)
    groups[into].turn = groups[from].turn;
}

llvm::SmallSetVector<unsigned, 8> FusionGraph::adjacent(unsigned group) const {
  llvm::SmallSetVector<unsigned, 8> result;
  llvm::SmallDenseSet<Operation *, 8> asked; // each value that several ops of the group read is looked up once
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
      // A common scalar operand is no reason to merge two groups.
      if (cast<RankedTensorType>(operand.getType()).getRank() != 0)
        addReaders(operand.getDefiningOp());
    }
  llvm::for_each(groups[group].ops, addReaders);
  return result;
}

// Returns the first of several groups that may merge with a group. Most searches for a path are short. Where they are
// long, as between the readers of one value, one search answers for all groups that are left.
std::optional<unsigned> FusionGraph::firstToMerge(unsigned group, ArrayRef<unsigned> others,
                                                  llvm::function_ref<bool(unsigned, unsigned)> allowed) const {
  constexpr uint64_t most = 1000; // edges
  for (uint64_t before = edges.effort(); !others.empty() && edges.effort() - before < most;) {
    unsigned other = others.consume_front();
    if (!edges.haveIndirectPath(group, other) && allowed(group, other))
      return other;
  }
  for (auto [other, indirect] : llvm::zip_equal(others, edges.haveIndirectPaths(group, others)))
    if (!indirect && allowed(group, other))
      return other;
  return std::nullopt;
}

// Merges adjacent groups of a kind for which `allowed` holds, until nothing changes.
void FusionGraph::mergeAdjacent(KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed) {
  for (unsigned group = 0; group < groups.size(); ++group) {
    bool changed = groups[group].kind == kind && !groups[group].ops.empty();
    while (changed) {
      SmallVector<unsigned> others = llvm::to_vector(llvm::make_filter_range(
          adjacent(group), [&](unsigned other) { return groups[other].kind == kind && fitTogether(group, other); }));
      std::optional<unsigned> found = firstToMerge(group, others, allowed);
      changed = found.has_value();
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

// Whether a value is stored whatever becomes of its readers, or a few element-wise ops of one that is, with values that
// all samples share.
bool FusionGraph::isNearStored(Value value) const {
  for (;;) {
    std::optional<unsigned> from = producer(value);
    if (!from || groups[*from].kind != KernelKind::rows)
      return true;
    Operation *op = value.getDefiningOp();
    if (!isa<mt::ElementwiseOpInterface>(op) || !op->hasOneUse())
      return false;
    Value split;
    for (Value operand : op->getOperands())
      if (mt::isSplit(operand.getType()) && std::exchange(split, operand))
        return false;
    if (!split ||
        cast<RankedTensorType>(split.getType()).getShape() != cast<RankedTensorType>(value.getType()).getShape())
      return false;
    value = split;
  }
}

// Whether an op could be computed before a sum over the batch that its only reader waits for, but is better computed
// with the reader: what it reads is stored, and its result is not then.
bool FusionGraph::isBetterLater(Operation *op, unsigned group) const {
  if (!op->hasOneUse() || op->getNumResults() != 1 || !isNearStored(op->getResult(0)))
    return false;
  std::optional<unsigned> user = groupOf(*op->user_begin());
  return user && isa<mt::ElementwiseOpInterface>(*op->user_begin()) &&
         groups[*user].reductionDepth > groups[group].reductionDepth;
}

// From the end of the program, so that a cast that extends an operand is merged after the op that reads it.
void FusionGraph::mergeRepeated() {
  for (Operation &op : llvm::reverse(*body)) {
    std::optional<unsigned> group = groupOf(&op);
    if (!group || groups[*group].kind != KernelKind::rows || groups[*group].ops.size() != 1)
      continue;
    if (!isRepeated(&op) && !(op.hasOneUse() && extendedFrom(op.getResult(0))) && !isBetterLater(&op, *group))
      continue;
    std::optional<unsigned> user = groupOf(*op.user_begin());
    if (user && groups[*user].kind == KernelKind::rows)
      merge(*user, *group);
  }
}

void FusionGraph::fuseRows(bool images, int64_t maxBytes) {
  mergeRepeated();
  // Values that only sums of columns read are not stored for them.
  if (!images)
    mergeAdjacent(KernelKind::rows,
                  [&](unsigned a, unsigned b) { return feedsColumnsAlone(a, b) || feedsColumnsAlone(b, a); });
  // Groups that work line by line come first. Otherwise sums over the lines, which read the same values, would take ops
  // from them.
  mergeAdjacent(KernelKind::rows, [&](unsigned a, unsigned b) {
    return (livesByLine(a, images) || livesByLine(b, images)) && mayShareRows(a, b, images) &&
           fitLimits(a, b, images, maxBytes);
  });
  mergeAdjacent(KernelKind::rows, [&](unsigned a, unsigned b) {
    return mayShareRows(a, b, images) && fitLimits(a, b, images, maxBytes);
  });
}

// The bucket of few sums of which a group reads a result; none if it reads results of no such bucket, or of several.
std::optional<int64_t> FusionGraph::smallBucketBefore(const FusionGroup &group) const {
  constexpr int64_t few = 4;
  std::optional<int64_t> found;
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands()) {
      auto reduce = operand.getDefiningOp<shard::AllReduceOp>();
      std::optional<int64_t> bucket = reduce ? mt::bucketOf(reduce) : std::nullopt;
      if (!bucket)
        continue;
      if (found && found != bucket)
        return std::nullopt;
      found = bucket;
    }
  auto isOf = [&](shard::AllReduceOp reduce) { return mt::bucketOf(reduce) == found; };
  return found && llvm::count_if(body->getOps<shard::AllReduceOp>(), isOf) <= few ? found : std::nullopt;
}

// Ops merge first with what reads their results, so that no result is stored for a kernel that could compute it: the
// decay of a weight, for its update. Then they merge with others that read the same values.
void FusionGraph::fuseElementwise(bool images) {
  auto sameShape = [&](unsigned a, unsigned b) {
    auto shape = [&](unsigned group) {
      return cast<RankedTensorType>(groups[group].ops.front()->getResult(0).getType()).getShape();
    };
    return shape(a) == shape(b) && !shape(a).empty();
  };
  auto feeds = [&](unsigned from, unsigned to) {
    return llvm::any_of(groups[to].ops, [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) { return producer(operand) == from; });
    });
  };
  mergeAdjacent(KernelKind::elementwise,
                [&](unsigned a, unsigned b) { return sameShape(a, b) && (feeds(a, b) || feeds(b, a)); });
  mergeAdjacent(KernelKind::elementwise, sameShape);
  if (images)
    return;
  // The gradients of the scale and the offset of a normalization, for example, which wait for an all-reduce of their
  // own. The updates of many variables are segments of one launch instead.
  std::map<int64_t, std::vector<unsigned>> ofBucket;
  for (unsigned group : groupsOf(KernelKind::elementwise))
    if (std::optional<int64_t> bucket = smallBucketBefore(groups[group]))
      ofBucket[*bucket].push_back(group);
  for (auto &[bucket, members] : ofBucket)
    for (auto [i, a] : llvm::enumerate(members))
      for (unsigned b : ArrayRef(members).drop_front(i + 1))
        if (!groups[a].ops.empty() && !groups[b].ops.empty() && sameShape(a, b) && canMerge(a, b))
          merge(a, b);
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

// Whether a sum over the batch can compute its operand by element: all values have the elements of a row of the sum, or
// one.
static bool isSummedElement(Operation *op, Type row) {
  auto fits = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t count = mt::elementsPerRow(type);
    return count == 1 ? type.getRank() == 0 : count == mt::elementsPerRow(row);
  };
  return isa<mt::ElementwiseOpInterface>(op) && mt::isSplit(op->getResult(0).getType()) && fits(op->getResult(0)) &&
         llvm::all_of(op->getOperands(), fits);
}

// Element-wise ops that only one sum over the batch reads become part of it.
void FusionGraph::takeSummedElements() {
  for (unsigned sum : groupsOf(KernelKind::reduce)) {
    Value operand = groups[sum].ops.front()->getOperand(0);
    std::optional<unsigned> from = producer(operand);
    if (!from || groups[*from].kind != KernelKind::rows || !canMerge(sum, *from))
      continue;
    if (llvm::all_of(groups[*from].ops, [&](Operation *op) {
          return isSummedElement(op, operand.getType()) &&
                 llvm::all_of(users(op), [&](Operation *user) { return isOfEither(user, sum, *from); });
        }))
      merge(sum, *from);
  }
}

// Sums of the same all-reduce bucket are needed at the same time.
void FusionGraph::fuseReductions(bool images) {
  if (!images)
    takeSummedElements();
  std::map<std::optional<int64_t>, std::vector<unsigned>> ofBucket;
  std::vector<std::pair<unsigned, const std::vector<unsigned> *>> order; // a sum, and the sums of its bucket
  for (unsigned group : groupsOf(KernelKind::reduce)) {
    std::vector<unsigned> &members = ofBucket[bucketOf(groups[group])];
    members.push_back(group);
    order.emplace_back(group, &members);
  }
  for (auto [a, members] : order)
    for (unsigned b : llvm::make_range(llvm::upper_bound(*members, a), members->end()))
      if (!groups[a].ops.empty() && !groups[b].ops.empty() && canMerge(a, b))
        merge(a, b);
}

// Merges all scalar ops between the same two all-reduces into one kernel. Ops on larger values are merged only if they
// are adjacent.
void FusionGraph::fuseSingle(bool images, int64_t maxBytes) {
  auto isScalar = [](Operation *op) { return mt::elementsPerRow(op->getResult(0).getType()) == 1; };
  auto sameDepth = [&](unsigned a, unsigned b) { return groups[a].reductionDepth == groups[b].reductionDepth; };
  mergeAdjacent(KernelKind::single,
                [&](unsigned a, unsigned b) { return sameDepth(a, b) && fitLimits(a, b, images, maxBytes); });
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
  std::vector<unsigned> waiting(groups.size());
  std::vector<const FusionGroup *> order;
  SmallVector<unsigned> done; // groups whose successors have not been updated
  for (unsigned group = 0; group < groups.size(); ++group) {
    waiting[group] = edges.predecessors(group).size();
    if (waiting[group] == 0 && !groups[group].ops.empty())
      ready.push(group);
  }
  while (!ready.empty()) {
    order.push_back(&groups[ready.top()]);
    done.push_back(ready.top());
    ready.pop();
    while (!done.empty())
      for (unsigned next : edges.successors(done.pop_back_val()))
        if (--waiting[next] == 0 && groups[next].ops.empty()) // a bucket is complete
          done.push_back(next);
        else if (waiting[next] == 0)
          ready.push(next);
  }
  return order;
}

} // namespace mtc
