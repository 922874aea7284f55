// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Variables.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Signature.h"
#include "runtime/session/Archive.h"
#include "runtime/session/Export.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace mtrun;

// Copies all variables, in the plan's order.
static Status snapshot(const Session &session, std::vector<SafeTensor> &tensors,
                       std::vector<std::vector<std::byte>> &bytes) {
  uint32_t index = 0;
  for (const mtrun_tensor_info &info : variablesOf(session.plan())) {
    std::span<const std::byte> value = session.variable(index++); // valid only until the next variable is read
    bytes.emplace_back(value.begin(), value.end());
    tensors.push_back({info.name, info.dtype, std::vector<int64_t>(info.shape, info.shape + info.rank), bytes.back()});
  }
  return session.health();
}

static std::string describe(const SafeTensor &tensor) {
  std::string text = std::string(mt_dtype_name(tensor.dtype)) + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

namespace {

constexpr size_t maxShown = 10; // maximum number of differences that a message lists

// Joins lines. The first lines are kept, and all are counted.
class Lines {
public:
  void add(const std::string &line) {
    if (count_++ < maxShown)
      text_ += (text_.empty() ? "" : separator_) + line;
  }
  bool empty() const { return count_ == 0; }
  std::string text() const {
    return count_ > maxShown ? text_ + separator_ + "and " + std::to_string(count_ - maxShown) + " more" : text_;
  }
  explicit Lines(std::string separator) : separator_(std::move(separator)) {}

private:
  std::string separator_, text_;
  size_t count_ = 0;
};

// The result of comparing a file with a plan's variables.
struct Comparison {
  std::vector<SafeTensor> fitting;
  Lines problems, absent, other, unused; // problems: a sentence each; otherwise names
  size_t absentSlots = 0;
};

} // namespace

// Returns true for the variables of an optimizer. They follow the model's, and the step counter is the first of them.
static bool isOptimizers(const Plan &plan, const mtrun_tensor_info &info) {
  int64_t iteration = plan.tables().iteration();
  return info.kind == static_cast<int>(mt::plan::VariableKind::Slot) ||
         (iteration >= 0 && plan.variable(info.name) >= iteration);
}

static Comparison compare(const Plan &plan, const std::string &path, const std::vector<SafeTensor> &tensors,
                          mtrun_match match) {
  Comparison result = {{}, Lines("\n" + path + ": "), Lines(", "), Lines(", "), Lines(", "), 0};
  std::set<std::string> wanted;
  std::map<std::string, const SafeTensor *> byName;
  for (const SafeTensor &tensor : tensors)
    byName.emplace(tensor.name, &tensor);
  for (const mtrun_tensor_info &info : variablesOf(plan)) {
    SafeTensor want = {info.name, info.dtype, std::vector<int64_t>(info.shape, info.shape + info.rank), {}};
    bool slot = isOptimizers(plan, info);
    bool needed = match == MTRUN_MATCH_ALL || (match == MTRUN_MATCH_MODEL && !slot);
    wanted.insert(want.name);
    auto have = byName.find(want.name);
    if (have == byName.end()) {
      if (needed)
        result.problems.add("expected variable \"" + want.name + "\": " + describe(want) + ", found none");
      result.absent.add(want.name);
      result.absentSlots += slot;
    } else if (have->second->dtype != want.dtype || have->second->shape != want.shape) {
      if (needed)
        result.problems.add("variable \"" + want.name + "\": expected " + describe(want) + ", found " +
                            describe(*have->second));
      result.other.add(want.name + " (" + describe(want) + " in the plan, " + describe(*have->second) +
                       " in the file)");
    } else {
      result.fitting.push_back(*have->second);
    }
  }
  for (const SafeTensor &have : tensors)
    if (!wanted.count(have.name)) {
      if (match == MTRUN_MATCH_ALL)
        result.problems.add("the plan has no variable \"" + have.name + "\": " + describe(have));
      result.unused.add(have.name);
    }
  return result;
}

// Reports the result of a load that allows differences.
static void tell(const Comparison &result, size_t variables, const std::string &path, mtrun_match match,
                 const std::function<void(const std::string &)> &line) {
  if (match == MTRUN_MATCH_ANY) {
    line(path + ": loaded " + std::to_string(result.fitting.size()) + " of " + std::to_string(variables) +
         " variables");
    if (!result.absent.empty())
      line(path + ": not in the file: " + result.absent.text());
  } else if (result.absentSlots > 0) {
    line(path + ": no state of this optimizer in the file: the optimizer starts with its initial state");
  }
  if (!result.other.empty())
    line(path + ": another type or shape: " + result.other.text());
  if (!result.unused.empty())
    line(path + ": not in the plan: " + result.unused.text());
}

static Status assign(Session &session, const std::string &path, const std::vector<SafeTensor> &tensors,
                     mtrun_match match, const std::function<void(const std::string &)> &line) {
  const Plan &plan = session.plan();
  Comparison result = compare(plan, path, tensors, match);
  if (!result.problems.empty())
    return {MT_INVALID, path + ": " + result.problems.text()};
  if (result.fitting.empty() && match == MTRUN_MATCH_ANY && !tensors.empty())
    return {MT_INVALID, path + ": no tensor has the name and the shape of a variable of the plan, it has " +
                            (result.other.empty() ? result.unused : result.other).text()};
  for (const SafeTensor &tensor : result.fitting)
    if (Status s = session.setVariable(static_cast<uint32_t>(plan.variable(tensor.name)), tensor.bytes); !s.ok())
      return s;
  if (!session.health().ok())
    return session.health();
  if (line)
    tell(result, count(plan.tables().variables()), path, match, line);
  return {};
}

Status mtrun::setVariables(Session &session, const std::string &path, const std::vector<SafeTensor> &tensors) {
  return assign(session, path, tensors, MTRUN_MATCH_ALL, nullptr);
}

// Sets the class names of a file. The plan's own names take precedence.
static void takeClassNames(Session &session, std::vector<std::string> names) {
  const auto *own = session.plan().tables().class_names();
  if (!names.empty() && (!own || own->size() == 0))
    session.nameClasses(std::move(names));
}

// Reads a checkpoint, or the newest checkpoint in a folder. A newest checkpoint that does not verify is an error: an
// older one has other values, and the caller should choose it explicitly.
static Status loadCheckpoint(const std::string &folder, std::string &path, Checkpoint &checkpoint) {
  path = folder;
  std::error_code error;
  if (!std::filesystem::exists(path + "/" + manifestFile, error)) {
    std::vector<int64_t> steps = checkpointSteps(folder);
    if (steps.empty())
      return {MT_INVALID,
              "expected a file of variables, a checkpoint or a folder of checkpoints, found none of them in " + folder};
    path += "/" + checkpointName(steps.front());
  }
  Status status = readCheckpoint(path, checkpoint);
  path += std::string("/") + variablesFile;
  return status;
}

// Parses a .safetensors file, or a Keras file with the layout of the plan's archive.
static Status parse(const Plan &plan, std::span<const std::byte> file, const std::string &path,
                    std::vector<SafeTensor> &tensors, std::vector<std::string> &classNames) {
  if (!isZip(file) && !isHdf5(file)) {
    Metadata metadata;
    Status status = parseSafetensors(file, path, tensors, &metadata);
    if (auto list = metadata.find(classNamesKey); list != metadata.end())
      classNames = parseClassNames(list->second);
    return status;
  }
  if (isZip(file))
    classNames = classNamesOf(file);
  if (plan.tables().archive())
    if (Status s = Archive(plan).read(file, path, tensors); !s.ok())
      return s;
  return tensors.empty() ? Status(MT_INVALID, path +
                                                  ": expected a Keras file that mtrun wrote for a plan of this model, "
                                                  "found another: mtc import " +
                                                  path + " -o NAME.mlir writes its variables to NAME.safetensors")
                         : Status();
}

Status mtrun::loadVariables(Session &session, const std::string &source, mtrun_match match,
                            const std::function<void(const std::string &)> &line) {
  std::error_code error;
  std::string path = source;
  if (std::filesystem::is_directory(source, error)) {
    Checkpoint checkpoint;
    if (Status s = loadCheckpoint(source, path, checkpoint); !s.ok())
      return s;
    Status status = assign(session, path, checkpoint.tensors, match, line);
    if (status.ok() && match != MTRUN_MATCH_ANY)
      takeClassNames(session, checkpoint.manifest.state.classNames);
    return status;
  }
  std::vector<std::byte> file;
  std::vector<SafeTensor> tensors;
  if (Status s = readWholeFile(path, file); !s.ok())
    return s;
  std::vector<std::string> names;
  if (Status s = parse(session.plan(), file, path, tensors, names); !s.ok())
    return s;
  std::vector<std::vector<std::byte>> wide;
  widenHalves(tensors, wide);
  bool keras = isZip(file) || isHdf5(file);
  Status status = assign(session, path, tensors, keras && match == MTRUN_MATCH_ALL ? MTRUN_MATCH_MODEL : match, line);
  if (status.ok() && match != MTRUN_MATCH_ANY)
    takeClassNames(session, std::move(names));
  return status;
}

Status mtrun::saveVariables(Session &session, const std::string &path) {
  if (Status s = checkSave(session.plan(), path); !s.ok())
    return s;
  for (uint32_t i = 0; i < count(session.plan().tables().variables()); ++i)
    if (session.variable(i).size() != session.variableSize(i))
      return {MT_INVALID, path + ": expected whole variables, found parts of the optimizer's (shard_optimizer): "
                                 "process 0 has whole ones after their collection in all processes"};
  if (!path.ends_with(tensorsSuffix))
    return writeArchive(session, path, session.classNames());
  std::vector<SafeTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;
  if (Status s = snapshot(session, tensors, bytes); !s.ok())
    return s;
  Metadata metadata;
  if (!session.classNames().empty())
    metadata[classNamesKey] =
        nlohmann::json(session.classNames()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return writeSafetensors(path, std::move(tensors), metadata);
}
