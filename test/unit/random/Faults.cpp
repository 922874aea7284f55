// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/Faults.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace mtc::test {
namespace {

// Changes the first op of a kind in train_step; false where there is none.
template <typename Op> bool change(ModuleOp module, llvm::function_ref<bool(Op)> edit) {
  return module.lookupSymbol("train_step")
      ->walk([&](Op op) { return edit(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}
template <typename Op> bool bypass(Op op) {
  if (op->getResult(0).getType() != op->getOperand(0).getType() || op->use_empty())
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}
// The same op with another kind: mt.add for mt.sub.
template <typename From, typename To> bool exchange(ModuleOp module) {
  return change<From>(module, [](From op) {
    if (op->use_empty() || !isa<FloatType>(getElementTypeOrSelf(op.getType())))
      return false;
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(To::create(builder, op.getLoc(), op.getLhs(), op.getRhs()));
    op->erase();
    return true;
  });
}
bool forgetAssign(ModuleOp module) {
  return change<mt::AssignOp>(module, [](mt::AssignOp op) { return op.erase(), true; });
}

const Fault table[] = {
    {"a gradient's sign", "mt-decompose", exchange<mt::SubOp, mt::AddOp>},
    {"a gradient that is not accumulated", "mt-decompose",
     [](ModuleOp m) { return change<mt::AddOp>(m, [](mt::AddOp op) { return bypass(op); }); }},
    {"a divisor that is a factor", "mt-decompose", exchange<mt::DivOp, mt::MulOp>},
    {"a variable without update", "mt-decompose", forgetAssign},
    {"a missing all-reduce", "mt-partition",
     [](ModuleOp m) { return change<shard::AllReduceOp>(m, [](shard::AllReduceOp op) { return bypass(op); }); }},
    {"an all-reduce twice", "mt-partition",
     [](ModuleOp m) {
       return change<shard::AllReduceOp>(m, [](shard::AllReduceOp op) {
         OpBuilder builder(op);
         Operation *again = builder.clone(*op);
         op->setOperand(0, again->getResult(0));
         return true;
       });
     }},
    {"a minimum that is a maximum", "mt-bucket",
     [](ModuleOp m) {
       return change<mt::ReduceOp>(m, [](mt::ReduceOp op) {
         return op.getKind() == mt::Reduction::min && (op.setKind(mt::Reduction::max), true);
       });
     }},
    {"swapped results of a kernel", "mt-fuse",
     [](ModuleOp m) {
       return change<mt::KernelOp>(m, [](mt::KernelOp op) {
         for (unsigned i = 1; i < op.getNumResults(); ++i)
           if (op.getResult(i).getType() == op.getResult(0).getType() && !op.getResult(i).use_empty()) {
             op.getResult(0).replaceAllUsesWith(op.getResult(i));
             return true;
           }
         return false;
       });
     }},
    {"an epilogue without its last op", "mt-fuse",
     [](ModuleOp m) { return change<mt::TanhOp>(m, [](mt::TanhOp op) { return bypass(op); }); }},
    {"a constant of another kernel", "mt-fuse",
     [](ModuleOp m) {
       return change<mt::ConstantOp>(m, [](mt::ConstantOp op) {
         auto value = dyn_cast<DenseFPElementsAttr>(op.getValue());
         if (!value)
           return false;
         op.setValueAttr(DenseElementsAttr::get(value.getType(), 0.625f));
         return true;
       });
     }},

    {"an accuracy that counts misses", "mt-decompose",
     [](ModuleOp m) {
       return change<mt::CompareOp>(
           m, [](mt::CompareOp op) { return op.getKind() == mt::Compare::eq && (op.setKind(mt::Compare::ne), true); });
     }},
    {"the smallest for the largest", "mt-fuse",
     [](ModuleOp m) {
       return change<mt::ArgmaxOp>(m, [](mt::ArgmaxOp op) {
         OpBuilder builder(op);
         op.getOperandMutable().assign(mt::NegOp::create(builder, op.getLoc(), op.getOperand()));
         return true;
       });
     }},
    {"a relu that is forgotten", "mt-fuse",
     [](ModuleOp m) { return change<mt::ReluOp>(m, [](mt::ReluOp op) { return bypass(op); }); }},
    {"an update that reads another's gradient", "plan-check",
     [](ModuleOp m) {
       return change<plan::LaunchOp>(m, [](plan::LaunchOp op) {
         for (unsigned i = 0; op.getShare() && i + 1 < op.getReads().size(); ++i)
           if (op.getReads()[i] != op.getReads()[i + 1] &&
               op.getReads()[i].getType() == op.getReads()[i + 1].getType()) {
             Value first = op.getReads()[i];
             op.getReadsMutable()[i].assign(op.getReads()[i + 1]);
             op.getReadsMutable()[i + 1].assign(first);
             return true;
           }
         return false;
       });
     }},
    {"buffers in one place", "plan-check",
     [](ModuleOp m) {
       plan::BufferOp first;
       bool moved = false;
       m.lookupSymbol("train_step")->walk([&](plan::BufferOp buffer) {
         if (buffer.getSpace() != plan::Space::arena)
           return;
         if (first)
           buffer.setOffsets(first.getOffsets()), moved = true;
         else
           first = buffer;
       });
       return moved;
     }},
    {"kernels exchanged", "plan-check",
     [](ModuleOp m) {
       std::map<std::pair<std::vector<void *>, unsigned>, plan::LaunchOp> seen;
       return change<plan::LaunchOp>(m, [&](plan::LaunchOp op) {
         std::vector<void *> types;
         for (Value buffer : op.getOperands())
           types.push_back(const_cast<void *>(buffer.getType().getAsOpaquePointer()));
         auto [other, fresh] = seen.insert({{types, op.getReads().size()}, op});
         if (fresh || other->second.getKernel() == op.getKernel())
           return false;
         op.setKernel(other->second.getKernel());
         return true;
       });
     }},
    {"tiles of rows that are never run", "plan-codegen",
     [](ModuleOp m) {
       bool found = false;
       m.walk([&](plan::KernelOp kernel) {
         if (int64_t rows = kernel.getRowsPerTile().value_or(0); rows > 0) {
           kernel.setRowsPerTile(rows * 16);
           found = true;
         }
       });
       return found;
     }},
    {"a map kernel's last elements", "plan-codegen",
     [](ModuleOp m) {
       bool found = false;
       m.lookupSymbol("train_step")->walk([&](plan::LaunchOp op) {
         if (m.lookupSymbol<plan::KernelOp>(op.getKernel()).getKind() != mt::KernelKind::elementwise)
           return;
         SmallVector<int64_t> counts(op.getCounts());
         for (int64_t &count : counts)
           if (count > 1)
             --count, found = true;
         op.setCounts(counts);
       });
       return found;
     }},
};

} // namespace

ArrayRef<Fault> faults() { return table; }

} // namespace mtc::test
