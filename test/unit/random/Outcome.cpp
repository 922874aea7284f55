// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/Outcome.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include <bit>
#include <cmath>
#include <random>

using namespace mlir;
using mlir::mt::Tensor;

namespace mtc::test {
namespace {

// The step on its first n samples.
Step shortened(Step step, int64_t n) {
  for (auto &[name, tensor] : step.inputs) {
    tensor.data.resize(tensor.size() / step.samples * n);
    tensor.shape[0] = n;
  }
  step.samples = n;
  return step;
}

bool failed(mt_status *status, std::string &problem) {
  problem += mt_status_message(status);
  bool bad = status;
  mt_status_free(status);
  return bad;
}

// A session and the memory of its calls.
class Execution {
public:
  Execution(mtrun_session *session, const Step &step)
      : session(session), plan(mtrun_session_plan(session)), step(step) {}

  Outcome run();

private:
  // Elements as the C API takes them: 4 bytes each, f32 or i32.
  using Words = std::vector<uint32_t>;

  std::vector<mtrun_tensor_info> signature(const char *program);
  Words bytes(const mtrun_tensor_info &info, const Step &step);
  Tensor tensor(const mtrun_tensor_info &info, const Words &words, int64_t rows);
  void runStep(const char *program, const std::string &key, const Step &step);
  void predict();
  void readVariables(const std::string &key);

  mtrun_session *session;
  const mtrun_plan *plan;
  const Step &step;
  Outcome outcome;
};

constexpr uint32_t untouched = 0x7fc12345; // a NaN that nothing computes

std::vector<mtrun_tensor_info> Execution::signature(const char *program) {
  std::vector<mtrun_tensor_info> infos(mtrun_plan_signature_count(plan, program));
  for (size_t i = 0; i < infos.size(); ++i)
    failed(mtrun_plan_signature(plan, program, i, &infos[i]), outcome.problem);
  return infos;
}

int64_t elementsOfRow(const mtrun_tensor_info &info) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < info.rank; ++axis)
    count *= info.shape[axis] < 0 ? 1 : info.shape[axis];
  return count;
}

// A whole batch, with what nobody may read behind the samples.
Execution::Words Execution::bytes(const mtrun_tensor_info &info, const Step &step) {
  Words words(step.batch * elementsOfRow(info), untouched);
  auto found = step.inputs.find(info.name);
  if (found == step.inputs.end())
    return words;
  for (int64_t i = 0; i < found->second.size(); ++i)
    words[i] = info.dtype == MT_I32 ? std::bit_cast<uint32_t>(static_cast<int32_t>(found->second.data[i]))
                                    : std::bit_cast<uint32_t>(static_cast<float>(found->second.data[i]));
  return words;
}

Tensor Execution::tensor(const mtrun_tensor_info &info, const Words &words, int64_t rows) {
  SmallVector<int64_t> shape(info.shape, info.shape + info.rank);
  if (!shape.empty() && shape[0] < 0)
    shape[0] = rows;
  Tensor result(shape);
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = info.dtype == MT_I32 ? std::bit_cast<int32_t>(words[i]) : std::bit_cast<float>(words[i]);
  return result;
}

void Execution::readVariables(const std::string &key) {
  for (int32_t i = 0; i < mtrun_plan_variable_count(plan); ++i) {
    mtrun_tensor_info info;
    failed(mtrun_plan_variable(plan, i, &info), outcome.problem);
    Words words(elementsOfRow(info));
    failed(mtrun_get_variable(session, info.name, words.data(), words.size() * 4), outcome.problem);
    outcome.values[key + info.name] = tensor(info, words, 0);
  }
}

void Execution::runStep(const char *program, const std::string &key, const Step &step) {
  std::vector<mtrun_tensor_info> infos = signature(program);
  std::vector<Words> memory;
  std::vector<const void *> pointers;
  for (const mtrun_tensor_info &info : infos)
    memory.push_back(bytes(info, step));
  for (auto [info, words] : llvm::zip_equal(infos, memory))
    pointers.push_back(info.optional && !step.inputs.count(info.name) ? nullptr : words.data());
  std::vector<double> values(mtrun_plan_metric_count(plan, program)), weights(values.size());
  mtrun_results results{values.data(), weights.data(), nullptr, nullptr};
  auto *call = StringRef(program) == "train_step" ? mtrun_train_step : mtrun_eval_step;
  if (failed(call(session, pointers.data(), step.samples, &results), outcome.problem))
    return;
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name = key + mtrun_plan_metric_name(plan, program, i);
    outcome.values[name] = Tensor::scalar(values[i]);
    outcome.values[name + " weight"] = Tensor::scalar(weights[i]);
  }
}

void Execution::predict() {
  std::vector<mtrun_tensor_info> infos = signature("predict");
  std::vector<Words> memory;
  std::vector<void *> pointers;
  for (const mtrun_tensor_info &info : infos)
    memory.push_back(bytes(info, step));
  for (Words &words : memory)
    pointers.push_back(words.data());
  if (failed(mtrun_predict(session, pointers.data(), step.samples), outcome.problem))
    return;
  for (auto [info, words] : llvm::zip_equal(infos, memory)) {
    if (info.role != MTRUN_OUTPUT)
      continue;
    outcome.values[std::string("predict ") + info.name] = tensor(info, words, step.samples);
    for (size_t i = step.samples * elementsOfRow(info); i < words.size(); ++i)
      if (words[i] != untouched)
        outcome.problem += std::string("wrote past the samples of ") + info.name;
  }
}

Outcome Execution::run() {
  readVariables("init ");
  runStep("eval_step", "eval_step ", step);
  runStep("train_step", "train_step 1 ", step);
  readVariables("train_step 1 ");
  runStep("train_step", "train_step 2 ", shortened(step, fewerSamples(step)));
  readVariables("train_step 2 ");
  predict();
  return std::move(outcome);
}

bool sameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

using Same = std::function<bool(double found, double expected)>;

// Where what `sameAs` gives for a tensor does not hold: the name, and both values.
std::string firstWhere(const Outcome &found, const Outcome &expected,
                       llvm::function_ref<Same(const std::string &, const Tensor &)> sameAs) {
  if (!found.problem.empty() || !expected.problem.empty())
    return found.problem + expected.problem;
  for (const auto &[name, tensor] : expected.values) {
    auto other = found.values.find(name);
    if (other == found.values.end() || other->second.size() != tensor.size())
      return name + " is missing or of another size";
    Same same = sameAs(name, tensor);
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (double a = other->second.data[i], b = tensor.data[i]; !same(a, b))
        return llvm::formatv("{0} element {1}: expected {2:E}, found {3:E}, off by {4:E}", name, i, b, a, a - b).str();
  }
  return "";
}

double largest(const Tensor &tensor) {
  double most = 0;
  for (double x : tensor.data)
    most = std::max(most, std::fabs(x));
  return most;
}

} // namespace

int64_t fewerSamples(const Step &step) { return 1 + step.samples * 5 / 8 % step.samples; }

Outcome interpret(ModuleOp module, const Step &step) {
  Outcome outcome;
  Tensors variables;
  auto run = [&](const char *program, const std::string &key, const Step &step, bool keep) {
    Tensors after = variables;
    FailureOr<StepResults> results = interpretProgram(module, program, step, after);
    if (mlir::failed(results)) {
      outcome.problem = std::string(program) + " could not be interpreted";
      return;
    }
    for (const auto &[name, metric] : results->metrics) {
      outcome.values[key + name] = metric.value;
      outcome.values[key + name + " weight"] = Tensor::scalar(metric.weight);
    }
    for (const auto &[name, tensor] : results->outputs)
      outcome.values[key + name] = tensor;
    if (!keep)
      return;
    variables = after;
    for (const auto &[name, tensor] : variables)
      outcome.values[key + name] = tensor;
  };
  run("init", "init ", step, true);
  run("eval_step", "eval_step ", step, false);
  run("train_step", "train_step 1 ", step, true);
  run("train_step", "train_step 2 ", shortened(step, fewerSamples(step)), true);
  run("predict", "predict ", step, false);
  return outcome;
}

Outcome execute(ArrayRef<uint8_t> file, const Step &step, const mtrun_options &options) {
  Outcome outcome;
  mtrun_plan *plan = nullptr;
  mtrun_session *session = nullptr;
  if (!failed(mtrun_plan_load_memory(file.data(), file.size(), &plan), outcome.problem) &&
      !failed(mtrun_session_create(plan, &options, &session), outcome.problem))
    outcome = Execution(session, step).run();
  mtrun_session_free(session);
  mtrun_plan_free(plan);
  return outcome;
}

std::string difference(const Outcome &found, const Outcome &expected, double tolerance,
                       const std::map<std::string, double> &slack) {
  return firstWhere(found, expected, [&](const std::string &name, const Tensor &tensor) -> Same {
    auto more = slack.find(name);
    double allowed = 1e-9 + tolerance * largest(tensor) + (more == slack.end() ? 0 : more->second);
    return [=](double a, double b) { return std::fabs(a - b) <= allowed; };
  });
}

std::string differentBits(const Outcome &found, const Outcome &expected) {
  return firstWhere(found, expected, [](const std::string &, const Tensor &) -> Same { return sameBits; });
}

uint64_t hashOf(const Outcome &outcome) {
  std::string bytes = outcome.problem;
  for (const auto &[name, tensor] : outcome.values) {
    bytes += name;
    bytes.append(reinterpret_cast<const char *>(tensor.data.data()), tensor.size() * sizeof(double));
  }
  return llvm::xxh3_64bits(bytes);
}

std::map<std::string, double> roundingOf(ModuleOp module, const Step &step, const Outcome &expected) {
  std::map<std::string, double> slack;
  std::mt19937 random(1);
  Step rounded = step;
  rounded.round = [&](double exact) {
    float near = exact;
    if (near == exact || !std::isfinite(near))
      return static_cast<double>(near);
    float other = std::nextafterf(near, exact > near ? INFINITY : -INFINITY);
    return static_cast<double>(random() & 1 ? near : other);
  };
  for (int run = 0; run < 8; ++run) {
    Outcome outcome = interpret(module, rounded);
    if (!outcome.problem.empty())
      continue;
    for (const auto &[name, tensor] : expected.values) {
      double &most = slack[name];
      const Tensor &near = outcome.values[name];
      for (int64_t i = 0; i < tensor.size(); ++i)
        most = std::max(most, 8 * std::fabs(near.data[i] - tensor.data[i]));
    }
  }
  return slack;
}

} // namespace mtc::test
