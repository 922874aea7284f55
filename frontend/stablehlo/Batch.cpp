// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Batch.h"

#include "frontend/stablehlo/Attributes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace mtc::stablehlo {

using logical::Refused;
using logical::Size;

static ArrayRef<int64_t> fileSizes(mlir::Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getShape() : ArrayRef<int64_t>();
}

static SmallVector<int64_t> listOf(Operation &op, StringRef name) {
  Attribute found = op.getAttr(name);
  if (auto list = dyn_cast_or_null<DenseI64ArrayAttr>(found))
    return SmallVector<int64_t>(list.asArrayRef());
  if (auto elements = dyn_cast_or_null<DenseIntElementsAttr>(found);
      elements && elements.getElementType().isInteger(64) && elements.getNumElements() <= 1024)
    return SmallVector<int64_t>(elements.getValues<int64_t>());
  return {};
}

static std::string opaqueText(Operation &op, StringRef name) {
  auto found = dyn_cast_or_null<OpaqueAttr>(op.getAttr(name));
  return found ? found.getAttrData().str() : std::string();
}

// Whether a list has as many numbers as there are axes, and what it says of one is the number of no change.
static bool stays(ArrayRef<int64_t> list, size_t axis, int64_t none, size_t stride = 1) {
  for (size_t i = axis * stride; i < (axis + 1) * stride; ++i)
    if (i < list.size() && list[i] != none)
      return false;
  return true;
}

logical::Shape BatchAxes::shapeOf(mlir::Value value) const {
  logical::Shape shape;
  for (auto [axis, size] : llvm::enumerate(fileSizes(value))) {
    bool batch = has(value, axis);
    if (batch && size % samples)
      throw Refused("an axis of " + std::to_string(size) + " elements, which are no multiple of the batch of " +
                    std::to_string(samples) + ": it mixes samples");
    shape.push_back(batch ? Size(size / samples, true) : Size(size));
  }
  return shape;
}

void BatchAxes::connect(mlir::Value a, size_t i, mlir::Value b, size_t j) {
  ArrayRef<int64_t> x = fileSizes(a), y = fileSizes(b);
  if (i >= x.size() || j >= y.size() || x[i] != y[j])
    return;
  edges[{a, i}].push_back({b, j});
  edges[{b, j}].push_back({a, i});
}

// Batches that stand one after the other.
void BatchAxes::connectBatches(mlir::Value part, mlir::Value whole, size_t axis) {
  ArrayRef<int64_t> x = fileSizes(part), y = fileSizes(whole);
  if (axis >= x.size() || axis >= y.size() || x[axis] % samples || y[axis] % samples)
    return;
  edges[{part, axis}].push_back({whole, axis});
  edges[{whole, axis}].push_back({part, axis});
}

void BatchAxes::connectAll(mlir::Value a, mlir::Value b) {
  if (fileSizes(a).size() == fileSizes(b).size())
    for (size_t axis = 0; axis < fileSizes(a).size(); ++axis)
      connect(a, axis, b, axis);
}

void BatchAxes::connectBlock(ValueRange outside, ValueRange inside) {
  for (auto [a, b] : llvm::zip(outside, inside))
    connectAll(a, b);
}

void BatchAxes::relateElements(Operation &op) {
  for (mlir::Value operand : op.getOperands())
    for (mlir::Value result : op.getResults())
      connectAll(operand, result);
}

void BatchAxes::relateBroadcast(Operation &op) {
  for (auto [from, to] : llvm::enumerate(listOf(op, "broadcast_dimensions")))
    if (to >= 0)
      connect(op.getOperand(0), from, op.getResult(0), static_cast<size_t>(to));
}

// Axes of the result: the common ones, the free ones of both.
void BatchAxes::relateProduct(Operation &op) {
  std::string text = opaqueText(op, "dot_dimension_numbers");
  SmallVector<int64_t> contracted[2] = {listIn(text, "lhs_contracting_dimensions"),
                                        listIn(text, "rhs_contracting_dimensions")},
                       common[2] = {listIn(text, "lhs_batching_dimensions"), listIn(text, "rhs_batching_dimensions")};
  if (op.getName().stripDialect() == "dot") {
    contracted[0] = {static_cast<int64_t>(fileSizes(op.getOperand(0)).size()) - 1};
    contracted[1] = {0};
  }
  for (const auto *pairs : {&contracted, &common})
    for (auto [i, j] : llvm::zip((*pairs)[0], (*pairs)[1]))
      if (i >= 0 && j >= 0)
        connect(op.getOperand(0), static_cast<size_t>(i), op.getOperand(1), static_cast<size_t>(j));
  size_t next = common[0].size();
  for (int side : {0, 1}) {
    for (auto [place, axis] : llvm::enumerate(common[side]))
      if (axis >= 0)
        connect(op.getOperand(side), static_cast<size_t>(axis), op.getResult(0), place);
    for (size_t axis = 0; axis < fileSizes(op.getOperand(side)).size(); ++axis)
      if (!llvm::is_contained(contracted[side], static_cast<int64_t>(axis)) &&
          !llvm::is_contained(common[side], static_cast<int64_t>(axis)))
        connect(op.getOperand(side), axis, op.getResult(0), next++);
  }
}

// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]". With groups the features of a kernel are not those of the images.
void BatchAxes::relateConvolution(Operation &op) {
  SmallVector<SmallVector<StringRef>> lists;
  std::string text = opaqueText(op, "dimension_numbers");
  for (StringRef rest = text; rest.contains('[');) {
    rest = rest.split('[').second;
    SmallVector<StringRef> &parts = lists.emplace_back();
    rest.split(']').first.split(parts, ',');
    for (StringRef &part : parts)
      part = part.trim();
  }
  if (lists.size() != 3)
    return;
  auto place = [&](size_t list, StringRef letter) {
    return static_cast<size_t>(llvm::find(lists[list], letter) - lists[list].begin());
  };
  auto groups = [&](StringRef name) {
    auto found = op.getAttrOfType<IntegerAttr>(name);
    return found ? found.getInt() : 1;
  };
  mlir::Value images = op.getOperand(0), kernel = op.getOperand(1), result = op.getResult(0);
  if (groups("batch_group_count") == 1)
    connect(images, place(0, "b"), result, place(2, "b"));
  connect(kernel, place(1, "o"), result, place(2, "f"));
  if (groups("feature_group_count") == 1)
    connect(images, place(0, "f"), kernel, place(1, "i"));
}

void BatchAxes::relateReduction(Operation &op) {
  SmallVector<int64_t> gone = listOf(op, "dimensions");
  size_t count = op.getNumOperands() / 2, kept = 0;
  for (size_t i = 1; i < count; ++i)
    connectAll(op.getOperand(0), op.getOperand(i));
  for (size_t axis = 0; count && axis < fileSizes(op.getOperand(0)).size(); ++axis) {
    if (llvm::is_contained(gone, static_cast<int64_t>(axis)))
      continue;
    for (mlir::Value result : op.getResults())
      connect(op.getOperand(0), axis, result, kept);
    ++kept;
  }
}

// The axes along which windows are of one element.
void BatchAxes::relateWindows(Operation &op, mlir::Value operand) {
  SmallVector<int64_t> taps = listOf(op, "window_dimensions"), strides = listOf(op, "window_strides"),
                       pads = listOf(op, "padding");
  for (size_t axis = 0; axis < fileSizes(op.getOperand(0)).size(); ++axis)
    if (stays(taps, axis, 1) && stays(strides, axis, 1) && stays(pads, axis, 0, 2))
      connect(operand, axis, op.getResult(0), axis);
}

void BatchAxes::relateReducedWindows(Operation &op) { relateWindows(op, op.getOperand(0)); }

// select_and_scatter: the result is like the operand, and the source like the windows.
void BatchAxes::relateScattered(Operation &op) {
  connectAll(op.getOperand(0), op.getResult(0));
  relateWindows(op, op.getOperand(1));
}

// Parts: the axes of which all stays.
void BatchAxes::relateParts(Operation &op) {
  StringRef kind = op.getName().stripDialect();
  auto along = op.getAttrOfType<IntegerAttr>("dimension");
  for (mlir::Value operand : op.getOperands().take_front(kind == "concatenate"            ? op.getNumOperands()
                                                         : kind == "dynamic_update_slice" ? 2
                                                                                          : 1))
    for (size_t axis = 0; axis < fileSizes(operand).size(); ++axis) {
      bool whole = kind != "concatenate" || !along || along.getInt() != static_cast<int64_t>(axis);
      if (kind == "pad")
        whole = stays(listOf(op, "edge_padding_low"), axis, 0) && stays(listOf(op, "edge_padding_high"), axis, 0) &&
                stays(listOf(op, "interior_padding"), axis, 0);
      if (whole)
        connect(operand, axis, op.getResult(0), axis);
      else if (kind == "concatenate")
        connectBatches(operand, op.getResult(0), axis);
    }
}

// `slices` of a value at indices have the axes of the value at `offsets`, but for those in `gone`, and the axes of the
// indices in between. `batching`: names of the lists of axes that the value and the indices share.
void BatchAxes::relateSlices(Operation &op, StringRef text, mlir::Value slices, StringRef offsets, StringRef gone,
                             StringRef batching, StringRef idBatching) {
  SmallVector<int64_t> windows = listIn(text, offsets), skipped = listIn(text, gone), shared = listIn(text, batching);
  int64_t vector = numberIn(text, "index_vector_dim").value_or(0);
  mlir::Value value = op.getOperand(0), ids = op.getOperand(1);
  for (auto [i, j] : llvm::zip(shared, listIn(text, idBatching)))
    connect(value, static_cast<size_t>(i), ids, static_cast<size_t>(j));
  skipped.append(shared);
  size_t part = 0, id = 0;
  for (size_t axis = 0; axis < fileSizes(slices).size(); ++axis) {
    if (llvm::is_contained(windows, static_cast<int64_t>(axis))) {
      while (llvm::is_contained(skipped, static_cast<int64_t>(part)))
        ++part;
      connect(value, part++, slices, axis);
      continue;
    }
    id += static_cast<int64_t>(id) == vector;
    connect(ids, id++, slices, axis);
  }
}

void BatchAxes::relateGather(Operation &op) {
  relateSlices(op, opaqueText(op, "dimension_numbers"), op.getResult(0), "offset_dims", "collapsed_slice_dims",
               "operand_batching_dims", "start_indices_batching_dims");
}

void BatchAxes::relateScatter(Operation &op) {
  connectAll(op.getOperand(0), op.getResult(0));
  relateSlices(op, opaqueText(op, "scatter_dimension_numbers"), op.getOperand(2), "update_window_dims",
               "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims");
}

// Loops and branches.
void BatchAxes::relateRegions(Operation &op) {
  bool loop = op.getName().stripDialect() == "while";
  for (Region &region : op.getRegions()) {
    if (!region.hasOneBlock() || region.front().empty())
      continue;
    Block &block = region.front();
    visit(block);
    if (loop)
      connectBlock(op.getOperands(), block.getArguments());
    if (!loop || region.getRegionNumber() == 1)
      connectBlock(block.back().getOperands(), op.getResults());
  }
  if (loop)
    connectBlock(op.getOperands(), op.getResults());
}

void BatchAxes::relate(Operation &op) {
  using Relate = void (BatchAxes::*)(Operation &);
  static constexpr std::pair<StringRef, Relate> kinds[] = {{"broadcast_in_dim", &BatchAxes::relateBroadcast},
                                                           {"dot_general", &BatchAxes::relateProduct},
                                                           {"dot", &BatchAxes::relateProduct},
                                                           {"convolution", &BatchAxes::relateConvolution},
                                                           {"reduce", &BatchAxes::relateReduction},
                                                           {"reduce_window", &BatchAxes::relateReducedWindows},
                                                           {"select_and_scatter", &BatchAxes::relateScattered},
                                                           {"concatenate", &BatchAxes::relateParts},
                                                           {"slice", &BatchAxes::relateParts},
                                                           {"dynamic_slice", &BatchAxes::relateParts},
                                                           {"dynamic_update_slice", &BatchAxes::relateParts},
                                                           {"pad", &BatchAxes::relateParts},
                                                           {"gather", &BatchAxes::relateGather},
                                                           {"scatter", &BatchAxes::relateScatter},
                                                           {"while", &BatchAxes::relateRegions},
                                                           {"if", &BatchAxes::relateRegions},
                                                           {"case", &BatchAxes::relateRegions}};
  StringRef kind = op.getName().stripDialect();
  if (kind == "reshape" && op.getNumOperands() == 1 && op.getNumResults() == 1) {
    reshapes[op.getOperand(0)].push_back(op.getResult(0));
    reshapes[op.getResult(0)].push_back(op.getOperand(0));
    return;
  }
  if (kind == "transpose" && op.getNumOperands() == 1 && op.getNumResults() == 1) {
    for (auto [to, from] : llvm::enumerate(listOf(op, "permutation")))
      if (from >= 0)
        connect(op.getOperand(0), static_cast<size_t>(from), op.getResult(0), to);
    return;
  }
  const auto *found = llvm::find_if(kinds, [&](const auto &entry) { return entry.first == kind; });
  if (found == std::end(kinds))
    return relateElements(op);
  bool isRegion = found->second == &BatchAxes::relateRegions;
  size_t operands = kind == "scatter" || kind == "select_and_scatter" ? 3
                    : kind == "gather" || kind == "dot" || kind == "dot_general" || kind == "convolution" ||
                            kind == "dynamic_update_slice"
                        ? 2
                        : 1;
  if (isRegion || (op.getNumOperands() >= operands && op.getNumResults() >= 1))
    (this->*found->second)(op);
}

void BatchAxes::visit(Block &block) {
  for (Operation &op : block)
    relate(op);
}

void BatchAxes::mark(mlir::Value value, size_t axis) {
  if (axes[value].insert(axis).second)
    left.push_back({value, axis});
}

// The axis of the other shape in which the batch of this one lies: behind as many elements.
void BatchAxes::follow(mlir::Value from, size_t axis, mlir::Value to) {
  ArrayRef<int64_t> x = fileSizes(from), y = fileSizes(to);
  double before = 1, inside = static_cast<double>(x[axis]), passed = 1;
  for (size_t i = 0; i < axis; ++i)
    before *= static_cast<double>(x[i]);
  bool exact = x[axis] == samples;
  for (size_t j = 0; j < y.size(); passed *= static_cast<double>(y[j++])) {
    auto size = static_cast<double>(y[j]);
    // The whole of this axis lies in one of the other side's, or that one is the batch within this axis.
    bool within = passed <= before && passed * size >= before * inside && y[j] != 1;
    bool part = !exact && passed >= before && passed * size <= before * inside && y[j] % samples == 0;
    if (within || part)
      return mark(to, j);
  }
}

BatchAxes::BatchAxes(Block &body, ArrayRef<mlir::Value> starts, int64_t samples) : samples(samples) {
  visit(body);
  for (mlir::Value start : starts)
    mark(start, 0);
  while (!left.empty()) {
    Node node = left.back();
    left.pop_back();
    if (auto found = edges.find({node.value, node.axis}); found != edges.end())
      for (const Node &other : found->second)
        mark(other.value, other.axis);
    if (auto found = reshapes.find(node.value); found != reshapes.end())
      for (mlir::Value other : found->second)
        follow(node.value, node.axis, other);
  }
}

// Constants and what is made of nothing else, each of which belongs to one user afterwards: one constant may serve a
// value with the batch and one without.
static void separate(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    StringRef kind = op.getName().stripDialect();
    bool made = kind == "iota" ||
                (kind == "broadcast_in_dim" && op.getNumOperands() == 1 && fileSizes(op.getOperand(0)).empty());
    auto elements = kind == "constant" ? op.getAttrOfType<DenseElementsAttr>("value") : DenseElementsAttr();
    if ((!made && !(elements && elements.isSplat())) || op.getNumResults() != 1 || op.use_empty() ||
        op.getResult(0).hasOneUse())
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op.getResult(0).getUses()))) {
      OpBuilder builder(&op);
      use.set(builder.clone(op)->getResult(0));
    }
  }
}

LogicalResult inlineCalls(Operation *entry, const std::map<std::string, Operation *> &functions) {
  constexpr int64_t maxInlined = 500000;
  int64_t ops = 0;
  std::vector<std::pair<Operation *, int>> calls; // with their depth
  auto collect = [&](Operation *within, int depth) {
    within->walk([&](Operation *op) {
      ++ops;
      if (op != entry && op->getName().getStringRef() == "func.call")
        calls.push_back({op, depth});
    });
  };
  collect(entry, 0);
  while (!calls.empty()) {
    auto [call, depth] = calls.back();
    calls.pop_back();
    auto callee = call->getAttrOfType<FlatSymbolRefAttr>("callee");
    auto found = callee ? functions.find(callee.getValue().str()) : functions.end();
    if (found == functions.end())
      continue; // refused when it is evaluated
    constexpr int maxCalls = 64;
    if (depth >= maxCalls)
      return call->emitError("expected calls of depth 64 at most, found more");
    Block &body = found->second->getRegion(0).front();
    if (body.getNumArguments() != call->getNumOperands() || body.back().getNumOperands() != call->getNumResults())
      return call->emitError("expected as many operands and results as the function has");
    IRMapping map;
    map.map(body.getArguments(), call->getOperands());
    OpBuilder builder(call);
    for (Operation &op : llvm::make_range(body.begin(), std::prev(body.end())))
      collect(builder.clone(op, map), depth + 1);
    if (ops > maxInlined)
      return call->emitError("expected at most 500000 ops with all calls, found more");
    for (auto [result, value] : llvm::zip_equal(call->getResults(), body.back().getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    call->erase();
  }
  entry->walk([](Block *block) { separate(*block); });
  return success();
}

} // namespace mtc::stablehlo
