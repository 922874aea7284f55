// SPDX-License-Identifier: Apache-2.0
//
// ONNX models by a grammar: every op that is read, with operands of every rank, type and number, and attributes of its
// own or of others. The importer says no, with a message, or gives a model that verifies.
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/ReadOnnx.h"
#include "test/fuzz/Choices.h"
#include "test/fuzz/Context.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace {

std::string varint(uint64_t number) {
  std::string text;
  for (; number > 0x7f; number >>= 7)
    text += static_cast<char>(number | 0x80);
  return text + static_cast<char>(number);
}
std::string field(int tag, const std::string &value) { return varint(tag << 3 | 2) + varint(value.size()) + value; }
std::string field(int tag, int64_t value) { return varint(tag << 3) + varint(static_cast<uint64_t>(value)); }
std::string field(int tag, float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return varint(tag << 3 | 5) + bytes;
}

const std::vector<std::string> &allOps() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    using namespace mtc::onnx;
    for (auto family : {activationOps, arithmeticOps, comparisonOps, constantOps, lookupOps, normalizationOps, partOps,
                        productOps, recurrentOps, reductionOps, resizingOps, sequenceOps, shapeOps, windowOps})
      for (const OpEntry &entry : family())
        found.emplace_back(entry.name);
    return found;
  }();
  return names;
}

class Graph {
public:
  explicit Graph(Choices &choices) : choices(choices) {}

  std::string file() {
    std::string graph = field(2, "fuzz"), inputs;
    names = {"x", "z"};
    inputs = field(11, port("x", choices.of({1, 1, 1, 7, 9}), shape(true))) +
             field(11, port("z", choices.of({1, 1, 6, 7, 9, 3}), shape(true)));
    for (int i = 0, count = 3 + static_cast<int>(choices.below(5)); i < count; ++i) {
      std::string name = "t" + std::to_string(i) + (choices.once(2) ? ".w" : "");
      graph += field(5, tensor(name));
      names.push_back(name);
    }
    for (int i = 0, count = 1 + static_cast<int>(choices.below(8)); i < count; ++i)
      graph += field(1, node(i));
    std::string output = choices.once(3) ? choices.of(names) : names.back();
    graph += inputs + field(12, port(output, 1, {-1, 4}));
    return field(1, int64_t{8}) + field(7, graph) +
           field(8, field(1, "") + field(2, static_cast<int64_t>(13 + choices.below(9))));
  }

private:
  std::vector<int64_t> shape(bool batch) {
    std::vector<int64_t> sizes;
    if (batch && !choices.once(12))
      sizes.push_back(choices.once(5) ? 2 : -1);
    for (size_t i = 0, rank = choices.below(4); i < rank; ++i)
      sizes.push_back(static_cast<int64_t>(choices.once(15) ? choices.below(300) : 1 + choices.below(4)));
    return sizes;
  }
  std::string port(const std::string &name, int64_t type, const std::vector<int64_t> &sizes) {
    std::string dims;
    for (int64_t size : sizes)
      dims += field(1, size < 0 ? field(2, "n") : field(1, size));
    return field(1, name) + field(2, field(1, field(1, type) + field(2, dims)));
  }
  std::string tensor(const std::string &name) {
    static constexpr std::pair<int64_t, size_t> types[] = {{1, 4}, {1, 4},  {1, 4},  {7, 8},  {7, 8},
                                                           {7, 8}, {6, 4},  {9, 1},  {2, 1},  {3, 1},
                                                           {5, 2}, {10, 2}, {11, 8}, {13, 8}, {16, 2}};
    auto [type, bytes] = choices.of(types);
    std::vector<int64_t> sizes = shape(false);
    if (choices.once(3))
      sizes.clear();
    else if (choices.once(3))
      sizes = {static_cast<int64_t>(choices.below(6))};
    size_t count = 1;
    std::string text;
    for (int64_t size : sizes) {
      count *= static_cast<size_t>(size);
      text += field(1, size);
    }
    count = count < 4096 ? count : 4096; // more are missing
    std::string data;
    for (size_t i = 0; i < count; ++i) {
      int64_t number = choices.number();
      char raw[8] = {};
      auto real = static_cast<float>(number) * 0.5F;
      auto wide = static_cast<double>(number);
      std::memcpy(raw,
                  type == 1    ? static_cast<const void *>(&real)
                  : type == 11 ? static_cast<const void *>(&wide)
                               : &number,
                  type == 1 ? 4 : 8);
      data.append(raw, bytes);
    }
    return text + field(2, type) + field(8, name) + field(9, data);
  }
  std::string attribute() {
    static const char *names[] = {"axis",
                                  "axes",
                                  "keepdims",
                                  "alpha",
                                  "beta",
                                  "transA",
                                  "transB",
                                  "kernel_shape",
                                  "strides",
                                  "pads",
                                  "dilations",
                                  "group",
                                  "auto_pad",
                                  "ceil_mode",
                                  "perm",
                                  "to",
                                  "mode",
                                  "epsilon",
                                  "momentum",
                                  "batch_dims",
                                  "num_outputs",
                                  "split",
                                  "hidden_size",
                                  "direction",
                                  "activations",
                                  "layout",
                                  "upper",
                                  "k",
                                  "blocksize",
                                  "equation",
                                  "reduction",
                                  "value",
                                  "value_float",
                                  "value_ints",
                                  "start",
                                  "end",
                                  "fmod",
                                  "approximate",
                                  "num_groups",
                                  "allowzero",
                                  "dtype",
                                  "exclusive",
                                  "reverse",
                                  "noop_with_empty_axes",
                                  "coordinate_transformation_mode",
                                  "nearest_mode",
                                  "output_padding",
                                  "count_include_pad",
                                  "detect_positive",
                                  "linear_before_reset",
                                  "select_last_index",
                                  "unknown"};
    std::string text = field(1, choices.of(names));
    switch (choices.below(6)) {
    case 0:
      return text + field(2, static_cast<float>(choices.number())) + field(20, int64_t{1});
    case 1:
    case 2:
      return text + field(3, choices.number()) + field(20, int64_t{2});
    case 3:
      return text +
             field(4, choices.of({"linear", "SAME_UPPER", "bidirectional", "ij,jk->ik", "i->", "CRD", "asymmetric",
                                  "align_corners", "ceil", "tanh", "add", "reverse", "ii->i", ",->", "VALID"})) +
             field(20, int64_t{3});
    case 4:
      return text + field(5, tensor("")) + field(20, int64_t{4});
    default:
      for (int64_t each : choices.numbers(5))
        text += field(8, each);
      return text + field(20, int64_t{7});
    }
  }
  std::string node(int number) {
    std::string text;
    for (size_t i = 0, count = choices.once(3) ? choices.below(7) : 1 + choices.below(4); i < count; ++i)
      text += field(1, choices.once(15) ? std::string() : choices.once(3) ? names.back() : choices.of(names));
    size_t outputs = choices.once(5) ? choices.below(4) : 1;
    for (size_t i = 0; i < outputs; ++i) {
      std::string name = "r" + std::to_string(number) + std::string(i, '_');
      text += field(2, choices.once(20) ? std::string() : name);
      names.push_back(name);
    }
    text += field(4, choices.of(allOps()));
    for (size_t i = 0, count = choices.below(4); i < count; ++i)
      text += field(5, attribute());
    return text;
  }

  Choices &choices;
  std::vector<std::string> names;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Choices choices({data, size});
  std::string bytes = Graph(choices).file();
  static int file = memfd_create("fuzz.onnx", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    __builtin_trap();
  mtc::TrainingOptions options;
  options.loss = "mse";
  options.optimizer = "sgd";
  constexpr int64_t batch = 10;
  mlir::MLIRContext &context = sharedContext();
  mtc::DiagnosticLines diagnostics(context, "fuzz.onnx", nullptr);
  std::vector<mtc::NamedTensor> weights;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mtc::readOnnx("/proc/self/fd/" + std::to_string(file), batch, options, context, diagnostics, weights);
  if (!module && diagnostics.errors().empty())
    __builtin_trap();
  return 0;
}
