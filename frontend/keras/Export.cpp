// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Export.h"

#include "frontend/keras/WeightsFile.h"
#include "frontend/keras/Zip.h"
#include "frontend/training/Training.h"

using namespace mlir;

namespace mtc::keras {
namespace {

// Metadata for a model that was imported from JSON.
constexpr llvm::StringLiteral noMetadata = R"({"keras_version": "3.0.0", "date_saved": "1980-01-01@00:00:00"})";

NamedTensor tensorOf(const FileVariable &variable) {
  mt_dtype dtype = variable.type.getElementType().isF32() ? MT_F32 : MT_I32;
  return {variable.name, dtype, {variable.type.getShape().begin(), variable.type.getShape().end()}, {}};
}

NamedTensor zeros(const FileVariable &variable) {
  NamedTensor tensor = tensorOf(variable);
  tensor.bytes.resize(static_cast<size_t>(variable.type.getNumElements()) * mt_dtype_size(tensor.dtype));
  return tensor;
}

std::vector<StoredTensor> listTensors(const FileVariables &variables, const Archive *archive) {
  std::vector<StoredTensor> tensors;
  for (const std::vector<FileVariable> &list : {variables.layers, variables.optimizer})
    for (const FileVariable &variable : list)
      if (!variable.name.empty())
        tensors.push_back({variable.path, true, tensorOf(variable)});
      else if (!archive || !archive->weights.count(variable.path)) // the file has no value for it
        tensors.push_back({variable.path, false, zeros(variable)});
  if (archive)
    for (const auto &[path, tensor] : archive->weights)
      tensors.push_back({path, false, tensor});
  return tensors;
}

} // namespace

std::string makeExport(const std::string &config, const Json &parsed, const TrainingOptions &options,
                       const Archive *archive, const FileVariables &variables,
                       const std::vector<std::string> &classNames, ExportArchive &result) {
  ZipMember weights = {"model.weights.h5", {}};
  if (std::string problem = layOutWeights(listTensors(variables, archive), weights.pieces); !problem.empty())
    return "the file of weights cannot be laid out: " + problem;
  std::string text = config;
  if (!options.loss.empty() || !options.optimizer.empty() || !options.metrics.empty()) {
    Json replaced = parsed;
    replaceTraining(options, replaced);
    text = replaced.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string known = archive ? archive->metadata : noMetadata.str();
  // Keras reads nothing from this member, so it ignores an unknown key.
  if (Json object; !classNames.empty() && parseJson(known, object).empty() && object.is_object()) {
    object["class_names"] = classNames;
    known = object.dump();
  }
  ZipMember metadata = {"metadata.json", {ExportPiece::bytes(std::move(known))}};
  ZipMember model = {"config.json", {ExportPiece::bytes(std::move(text))}};
  result.suffix = ".keras";
  result.pieces = layOutZip({std::move(metadata), std::move(model), std::move(weights)});
  return {};
}

} // namespace mtc::keras
