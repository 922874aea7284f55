// SPDX-License-Identifier: Apache-2.0
#include "compiler/Pipeline.h"
#include "compiler/api/Compile.h"
#include "compiler/api/Driver.h"
#include "compiler/api/Result.h"
#include "frontend/Formats.h"
#include "frontend/mlir/Prescan.h"
#include "runtime/support/atomic_file.h"

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

using mtrun::Status;

// Reads at most one byte more than a model's text may have: the parser then reports that the text is too large.
static Status readFile(const std::string &path, std::string &text) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return mtrun::ioError("cannot open", path, errno);
  Status status;
  constexpr size_t step = size_t{1} << 20;
  while (text.size() <= mtc::maxTextBytes) {
    size_t size = text.size();
    text.resize(size + step);
    ssize_t count = read(descriptor, text.data() + size, step);
    int reason = errno;
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && reason == EINTR)
      continue;
    if (count < 0)
      status = mtrun::ioError("cannot read", path, reason);
    if (count <= 0 || mtc::isOpenedByImporter(text))
      break;
  }
  close(descriptor);
  return status;
}

static Status readOptions(const mtc_options *requested, mtc::Options &options) {
  Status status = mtc::checkOptions(requested, options);
  return status.ok() ? mtc::checkPassLists(options) : status;
}

// Makes a result of a model by one of the functions of the compiler.
using Make = decltype(mtc::compile);
static Status makeResult(Make make, const mtc::ModelSource &source, const mtc_options *requested, mtc_result **result) {
  mtc::Options options;
  if (Status status = readOptions(requested, options); !status.ok())
    return status;
  auto output = std::make_unique<mtc_result>();
  Status status = make(source, options, output->bytes);
  if (status.ok())
    *result = output.release();
  return status;
}

static Status importSource(const mtc::ModelSource &source, const mtc_options *requested, mtc_result **text,
                           mtc_result **weights) {
  mtc::Options options;
  if (Status status = readOptions(requested, options); !status.ok())
    return status;
  auto textOutput = std::make_unique<mtc_result>(), weightsOutput = std::make_unique<mtc_result>();
  if (Status status = mtc::importModel(source, options, textOutput->bytes, weightsOutput->bytes); !status.ok())
    return status;
  *text = textOutput.release();
  *weights = weightsOutput->bytes.empty() ? nullptr : weightsOutput.release();
  return {};
}

// The first bytes of a file say whether an importer reads it from disk; any other file is MLIR text.
static Status openSource(const std::string &path, std::string &text, mtc::ModelSource &source) {
  source.name = path;
  if (std::string problem = mtc::recognizeFolder(path); !problem.empty())
    return {MT_INVALID, path + ": error: " + problem};
  Status status = readFile(path, text);
  if (mtc::isOpenedByImporter(text))
    source.path = path;
  source.text = text;
  return status;
}

static mtc::ModelSource sourceOf(const char *text, size_t size, const char *name) {
  return {name ? name : "<text>", {text, size}, ""};
}

// Calls `use` with the source of a file.
static mt_status *withFile(const char *path, llvm::function_ref<Status(const mtc::ModelSource &)> use) {
  return mtc::guarded([&] {
    std::string text;
    mtc::ModelSource source;
    Status status = openSource(path, text, source);
    return status.ok() ? use(source) : status;
  });
}

mt_status *mtc_options_check(const mtc_options *requested) {
  return mtc::guarded([&] {
    mtc::Options options;
    return readOptions(requested, options);
  });
}

mt_status *mtc_compile_text(const char *text, size_t size, const char *name, const mtc_options *options,
                            mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] { return makeResult(mtc::compile, sourceOf(text, size, name), options, result); });
}

mt_status *mtc_compile_file(const char *path, const mtc_options *options, mtc_result **result) {
  *result = nullptr;
  return withFile(path, [&](const auto &source) { return makeResult(mtc::compile, source, options, result); });
}

mt_status *mtc_import_file(const char *path, const mtc_options *options, mtc_result **text, mtc_result **weights) {
  *text = *weights = nullptr;
  return withFile(path, [&](const auto &source) { return importSource(source, options, text, weights); });
}

mt_status *mtc_import_text(const char *text, size_t size, const char *name, const mtc_options *options,
                           mtc_result **imported, mtc_result **weights) {
  *imported = *weights = nullptr;
  return mtc::guarded([&] { return importSource(sourceOf(text, size, name), options, imported, weights); });
}

mt_status *mtc_summary_text(const char *text, size_t size, const char *name, const mtc_options *options,
                            mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] { return makeResult(mtc::summarizeModel, sourceOf(text, size, name), options, result); });
}

mt_status *mtc_summary_file(const char *path, const mtc_options *options, mtc_result **result) {
  *result = nullptr;
  return withFile(path, [&](const auto &source) { return makeResult(mtc::summarizeModel, source, options, result); });
}

const void *mtc_result_data(const mtc_result *result) { return result->bytes.data(); }

size_t mtc_result_size(const mtc_result *result) { return result->bytes.size(); }

mt_status *mtc_result_save(const mtc_result *result, const char *path) {
  return mtc::guarded([&] {
    mtrun::AtomicFile file;
    Status status = file.open(path);
    if (status.ok())
      status = file.write(result->bytes.data(), result->bytes.size());
    return status.ok() ? file.commit() : status;
  });
}

void mtc_result_free(mtc_result *result) { delete result; }

const char *mtc_version() { return MT_VERSION; }

const char *mtc_stage_name(int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < mtc::stages().size() ? mtc::stages()[index].name : nullptr;
}

const char *mtc_stage_help(int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < mtc::stages().size() ? mtc::stages()[index].help : nullptr;
}
