// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Compare.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/receipt/Launches.h"
#include "runtime/receipt/Receipt.h"
#include "runtime/receipt/VariableTree.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

using Json = nlohmann::json;

namespace {

enum class Kind { Checkpoint, Tensors, Plan, Receipt, Launches };

const char *nameOf(Kind kind) {
  constexpr const char *names[] = {"a checkpoint", "a .safetensors file", "a plan", "a receipt",
                                   "a file of digests of launches"};
  return names[static_cast<int>(kind)];
}

Status kindOf(const std::string &path, Kind &kind) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0)
    return ioError("cannot open", path, errno);
  if (S_ISDIR(facts.st_mode)) {
    kind = Kind::Checkpoint; // another folder is an error of its reader
    return {};
  }
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return ioError("cannot open", path, errno);
  char bytes[16] = {};
  ssize_t size = read(file, bytes, sizeof bytes);
  close(file);
  if (size < 0)
    return ioError("cannot read", path, errno);
  if (memcmp(bytes, MT_PLAN_MAGIC, strlen(MT_PLAN_MAGIC)) == 0)
    kind = Kind::Plan;
  else if (memcmp(bytes, "{\"chunk\"", 8) == 0)
    kind = Kind::Receipt;
  else if (memcmp(bytes, "{\"format\"", 9) == 0)
    kind = Kind::Launches;
  else if (size > 8 && bytes[8] == '{')
    kind = Kind::Tensors;
  else
    return {MT_INVALID, path +
                            ": expected a checkpoint, a .safetensors file, a plan, a receipt or digests of launches, "
                            "found another file"};
  return {};
}

void order(const Plan *plan, std::vector<SafeTensor> &tensors) {
  if (plan)
    std::stable_sort(tensors.begin(), tensors.end(), [plan](const SafeTensor &a, const SafeTensor &b) {
      auto place = [plan](const SafeTensor &tensor) { return static_cast<unsigned>(plan->variable(tensor.name)); };
      return place(a) < place(b); // others come last
    });
}

void compareStates(const Manifest &a, const Manifest &b, std::vector<std::string> &lines) {
  auto add = [&](const char *what, const std::string &first, const std::string &second) {
    if (first != second)
      lines.push_back(std::string(what) + ": " + first + " and " + second);
  };
  add("model", a.model, b.model);
  add("plan", hashText(a.plan), hashText(b.plan));
  add("seed", std::to_string(a.state.seed), std::to_string(b.state.seed));
  add("step", std::to_string(a.state.step), std::to_string(b.state.step));
}

Status compareCheckpoints(const std::string &first, const std::string &second, const Plan *plan,
                          std::vector<std::string> &lines) {
  Checkpoint a, b;
  if (Status s = readCheckpoint(first, a); !s.ok())
    return s;
  if (Status s = readCheckpoint(second, b); !s.ok())
    return s;
  compareStates(a.manifest, b.manifest, lines);
  order(plan, a.tensors);
  compareTensors(a.tensors, b.tensors, lines);
  return {};
}

// The variables of `path`, which is a checkpoint or a file; `file` owns their bytes.
Status readTensors(const std::string &path, Kind kind, std::vector<std::byte> &file, std::vector<SafeTensor> &tensors) {
  if (kind == Kind::Tensors) {
    if (Status s = readWholeFile(path, file); !s.ok())
      return s;
    return parseSafetensors(file, path, tensors);
  }
  Checkpoint checkpoint;
  if (Status s = readCheckpoint(path, checkpoint); !s.ok())
    return s;
  file = std::move(checkpoint.file); // the bytes stay where they are
  tensors = std::move(checkpoint.tensors);
  return {};
}

Status compareTensorFiles(const std::string &first, Kind firstKind, const std::string &second, Kind secondKind,
                          const Plan *plan, std::vector<std::string> &lines) {
  std::vector<std::byte> files[2];
  std::vector<SafeTensor> a, b;
  if (Status s = readTensors(first, firstKind, files[0], a); !s.ok())
    return s;
  if (Status s = readTensors(second, secondKind, files[1], b); !s.ok())
    return s;
  order(plan, a);
  compareTensors(a, b, lines);
  return {};
}

Status comparePlanFiles(const std::string &first, const std::string &second, std::vector<std::string> &lines) {
  std::unique_ptr<Plan> a, b;
  if (Status s = Plan::load(first, a); !s.ok())
    return s;
  if (Status s = Plan::load(second, b); !s.ok())
    return s;
  comparePlans(*a, *b, lines);
  return {};
}

Status compareReceipts(const std::string &first, const std::string &second, std::vector<std::string> &lines) {
  Receipt a, b;
  if (Status s = readReceipt(first, false, a); !s.ok())
    return s;
  if (Status s = readReceipt(second, false, b); !s.ok())
    return s;
  if (std::string text = firstDifference(a.head, b.head); !text.empty()) {
    lines.push_back("the runs differ: " + text);
    return {};
  }
  size_t count = std::min(a.lines.size(), b.lines.size());
  for (size_t i = 0; i < count; ++i) {
    Json then = Json::parse(a.lines[i].text), now = Json::parse(b.lines[i].text);
    then.erase("prev");
    now.erase("prev");
    if (then != now) {
      lines.push_back("step " + std::to_string(std::max(a.lines[i].step, b.lines[i].step)) + ": " +
                      recordDifference(a.head["variables"], then, now));
      return {};
    }
  }
  if (a.lines.size() != b.lines.size())
    lines.push_back("the " + std::string(a.lines.size() < b.lines.size() ? "first" : "second") +
                    " receipt ends at step " + std::to_string(std::min(a.lastStep(), b.lastStep())));
  return {};
}

// The files of a receipt's or a checkpoint's end against the receipt: the variables by name.
Status compareWithReceipt(const std::string &path, Kind kind, const std::string &receiptPath,
                          std::vector<std::string> &lines) {
  Receipt receipt;
  std::vector<std::byte> file;
  std::vector<SafeTensor> tensors;
  if (Status s = readReceipt(receiptPath, false, receipt); !s.ok())
    return s;
  if (!receipt.ended())
    return {MT_INVALID, receiptPath + ": expected the end of the run, which has a hash of each variable, found none"};
  if (Status s = readTensors(path, kind, file, tensors); !s.ok())
    return s;
  Json digests = Json::parse(receipt.lines.back().text)["by_name"];
  std::map<std::string, const SafeTensor *> byName;
  for (const SafeTensor &tensor : tensors)
    byName.emplace(tensor.name, &tensor);
  for (const Json &variable : receipt.head["variables"]) {
    std::string name = variable[0];
    auto found = byName.find(name);
    if (found != byName.end() && digests.value(name, "") != hexadecimal(rootOfBytes(found->second->bytes)))
      lines.push_back(name + ": other bytes than at the end of the run");
    byName.erase(name);
  }
  for (const auto &[name, tensor] : byName)
    lines.push_back(name + ": the run has no variable of this name");
  if (lines.size() > 1)
    lines = {lines[0], std::to_string(lines.size()) + " tensors differ"};
  return {};
}

} // namespace

Status compareFiles(const std::string &first, const std::string &second, const Plan *plan,
                    std::vector<std::string> &lines) {
  Kind a, b;
  lines.clear();
  if (Status s = kindOf(first, a); !s.ok())
    return s;
  if (Status s = kindOf(second, b); !s.ok())
    return s;
  auto isTensors = [](Kind kind) { return kind == Kind::Tensors || kind == Kind::Checkpoint; };
  if (a == Kind::Checkpoint && b == a)
    return compareCheckpoints(first, second, plan, lines);
  if (isTensors(a) && isTensors(b))
    return compareTensorFiles(first, a, second, b, plan, lines);
  if (isTensors(a) && b == Kind::Receipt)
    return compareWithReceipt(first, a, second, lines);
  if (a == Kind::Receipt && isTensors(b))
    return compareWithReceipt(second, b, first, lines);
  if (a != b)
    return {MT_INVALID, "expected two files of one kind, found " + first + ", which is " + nameOf(a) + ", and " +
                            second + ", which is " + nameOf(b)};
  return a == Kind::Plan      ? comparePlanFiles(first, second, lines)
         : a == Kind::Receipt ? compareReceipts(first, second, lines)
                              : compareLaunches(first, second, lines);
}

} // namespace mtrun
