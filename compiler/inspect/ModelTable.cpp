// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/ModelTable.h"

#include "compiler/Passes.h"
#include "compiler/inspect/Layers.h"
#include "dialects/mt/Reads.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <array>
#include <map>

namespace mtc {

using namespace mlir;
namespace mt = mlir::mt; // not ::mt, the namespace of the plan's tables

namespace {

struct Row {
  std::string kind; // name of the op with the most FLOPs
  int64_t most = -1;
  Type shape; // of the last result
  int64_t parameters = 0, flops = 0, bytes = 0;
};

std::string layerOf(Operation &op) {
  std::string name;
  op.getLoc()->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name.empty() ? op.getName().stripDialect().str() : name;
}

int64_t elementsOf(Type type) { return mt::elementsPerRow(type); }
int64_t bytesOf(Type type) {
  unsigned bits = cast<RankedTensorType>(type).getElementTypeBitWidth();
  return elementsOf(type) * (bits == 1 ? 1 : bits / 8);
}

std::string shapeText(Type type) {
  std::string text = "(";
  for (int64_t size : cast<RankedTensorType>(type).getShape())
    text += (text.size() > 1 ? ", " : "") + (ShapedType::isDynamic(size) ? std::string("None") : std::to_string(size));
  return text + ")";
}

class ModelTable {
public:
  explicit ModelTable(mt::ModelOp model) : model(model) {}

  std::string print() {
    findForward();
    for (Operation &op : model.getBody().front())
      addShape(op);
    addCosts();
    return "Model: \"" + model.getSymName().str() + "\"\n" + table() + totals();
  }

private:
  // Collects the ops that the outputs depend on. A model without outputs counts all its ops.
  void findForward() {
    for (auto output : model.getBody().front().getOps<mt::OutputOp>())
      forward.insert(output);
    for (size_t i = 0; i < forward.size(); ++i)
      mt::forEachRead(forward[i], [&](Value value) {
        if (Operation *maker = value.getDefiningOp())
          forward.insert(maker);
      });
  }
  bool counts(Operation &op) const {
    if (isa<mt::TargetOp, mt::SampleWeightOp, mt::LossOp, mt::MetricOp, mt::RegularizerOp, mt::OutputOp,
            mt::OptimizerOpInterface, mt::UpdateOp>(op))
      return false;
    return forward.empty() || forward.contains(&op);
  }

  void addShape(Operation &op) {
    if (auto variable = dyn_cast<mt::VariableOp>(op)) {
      if (variable.isOfOptimizer()) // addCosts counts them
        return;
      int64_t elements = elementsOf(variable.getType());
      (variable.getFrozen() ? frozen : trainable) += elements;
      variableBytes += bytesOf(variable.getType());
      rows[layerOf(op)].parameters += elements;
      return;
    }
    if (!counts(op) || op.getNumResults() == 0)
      return;
    if (!mt::isSplit(op.getResult(0).getType()))
      return;
    Row &row = rows[layerOf(op)];
    row.shape = op.getResult(0).getType();
    auto cost = dyn_cast<mt::CostOpInterface>(op); // composite ops have no cost
    if (int64_t flops = cost ? cost.getFlops() : 0; flops > row.most) {
      row.most = flops;
      row.kind = op.getName().stripDialect().str();
    }
  }

  // Adds the costs of the primitive ops, after unrolling loops and decomposing composite ops in a clone, and the sizes
  // of the optimizer's variables.
  void addCosts() {
    OwningOpRef<ModuleOp> copy = model->getParentOfType<ModuleOp>().clone();
    PassManager passes(copy->getContext());
    passes.addPass(createUnroll());
    passes.addPass(createExpandOptimizer());
    if (failed(passes.run(*copy)))
      return;
    mt::ModelOp clone = *copy->getOps<mt::ModelOp>().begin();
    for (mt::VariableOp variable : clone.getOps<mt::VariableOp>())
      if (variable.isOfOptimizer()) {
        slots += elementsOf(variable.getType());
        slotBytes += bytesOf(variable.getType());
      }
    for (auto composites = collect(clone); !composites.empty(); composites = collect(clone))
      for (mt::DecomposeOpInterface op : composites) {
        OpBuilder builder(op);
        op->getResult(0).replaceAllUsesWith(op.decompose(builder));
        op->erase();
      }
    ModelTable decomposed(clone);
    decomposed.findForward();
    for (Operation &op : clone.getBody().front())
      if (decomposed.counts(op) && op.getNumResults())
        addCost(op);
  }

  static SmallVector<mt::DecomposeOpInterface> collect(mt::ModelOp model) {
    SmallVector<mt::DecomposeOpInterface> composites;
    model.walk([&](mt::DecomposeOpInterface op) { composites.push_back(op); });
    return composites;
  }

  void addCost(Operation &op) {
    auto found = rows.find(layerOf(op));
    if (found == rows.end())
      return;
    Row &row = found->second;
    if (auto cost = dyn_cast<mt::CostOpInterface>(op))
      row.flops += cost.getFlops();
    if (Type type = op.getResult(0).getType(); mt::isSplit(type) && !isa<mt::InputOp>(op))
      row.bytes += bytesOf(type);
  }

  std::string table() const {
    std::vector<std::array<std::string, 5>> lines = {{"Layer (kind)", "Output Shape", "Param #", "FLOPs", "Bytes"}};
    for (const auto &[name, row] : rows) {
      std::string kind = row.kind.empty() ? "" : " (" + row.kind + ")";
      lines.push_back({name + kind, row.shape ? shapeText(row.shape) : "-", grouped(row.parameters), grouped(row.flops),
                       grouped(row.bytes)});
    }
    std::array<size_t, 5> widths = {};
    for (const auto &line : lines)
      for (size_t i = 0; i < line.size(); ++i)
        widths[i] = std::max(widths[i], line[i].size());
    auto rule = [&](const char *left, const char *middle, const char *right, const char *dash) {
      std::string text = left;
      for (size_t i = 0; i < widths.size(); ++i) {
        for (size_t n = 0; n < widths[i] + 2; ++n)
          text += dash;
        text += i + 1 < widths.size() ? middle : right;
      }
      return text + "\n";
    };
    std::string text = rule("┏", "┳", "┓", "━");
    for (size_t l = 0; l < lines.size(); ++l) {
      const char *bar = l == 0 ? "┃" : "│";
      for (size_t i = 0; i < widths.size(); ++i) {
        std::string space(widths[i] - lines[l][i].size(), ' ');
        text += bar + std::string(" ") + (i < 2 ? lines[l][i] + space : space + lines[l][i]) + " ";
      }
      text += bar + std::string("\n");
      if (l + 1 < lines.size())
        text += l == 0 ? rule("┡", "╇", "┩", "━") : rule("├", "┼", "┤", "─");
    }
    return text + rule("└", "┴", "┘", "─");
  }

  // Which variables an mt.update of the model's text assigns; empty for an optimizer.
  std::string updateText() {
    mt::UpdateOp update = model.findUpdate();
    if (!update)
      return "";
    int64_t assigned = 0, state = 0;
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
      if (model.findAssign(variable.getName()))
        ++(variable.isOfOptimizer() ? state : assigned);
    return " Optimizer: update of " + std::to_string(assigned) + " variables and " + std::to_string(state) +
           " of its own\n";
  }

  std::string totals() {
    int64_t flops = 0, bytes = 0;
    for (const auto &[name, row] : rows) {
      flops += row.flops;
      bytes += row.bytes;
    }
    auto size = [](int64_t bytes) { return " (" + bytesText(static_cast<uint64_t>(bytes)) + ")\n"; };
    return " Total params: " + grouped(trainable + frozen + slots) + size(variableBytes + slotBytes) +
           " Trainable params: " + grouped(trainable) + size(trainable * 4) +
           " Non-trainable params: " + grouped(frozen) + size(frozen * 4) + " Optimizer params: " + grouped(slots) +
           size(slotBytes) + updateText() + " Forward pass of a sample: " + flopsText(static_cast<uint64_t>(flops)) +
           ", " + bytesText(static_cast<uint64_t>(bytes)) + " of values\n";
  }

  mt::ModelOp model;
  llvm::SmallSetVector<Operation *, 32> forward;
  llvm::MapVector<std::string, Row, std::map<std::string, unsigned>> rows;
  int64_t trainable = 0, frozen = 0, variableBytes = 0;
  int64_t slots = 0, slotBytes = 0; // elements and bytes of the optimizer's variables
};

} // namespace

std::string modelTable(mt::ModelOp model) { return ModelTable(model).print(); }

} // namespace mtc
