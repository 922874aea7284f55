// SPDX-License-Identifier: Apache-2.0
//
// The options of a compilation, each described once: the command line of mtc, its help and manual page, the checks of
// mtc_options and the defaults all follow from a row here. An option is a field of mtc_options (runtime/abi/mtc.h), a
// row, and what reads the field.
#ifndef COMPILER_API_OPTIONTABLE_H
#define COMPILER_API_OPTIONTABLE_H

#include "runtime/abi/mtc.h"

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mtc {

enum class Form {
  value,  // a number or a text
  toggle, // without a value: 1 where it is given
  bytes,  // a number that may be written 16GiB
  index,  // one of `words`: its number
  list    // a text each time it is given, with semicolons between them
};

struct OptionRow {
  const char *group; // of the help; "": the first one
  const char *flags; // all names
  std::variant<int mtc_options::*, int64_t mtc_options::*, const char *mtc_options::*> field;
  const char *type; // what the help calls the value
  const char *help;
  Form form = Form::value;
  const char *words = "";         // "auto|none": all values that a text may have
  const char *standard = nullptr; // a text that nobody gave
  int64_t least = 0, most = std::numeric_limits<int64_t>::max(), number = 0; // range; a number that is 0
  const char *excludes = "";                                                 // an option that must not be there
};

inline std::vector<std::string> wordsOf(const OptionRow &row) {
  std::vector<std::string> words;
  for (std::string_view rest = row.words; !rest.empty();) {
    size_t end = std::min(rest.find('|'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

// Of importers too: what a model's file may lack, in the groups Training and Model. Of mtc compile alone: all others.
inline bool isOfModel(const OptionRow &row) {
  std::string_view group = row.group;
  return group == "Training" || group == "Model";
}

// clang-format off: a few lines an option, not one line a field
inline constexpr OptionRow optionTable[] = {
    {.group = "", .flags = "--batch,--batch-size", .field = &mtc_options::batch, .type = "B",
     .help = "samples per step, B (default: 32)", .least = 1, .most = int64_t{1} << 30, .number = 32},
    {.group = "", .flags = "--weights", .field = &mtc_options::weights, .type = "FILE",
     .help = "a .safetensors file of values that variables start with; those that it does not name stay as they are in "
             "the model's file"},
    {.group = "", .flags = "--seed", .field = &mtc_options::seed, .type = "S",
     .help = "of the initial values (default: 1)", .least = std::numeric_limits<int64_t>::min(), .number = 1},
    {.group = "Training", .flags = "--loss", .field = &mtc_options::loss, .type = "LOSS",
     .help = "a Keras or ONNX model's loss, as mse or sparse_categorical_crossentropy,from_logits=true"},
    {.group = "Training", .flags = "--optimizer", .field = &mtc_options::optimizer, .type = "OPTIMIZER",
     .help = "a Keras or ONNX model's optimizer, as adam or sgd,learning_rate=0.1,momentum=0.9"},
    {.group = "Training", .flags = "--metrics", .field = &mtc_options::metrics, .type = "METRICS",
     .help = "a Keras or ONNX model's metrics, as accuracy,mae; none"},
    {.group = "Training", .flags = "--drop-unsupported-metrics", .field = &mtc_options::drop_unsupported_metrics,
     .type = "", .help = "compile without metrics that are not known", .form = Form::toggle},
    {.group = "Training", .flags = "--sample-weights", .field = &mtc_options::sample_weights, .type = "",
     .help = "a Keras or ONNX model's losses and weighted metrics take weights of samples", .form = Form::toggle},
    {.group = "Training", .flags = "--freeze", .field = &mtc_options::freeze, .type = "NAMES",
     .help = "layers or variables that stay as they are, as conv1,block2_*,head/bias"},
    {.group = "Training", .flags = "--trainable", .field = &mtc_options::trainable, .type = "NAMES",
     .help = "layers or variables that are trained; all others stay as they are"},
    {.group = "Training", .flags = "--freeze-batch-norm", .field = &mtc_options::freeze_batch_norm, .type = "",
     .help = "batch normalisation computes as in prediction while training too, with the statistics of the file",
     .form = Form::toggle},
    {.group = "Training", .flags = "--no-weight-decay", .field = &mtc_options::no_weight_decay, .type = "NAMES",
     .help = "layers or variables that the optimizer's weight decay leaves out, as */bias,*/gamma"},
    {.group = "Model", .flags = "--input-shape", .field = &mtc_options::input_shape, .type = "SIZES",
     .help = "sizes of a Keras or ONNX model's input that has axes of any size, without the batch, as 224,224,3; with "
             "several inputs NAME=224,224,3, one --input-shape each",
     .form = Form::list},
    {.group = "Model", .flags = "--lengths", .field = &mtc_options::lengths, .type = "L,...",
     .help = "sequence lengths, as 64,128,256: the plan has programs for each, and a step takes the first that holds "
             "its longest sample; the model leaves the first axis behind the batch open: keras.Input((None,)), "
             "{length} in MLIR text",
     .excludes = "--input-shape"},
    {.group = "Model", .flags = "--length-input", .field = &mtc_options::length_input, .type = "NAME",
     .help = "with --lengths: the input whose last element that is not zero says how long a sample is, as a mask does "
             "(default: the longest of all inputs)"},
    {.group = "Model", .flags = "--class-names", .field = &mtc_options::class_names, .type = "NAMES",
     .help = "names of the labels 0, 1, ..., which the plan keeps: a list, cat,dog, or a file with one a line"},
    {.group = "Model", .flags = "--vocabulary", .field = &mtc_options::vocabulary, .type = "FILE",
     .help = "a text in UTF-8 whose distinct characters, in order, are the tokens 0, 1, ...: the plan keeps them"},
    {.group = "Devices and precision", .flags = "--target", .field = &mtc_options::target, .type = "TARGET",
     .help = "what runs it: cpu, or a list: cpu,cuda or cpu,cuda:sm_80,sm_90", .standard = "cpu"},
    {.group = "Devices and precision", .flags = "--shards", .field = &mtc_options::shards, .type = "R",
     .help = "slices of the batch, R: a power of two, and the most devices that can run the plan (default: 8, or the "
             "largest power of two that B allows)",
     .least = 1, .most = 65536},
    {.group = "Devices and precision", .flags = "--precision", .field = &mtc_options::precision, .type = "TYPE",
     .help = "number format of matrix products and convolutions: f32, tf32, bf16 or f16; Keras' names too, as "
             "mixed_float16 (default: as the model's dtype policies say, else f32)"},
    {.group = "Devices and precision", .flags = "--batch-norm", .field = &mtc_options::batch_norm, .type = "WHICH",
     .help = "statistics of batch normalisation while training: of the whole batch (global, the default), or each "
             "shard's own (local)",
     .words = "global|local", .standard = "global"},
    {.group = "Devices and precision", .flags = "--kinks", .field = &mtc_options::kinks, .type = "WHOSE",
     .help = "gradient where a formula has a kink, such as |x| at 0: tensorflow's (the default), jax' or torch's",
     .words = "tensorflow|jax|torch", .standard = "tensorflow"},
    {.group = "Devices and precision", .flags = "--mode", .field = &mtc_options::fast, .type = "MODE",
     .help = "exact: the same bits on any number of devices; fast: no such promise", .form = Form::index,
     .words = "exact|fast"},
    {.group = "Devices and precision", .flags = "--cpu", .field = &mtc_options::cpu, .type = "CPU,...",
     .help = "code for native alone, or for a list of x86-64-v4, x86-64-v3 and armv8-a, of which the best is chosen "
             "when the plan is loaded (default: x86-64-v4,x86-64-v3)"},
    {.group = "Memory", .flags = "--device-memory", .field = &mtc_options::device_memory, .type = "BYTES",
     .help = "what a device may use, as 16GiB or 16GB: says how many devices it takes, or what would help",
     .form = Form::bytes},
    {.group = "Memory", .flags = "--recompute", .field = &mtc_options::recompute, .type = "MODE",
     .help = "auto: compute cheap results again where they would not fit in --device-memory, to the same bits "
             "(default: none)",
     .words = "auto|none", .standard = "none"},
    {.group = "Memory", .flags = "--micro-batches", .field = &mtc_options::micro_batches, .type = "K",
     .help = "of CPUs: the batch in K parts, a power of two up to the shards, which a device computes one after "
             "another in less memory, to the same bits (default: as few as fit in --device-memory)",
     .least = std::numeric_limits<int64_t>::min()}, // Options.cpp knows the shards
    {.group = "Memory", .flags = "--max-batch", .field = &mtc_options::max_batch, .type = "",
     .help = "the largest batch that fits in --device-memory on one device", .form = Form::toggle,
     .excludes = "--batch"},
    {.group = "Stages", .flags = "--stop-after", .field = &mtc_options::stop_after, .type = "STAGE",
     .help = "write the MLIR text after this stage in place of a plan"},
    {.group = "Stages", .flags = "--dump-stages", .field = &mtc_options::dump_stages, .type = "DIR",
     .help = "write the MLIR text after each stage to this folder"},
    {.group = "Stages", .flags = "--print-ir-before", .field = &mtc_options::print_ir_before, .type = "PASS,...",
     .help = "print the MLIR text to the standard error output before these passes, as mt-fuse, or before all"},
    {.group = "Stages", .flags = "--print-ir-after", .field = &mtc_options::print_ir_after, .type = "PASS,...",
     .help = "print the MLIR text to the standard error output after these passes, or after all"},
    {.group = "Stages", .flags = "--timing", .field = &mtc_options::timing, .type = "",
     .help = "print the time of each stage", .form = Form::toggle},
};
// clang-format on

} // namespace mtc

#endif
