// SPDX-License-Identifier: Apache-2.0
//
// mt-pad-channels: adds channels of zeros to images of few channels, and folds as many adjacent columns as the stride
// of the convolution into one column, so that GPU kernels copy 8 or 16 bytes at once (docs/ir.md, "Channels that pad
// images"):
//
//   conv2d (pad border x), w strides [2, 2]   ->   conv2d (reshape (pad x)), (reshape (pad w)) strides [2, 1]
#include "compiler/Passes.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_PADCHANNELS
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Images with this many channels or more are left alone: they are rarely inputs, and gain less.
constexpr int64_t fewestWide = 16;
// Elements of 16 bits in an access of 16 bytes.
constexpr int64_t wholeAccess = 8;

// Form of the images in which `fold` adjacent columns are one column with the channels of all of them; `channels` is
// the number of channels of one original column. Along the columns: the number of columns of the images, of taps of the
// kernel, of zero taps that precede the kernel (`before`, in original columns), and the padding.
struct Form {
  int64_t channels = 0, fold = 1, columns = 0, taps = 0, before = 0, low = 0, high = 0;
};

// A window that begins inside a folded column gets leading taps of zeros.
std::optional<Form> foldedForm(const mt::Window &window) {
  int64_t fold = window.stride;
  Form form;
  form.fold = fold;
  form.columns = llvm::divideCeil(window.inputs, fold);
  form.low = llvm::divideCeil(window.low, fold);
  form.before = form.low * fold - window.low;
  form.taps = llvm::divideCeil(form.before + window.taps, fold);
  form.high = window.outputs - 1 + form.taps - form.columns - form.low;
  // Zero taps cost as much as other taps, so their number is limited. A convolution must read the last columns.
  bool isDense = window.dilation == 1 && 2 * form.taps * fold <= 3 * window.taps;
  bool fits = fold > 1 && isDense && form.high >= 0 && form.high < form.taps;
  return fits ? std::optional(form) : std::nullopt;
}

// The number of channels after padding: the smallest with which copies of 4 elements, or of 2, are possible. One
// channel becomes two and not four, because four would cost more multiplications.
int64_t paddedChannels(int64_t channels, int64_t fold) {
  bool areWhole = channels * fold % wholeAccess == 0;
  return areWhole ? channels : static_cast<int64_t>(llvm::alignTo(channels, channels <= 2 ? 2 : 4));
}

// The form of the images with the largest copies; none if the convolution already has it.
std::optional<Form> formOf(const mt::Convolution &convolution) {
  const mt::Window &window = convolution.columns;
  int64_t channels = convolution.channels;
  if (convolution.groups != 1 || channels >= fewestWide || channels % wholeAccess == 0)
    return {};
  std::optional<Form> folded = foldedForm(window);
  bool helps = folded && paddedChannels(channels, folded->fold) * folded->fold % wholeAccess == 0;
  Form form = helps ? *folded : Form{0, 1, window.inputs, window.taps, 0, window.low, window.high};
  form.channels = paddedChannels(channels, form.fold);
  return form.channels == channels && form.fold == 1 ? std::nullopt : std::optional(form);
}

// Whether the value is the result of a product, or is computed from one. The kernel of the product stores the value in
// 16 bits, so padding it would need a copy.
bool comesFromProduct(Value value) {
  llvm::SetVector<Value> sources;
  sources.insert(value);
  for (size_t i = 0; i < sources.size(); ++i) {
    Operation *op = sources[i].getDefiningOp();
    if (op->hasTrait<mt::Contraction>())
      return true;
    sources.insert_range(op->getOperands());
  }
  return false;
}

bool isAdded(int64_t elements) { return elements != 0; }

// The border of zeros that a pad adds to images: [top, bottom, left, right]. Empty for any other pad.
SmallVector<int64_t> borderOf(mt::PadOp pad) {
  ArrayRef<int64_t> low = pad.getLow(), high = pad.getHigh();
  if (!pad.getValue().isZero() || llvm::any_of(pad.getInterior(), isAdded) || low[2] != 0 || high[2] != 0)
    return {};
  return {low[0], high[0], low[1], high[1]};
}

// Moves a border of zeros to the padding of the convolution, so that the border is not stored.
void absorbBorder(mt::Conv2DOp op) {
  auto pad = op.getInput().getDefiningOp<mt::PadOp>();
  SmallVector<int64_t> padding = pad ? borderOf(pad) : SmallVector<int64_t>();
  if (padding.empty())
    return;
  mt::Convolution convolution = op.getConvolution();
  for (auto [axis, own] : llvm::enumerate(op.getPadding())) {
    padding[axis] += own;
    // The padding must be smaller than the reach of the window.
    if (padding[axis] >= (axis < 2 ? convolution.rows : convolution.columns).reach())
      return;
  }
  op.getInputMutable().assign(pad.getOperand());
  op.setPadding(padding);
}

// Rewrites the convolutions of a model. Images and kernels that several convolutions read are padded once, so that they
// have one gradient.
class Channels {
public:
  void pad(mt::Conv2DOp op) {
    if (!formOf(op.getConvolution()) || mt::precisionOf(op) || comesFromProduct(op.getInput()))
      return;
    absorbBorder(op);
    mt::Convolution convolution = op.getConvolution();
    std::optional<Form> form = formOf(convolution);
    if (!form) // with the new padding, no form may be left
      return;
    Value images = inForm(op, op.getInput(), *form, form->columns, /*before=*/0);
    Value kernel = inForm(op, op.getKernel(), *form, form->taps, form->before);
    op->setOperands({images, kernel});
    op.setPadding({convolution.rows.low, convolution.rows.high, form->low, form->high});
    if (form->fold > 1)
      op.setStrides({convolution.rows.stride, 1});
  }

private:
  // Pads and folds a value to `columns` columns. Columns are the second axis and channels the third, after the batch
  // axis of images and in kernels.
  Value inForm(mt::Conv2DOp op, Value value, const Form &form, int64_t columns, int64_t before) {
    RankedTensorType type = tensorOf(value);
    bool split = mt::isSplit(type);
    SmallVector<int64_t> shape(type.getShape()), low(type.getRank() - split, 0), high = low;
    low[1] = before;
    high[1] = columns * form.fold - before - shape[split + 1];
    high[2] = form.channels - shape[split + 2];
    shape[split + 1] = columns;
    shape[split + 2] = form.fold * form.channels;
    Value &result = known[{value, type.clone(shape), before}];
    if (result)
      return result;
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfterValue(value);
    result = value;
    if (llvm::any_of(low, isAdded) || llvm::any_of(high, isAdded))
      result = mt::PadOp::create(builder, op.getLoc(), value, low, high, ArrayRef<int64_t>{}, APFloat(0.0f));
    if (form.fold > 1)
      result = mt::ReshapeOp::create(builder, op.getLoc(), type.clone(shape), result);
    return result;
  }

  llvm::DenseMap<std::tuple<Value, Type, int64_t>, Value> known;
};

struct PadChannels : impl::PadChannelsBase<PadChannels> {
  using PadChannelsBase::PadChannelsBase;

  void runOnOperation() override {
    if (!mt::Compilation(getOperation()).isHalf())
      return;
    for (auto model : getOperation().getOps<mt::ModelOp>()) {
      Channels channels;
      for (auto op : llvm::make_early_inc_range(model.getBody().front().getOps<mt::Conv2DOp>()))
        channels.pad(op);
    }
  }
};

} // namespace
} // namespace mtc
