// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/Graph.h"
#include "compiler/AcyclicGraph.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

#include <map>

namespace mtc {

using namespace mlir;

bool Node::isCollective() const { return isa<shard::AllReduceOp>(ops.front()); }

void Graph::addNodes() {
  std::map<int64_t, unsigned> buckets;
  auto add = [&](Operation *op) {
    nodeOfOp[op] = nodes.size();
    nodes.push_back({{op}, {}, false, 0});
  };
  for (Operation &op : *body) {
    if (isa<mt::KernelOp>(op))
      add(&op);
    if (!isa<shard::AllReduceOp>(op))
      continue;
    // An all-reduce without a bucket is a node of its own, in program order.
    int64_t bucket = mt::bucketOf(&op).value_or(static_cast<int64_t>(buckets.size()));
    auto [entry, fresh] = buckets.try_emplace(bucket, nodes.size());
    if (fresh) {
      add(&op);
    } else {
      nodeOfOp[&op] = entry->second;
      nodes[entry->second].ops.push_back(&op);
    }
  }
}

void Graph::addValueEdges() {
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (Operation *op : nodes[node].ops)
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && nodeOfOp.contains(from))
          nodes[node].before.insert(nodeOf(from));
  // An all-reduce may overwrite the partial sums with inner nodes of its tree, so other readers of the partial sums
  // precede it.
  for (Node &node : nodes)
    for (Operation *op : node.ops)
      if (isa<shard::AllReduceOp>(op))
        for (Operation *user : op->getOperand(0).getUsers())
          if (isa<mt::KernelOp>(user))
            node.before.insert(nodeOf(user));
}

// All nodes of a turn follow all nodes of the previous turn.
void Graph::addTurnEdges() {
  std::map<mt::Turn, std::vector<unsigned>> turns;
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (std::optional<mt::Turn> turn = mt::turnOf(nodes[node].ops.front()))
      turns[*turn].push_back(node);
  for (auto before = turns.begin(), after = before; before != turns.end() && ++after != turns.end(); ++before)
    if (before->first.sequence == after->first.sequence)
      for (unsigned node : after->second)
        nodes[node].before.insert(before->second.begin(), before->second.end());
}

void Graph::addBucketEdges() {
  std::map<int64_t, unsigned> inOrder;
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (nodes[node].isCollective())
      inOrder[mt::bucketOf(nodes[node].ops.front()).value_or(node)] = node;
  for (auto previous = inOrder.begin(), next = previous; previous != inOrder.end() && ++next != inOrder.end();
       ++previous)
    nodes[next->second].before.insert(previous->second);
}

// For each variable, the nodes that read it, each once and in order.
llvm::StringMap<std::vector<unsigned>> Graph::readersOfVariables() const {
  llvm::StringMap<std::vector<unsigned>> all;
  for (auto read : body->getOps<mt::ReadOp>())
    for (Operation *user : read->getUsers())
      if (isa<mt::KernelOp>(user))
        all[read.getName()].push_back(nodeOf(user));
  for (auto &entry : all) {
    std::vector<unsigned> &readers = entry.second;
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
  }
  return all;
}

static mt::KernelOp createCopy(mt::AssignOp assign) {
  OpBuilder builder(assign);
  OperationState state(assign.getLoc(), mt::KernelOp::getOperationName());
  state.addOperands(assign.getValue());
  state.addTypes(assign.getValue().getType());
  state.addAttribute("kind", mt::KernelKindAttr::get(builder.getContext(), mt::KernelKind::elementwise));
  state.addAttribute("name", builder.getStringAttr("copy"));
  state.addRegion();
  auto kernel = cast<mt::KernelOp>(builder.create(state));
  Block *block = builder.createBlock(&kernel.getBody());
  Value argument = block->addArgument(assign.getValue().getType(), assign.getLoc());
  mt::YieldOp::create(builder, assign.getLoc(), argument);
  assign.getValueMutable().assign(kernel.getResult(0));
  return kernel;
}

LogicalResult Graph::addVariableEdges() {
  AcyclicGraph edges(nodes.size());
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (unsigned before : nodes[node].before)
      edges.connect(before, node);
  if (!edges.sort())
    return body->getParentOp()->emitOpError("expected kernels that can be ordered, found a cycle");
  llvm::StringMap<std::vector<unsigned>> allReaders = readersOfVariables();
  SmallVector<mt::AssignOp> assigns(body->getOps<mt::AssignOp>());
  for (mt::AssignOp assign : assigns) {
    unsigned writer = nodeOf(assign.getValue().getDefiningOp<mt::KernelOp>());
    std::vector<unsigned> &readers = allReaders[assign.getName()];
    llvm::erase(readers, writer);
    if (llvm::any_of(readers, [&](unsigned reader) { return edges.havePath(writer, reader); })) {
      auto copy = createCopy(assign);
      unsigned node = nodeOfOp[copy] = edges.addAfter(writer);
      nodes.push_back({{copy}, {}, false, 0});
      edges.addEdge(writer, node);
      nodes[node].before.insert(writer);
      writer = node;
    }
    for (unsigned reader : readers)
      if (nodes[writer].before.insert(reader))
        edges.addEdge(reader, writer);
  }
  return success();
}

// Writers of variables and of reported scalars write memory that devices share. So do the writers of everything that
// these read.
LogicalResult Graph::markShared() {
  SmallVector<Operation *> work;
  for (Operation &op : *body)
    if (op.hasTrait<mt::Reports>() || isa<mt::AssignOp>(op))
      work.push_back(&op);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Value operand : op->getOperands()) {
      auto kernel = operand.getDefiningOp<mt::KernelOp>();
      if (mt::isSplit(operand.getType()))
        return op->emitOpError("expected values that are the same on all devices, found an operand of type ")
               << operand.getType();
      if (!kernel || nodes[nodeOf(kernel)].share)
        continue;
      nodes[nodeOf(kernel)].share = true;
      work.push_back(kernel);
    }
  }
  return success();
}

FailureOr<Graph> Graph::build(mt::ProgramOp program) {
  Graph graph;
  graph.body = &program.getBody().front();
  graph.addNodes();
  graph.addValueEdges();
  graph.addTurnEdges();
  graph.addBucketEdges();
  for (auto assign : graph.body->getOps<mt::AssignOp>())
    if (!assign.getValue().getDefiningOp<mt::KernelOp>())
      return assign.emitOpError("expected a kernel's result, found another value; run mt-fuse first");
  if (failed(graph.addVariableEdges()) || failed(graph.markShared()))
    return failure();
  return graph;
}

} // namespace mtc
