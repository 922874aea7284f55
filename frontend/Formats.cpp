// SPDX-License-Identifier: Apache-2.0
#include "frontend/Formats.h"
#include "frontend/onnx/ReadOnnx.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

using llvm::StringRef;

namespace mtc {
namespace {

constexpr const char *torchAdvice =
    "a model of PyTorch is Python code and weights: mtc.torch.compile compiles the module where it is made "
    "(docs/pytorch.md)";
constexpr const char *onnxAdvice = "an ONNX model: give it as a file, mtc compile model.onnx (docs/import.md)";
constexpr const char *savedModelAdvice =
    "a SavedModel of TensorFlow: load the model where it was made, and save it with model.save(\"model.keras\")";

std::string found(const std::string &what) { return "expected MLIR text, a Keras or an ONNX model, found " + what; }

// A length of eight bytes, then a JSON object.
bool isSafetensors(StringRef bytes) {
  constexpr size_t lengthBytes = 8;
  return bytes.size() > lengthBytes + 1 && bytes[lengthBytes] == '{' && bytes.substr(4, 4) == StringRef("\0\0\0\0", 4);
}

std::string describeHdf5(StringRef bytes) {
  // A model's configuration is an attribute of the file; lists of layers are those of Keras 2's weights.
  if (bytes.contains("model_config"))
    return "a Keras model in an HDF5 file: load it in Keras and save it as .keras: "
           "keras.models.load_model(\"model.h5\").save(\"model.keras\")";
  if (bytes.contains("layer_names") || bytes.contains("layers") || bytes.contains("_layer_checkpoint_dependencies"))
    return "weights in an HDF5 file, without their model: in Keras, model.load_weights(\"model.weights.h5\"), then "
           "model.save(\"model.keras\")";
  return "an HDF5 file that is no Keras model: save the model with model.save(\"model.keras\")";
}

} // namespace

std::string recognizeFile(StringRef bytes, StringRef name) {
  if (bytes.starts_with("ML\xefR") || name.ends_with(".mlirbc"))
    return "expected MLIR text, found MLIR bytecode: print it as text first, mlir-opt does";
  if (bytes.starts_with("MTPLAN"))
    return "expected MLIR text, found a plan: it is compiled already, run it or see mtc inspect";
  if (bytes.starts_with("PK\x03\x04"))
    return "expected text, found a zip archive: give a Keras archive as a file";
  if (bytes.starts_with("\x89HDF"))
    return found(describeHdf5(bytes));
  // Pickles of protocol 2 and later.
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5)
    return found("a pickle of Python, as older versions of PyTorch write: " + std::string(torchAdvice));
  if (bytes.substr(4, 4) == "TFL3")
    return found("a model of TensorFlow Lite, which no longer trains: compile the model that it was made from");
  if (isSafetensors(bytes))
    return found("weights in a .safetensors file, without their model: mtc compile MODEL --weights " + name.str());
  if (name.ends_with("saved_model.pb"))
    return found(savedModelAdvice);
  if (isOnnx(bytes))
    return found(onnxAdvice);
  if (name.ends_with(".onnx"))
    return "expected an ONNX model, found a file that does not begin as one";
  return {};
}

std::string recognizeZip(llvm::ArrayRef<std::string> members) {
  // PyTorch's have a folder around all.
  auto has = [&](StringRef ending) {
    return llvm::any_of(members,
                        [&](StringRef member) { return member == ending || member.ends_with(("/" + ending).str()); });
  };
  auto among = [&](StringRef part) {
    return llvm::any_of(members, [&](StringRef member) { return member.contains(part); });
  };
  if (llvm::is_contained(members, "metadata.json") || llvm::is_contained(members, "config.json"))
    return {};
  if (has("archive_format") || has("serialized_exported_program.json") || among("/models/model.json"))
    return found("a program that torch.export saved (.pt2): " + std::string(torchAdvice));
  if (has("constants.pkl") && among("/code/"))
    return found("a program of TorchScript: " + std::string(torchAdvice));
  if (has("data.pkl"))
    return found("a file of torch.save: " + std::string(torchAdvice));
  if (!members.empty() && llvm::all_of(members, [](StringRef member) { return member.ends_with(".npy"); }))
    return found("arrays of NumPy (.npz): they are data, which mtrun takes as --data npz:FILE");
  return {};
}

std::string recognizeFolder(const std::string &path) {
  return llvm::sys::fs::exists(path + "/saved_model.pb") ? found(savedModelAdvice) : "";
}

} // namespace mtc
