// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/KernelName.h"
#include "dialects/mt/KernelKinds.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

static Operation *heaviest(const FusionGroup &group) {
  Operation *found = group.ops.front();
  int64_t most = -1;
  for (Operation *op : group.ops)
    if (auto cost = dyn_cast<mt::CostOpInterface>(op); cost && cost.getFlops() > most) {
      found = op;
      most = cost.getFlops();
    }
  return found;
}

Location locationOf(const FusionGroup &group) { return heaviest(group)->getLoc(); }

// The only name in a location; empty if the location has no name or several.
static StringRef layerOf(Location location) {
  llvm::SmallSetVector<StringRef, 2> names;
  location->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    if (!name)
      return WalkResult::advance();
    names.insert(name.getName().getValue());
    return WalkResult::skip();
  });
  return names.size() == 1 && mt::isText(names[0]) ? names[0] : "";
}

// The variable that a value is, possibly transposed or rounded.
static mt::ReadOp variableOf(Value value) {
  if (auto transpose = value.getDefiningOp<mt::TransposeOp>())
    value = transpose.getOperand();
  if (auto kernel = value.getDefiningOp<mt::KernelOp>();
      kernel && (kernel.getKind() == KernelKind::transpose || kernel.getKind() == KernelKind::elementwise))
    value = kernel.getOperand(0);
  return value.getDefiningOp<mt::ReadOp>();
}

// The layer of the op with most of the work. If the location of the op has no layer, the layer of the variable by which
// the op multiplies.
static StringRef layerOf(const FusionGroup &group) {
  Operation *op = heaviest(group);
  if (StringRef layer = layerOf(op->getLoc()); !layer.empty() || op->getNumOperands() < 2)
    return layer;
  mt::ReadOp variable = variableOf(op->getOperand(1));
  return variable && variable.getName().contains('/') ? variable.getName().rsplit('/').first : "";
}

// A prefix of at most `bytes` bytes that ends between two characters.
static StringRef shortened(StringRef text, size_t bytes) {
  if (text.size() <= bytes)
    return text;
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (bytes > 0 && continues(text[bytes]))
    --bytes;
  return text.take_front(bytes);
}

static std::string joined(StringRef layer, const Twine &what) {
  constexpr size_t longest = 48;
  return layer.empty() ? what.str() : (shortened(layer, longest) + "/" + what).str();
}

static std::string wordOf(Operation *op) {
  auto own = dyn_cast<mt::KernelOpInterface>(op);
  return own ? own.getWord() : op->getName().stripDialect().str();
}

static bool isTransposed(Value value) {
  auto kernel = value.getDefiningOp<mt::KernelOp>();
  return value.getDefiningOp<mt::TransposeOp>() || (kernel && kernel.getKind() == KernelKind::transpose);
}

static std::string productWord(Operation *op) {
  auto matmul = dyn_cast<mt::MatmulOp>(op);
  if (!matmul)
    return wordOf(op);
  bool transposed = matmul.getTransposeB() != isTransposed(matmul.getRhs());
  return transposed && variableOf(matmul.getRhs()) ? "input_gradient" : "matmul";
}

// Words for the ops of a kernel, each once: the words of the first ops, or of the op with most of the work.
static std::string wordsOf(const FusionGroup &group) {
  constexpr size_t longest = 26;
  std::string text, main;
  SmallVector<std::string> words;
  bool more = false;
  for (Operation *op : group.ops) {
    bool works = isa<mt::ElementwiseOpInterface>(op) || !mt::isPointwise(*op);
    if (!works || isa<mt::IotaOp>(op))
      continue;
    std::string word = productWord(op);
    if (op == heaviest(group))
      main = word;
    if (llvm::is_contained(words, word))
      continue;
    more |= text.size() + 1 + word.size() > longest;
    if (more)
      continue;
    words.push_back(word);
    text += (text.empty() ? "" : "+") + word;
  }
  if (more && !llvm::is_contained(words, main))
    text = main;
  return text.empty() ? "copy" : text + (more ? "+more" : "");
}

KernelNames::KernelNames(mt::ProgramOp program) {
  for (Operation &op : program.getBody().front())
    position.try_emplace(&op, position.size());
  for (auto declare : program->getParentOfType<ModuleOp>().getOps<mt::DeclareOp>())
    if (declare.getKind() == mt::VariableKind::trainable)
      trainable.insert(declare.getName());
}

// MLIR's list of uses is not in program order. MLIR's order of ops in a block would be recomputed after each new
// kernel, which takes quadratic time, so positions are computed once. The readers of a kernel's ops have not been moved
// at this point.
SmallVector<Operation *> KernelNames::usersInOrder(Operation *op) const {
  SmallVector<Operation *> users(op->getUsers());
  llvm::sort(users, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  return users;
}

// The trainable variable whose gradient a sum over the batch is; empty for any other sum.
std::string KernelNames::gradientOf(Value sum) const {
  llvm::SetVector<Operation *> reached;
  reached.insert_range(usersInOrder(sum.getDefiningOp()));
  for (size_t i = 0; i < reached.size(); ++i) {
    if (auto assign = dyn_cast<mt::AssignOp>(reached[i])) {
      if (assign.getValue().getType() == sum.getType() && trainable.contains(assign.getName()))
        return assign.getName().str();
      continue;
    }
    reached.insert_range(usersInOrder(reached[i]));
  }
  return "";
}

// The variable that a kernel updates; a variable of the model is preferred over a variable of the optimizer. Empty if
// there is none.
std::string KernelNames::updateOf(const FusionGroup &group) const {
  StringRef name;
  for (Operation *op : group.ops)
    for (Operation *user : usersInOrder(op))
      if (auto assign = dyn_cast<mt::AssignOp>(user);
          assign && (name.empty() || trainable.contains(assign.getName()))) {
        name = assign.getName();
        if (trainable.contains(name))
          return name.str();
      }
  return name.str();
}

std::string KernelNames::of(const FusionGroup &group) const {
  // largest length of a variable's name; the rest of the kernel's name has at most 14 bytes
  constexpr size_t longest = 66;
  StringRef layer = layerOf(group);
  bool alone = group.ops.size() == 1;
  if (mt::infoOf(*group.kind).isGradient || (group.kind == KernelKind::reduce && alone))
    if (std::string name = gradientOf(group.ops.back()->getResult(0)); !name.empty())
      return (shortened(name, longest) + "_gradient").str();
  if (mt::infoOf(*group.kind).isGradient)
    return joined(layer, "kernel_gradient");
  switch (*group.kind) {
  case KernelKind::reduce:
    return joined(alone ? layer : "", alone ? "sum" : "sums");
  case KernelKind::transpose:
    if (mt::ReadOp variable = variableOf(group.ops.front()->getOperand(0)))
      return (shortened(variable.getName(), longest) + "_transposed").str();
    return joined(layer, "transpose");
  case KernelKind::elementwise:
    if (std::string name = updateOf(group); !name.empty())
      return (shortened(name, longest) + "/update").str();
    return joined(layer, wordsOf(group));
  case KernelKind::attention:
  case KernelKind::attention_gradient:
    return joined(layer, mt::stringifyKernelKind(*group.kind));
  default:
    return joined(layer, wordsOf(group));
  }
}

} // namespace mtc
