/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mtrun.hpp
 * mtrun.h for C++20: objects that free what they own, spans whose types and sizes are checked, and exceptions that
 * carry the message. Headers alone; a program links libmtrun.
 *
 * Functions are named as in mtrun.h, which describes them. `get()` of an object is its handle there, for calls that
 * have no function here. Every function that may fail throws mtrun::Error.
 */
#ifndef MTRUN_HPP
#define MTRUN_HPP

#include "mtrun.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtrun {

/** What a call of the library failed with. */
class Error : public std::runtime_error {
public:
  /** An error of a class, with its message. */
  Error(mt_code code, const std::string &message) : std::runtime_error(message), kind(code) {}
  /** The class of the error; the programs exit with the same numbers. */
  mt_code code() const noexcept { return kind; }

private:
  mt_code kind;
};

/** Throws the error that a call of mtrun.h or mtc.h returned, and frees its status. NULL is success. */
inline void check(mt_status *status) {
  if (!status)
    return;
  std::unique_ptr<mt_status, decltype(&mt_status_free)> owned(status, mt_status_free);
  throw Error(mt_status_code(status), mt_status_message(status));
}

/** mtrun_options that begin as mtrun_options_init() says. */
struct Options : mtrun_options {
  Options() : mtrun_options(mtrun_options_init()) {}
  /** Options of a process that a launcher of MPI may have started: mtrun_options_launched(). */
  static Options launched() {
    Options options;
    check(mtrun_options_launched(&options));
    return options;
  }
};

/** mtrun_checkpoint_options that begin as mtrun_checkpoint_options_init() says. */
struct CheckpointOptions : mtrun_checkpoint_options {
  CheckpointOptions() : mtrun_checkpoint_options(mtrun_checkpoint_options_init()) {}
};

/** mtrun_loop_options that begin as mtrun_loop_options_init() says. */
struct LoopOptions : mtrun_loop_options {
  LoopOptions() : mtrun_loop_options(mtrun_loop_options_init()) {}
};

/** @cond internal */
namespace detail {
template <auto release> struct Free {
  template <typename T> void operator()(T *handle) const { release(handle); }
};

template <typename T> constexpr std::optional<mt_dtype> dtypeOf() {
  if constexpr (std::is_void_v<T>)
    return std::nullopt;
  else if constexpr (std::is_same_v<T, float>)
    return MT_F32;
  else if constexpr (std::is_same_v<T, double>)
    return MT_F64;
  else if constexpr (std::is_same_v<T, bool>)
    return MT_BOOL;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return MT_U8;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4)
    return MT_I32;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8)
    return MT_I64;
  else
    return std::nullopt;
}

// The scalar of rows: of float[2], and of std::array<float, 2>, it is float.
template <typename T> struct Scalar {
  using type = T;
};
template <typename T, size_t size> struct Scalar<T[size]> : Scalar<T> {};
template <typename T, size_t size> struct Scalar<std::array<T, size>> : Scalar<T> {};
template <typename T, size_t size> struct Scalar<const std::array<T, size>> : Scalar<const T> {};

// The scalar of a contiguous range, with its const.
template <typename Range>
using Element = typename Scalar<std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>>::type;

template <typename Range, bool isConst>
concept Elements = requires(Range &range) {
  std::data(range);
  std::size(range);
} && dtypeOf<std::remove_cv_t<Element<Range>>>().has_value() && (isConst || !std::is_const_v<Element<Range>>);

inline std::string elements(const mtrun_tensor_info &info, int64_t *count) {
  *count = 1;
  for (int32_t axis = 0; axis < info.rank; ++axis)
    *count *= info.shape[axis] < 0 ? 1 : info.shape[axis];
  return std::to_string(*count);
}
} // namespace detail
/** @endcond */

/** Elements in the memory of the caller, dense and row major, which must live as long as this. `Pointer` is
 * `const void *` for elements that are read and `void *` for elements that are written. */
template <typename Pointer> class BasicTensor {
public:
  /** No elements: a sample weight that stands for ones. */
  BasicTensor() = default;
  /** A vector, array, span or C array, also one of several axes, of float, double, bool or an integer. */
  template <typename Range>
    requires detail::Elements<std::remove_reference_t<Range>, std::is_const_v<std::remove_pointer_t<Pointer>>>
  BasicTensor(Range &&range) // NOLINT(bugprone-forwarding-reference-overload): a tensor is no range
      : memory(std::data(range)), kind(*detail::dtypeOf<std::remove_cv_t<detail::Element<Range>>>()),
        count(std::size(range) * sizeof(*std::data(range)) / sizeof(detail::Element<Range>)) {}
  /** Elements of any type of a plan, such as 16-bit floats. */
  BasicTensor(Pointer data, mt_dtype dtype, size_t elements) : memory(data), kind(dtype), count(elements) {}
  /** The first element; NULL: there are none. */
  Pointer data() const { return memory; }
  /** The type of the elements. */
  mt_dtype dtype() const { return kind; }
  /** Number of elements. */
  size_t size() const { return count; }

private:
  Pointer memory = nullptr;
  mt_dtype kind = MT_F32;
  size_t count = 0;
};

/** Elements that are read. */
using Tensor = BasicTensor<const void *>;
/** Elements that are written. */
using Output = BasicTensor<void *>;

/** Losses and metrics by their names. */
struct Metrics {
  std::vector<std::string> names; /**< The names, losses first. */
  std::vector<double> values;     /**< Their values. */
  /** The value of a loss or metric. */
  double operator[](std::string_view name) const {
    for (size_t index = 0; index < names.size(); ++index)
      if (names[index] == name)
        return values[index];
    throw Error(MT_INVALID, "expected a loss or metric of the plan, found \"" + std::string(name) + "\"");
  }
};

/** The results of a step: mtrun_results. */
struct Results : Metrics {
  std::vector<double> weights; /**< Weight of each value in a mean over steps. */
  std::vector<double> sums;    /**< What mtrun_plan_metric_value() takes. */
  double learning_rate = 0;    /**< Where a schedule computes it; else NaN. */
};

/** A verified plan: mtrun_plan. Copies share it, and so do its sessions and datasets. */
class Plan {
public:
  /** Reads a plan file: mtrun_plan_load(). */
  explicit Plan(const std::string &path) {
    mtrun_plan *loaded = nullptr;
    check(mtrun_plan_load(path.c_str(), &loaded));
    handle.reset(loaded, mtrun_plan_free);
  }
  /** Reads the bytes of a plan file, which are copied: mtrun_plan_load_memory(). */
  explicit Plan(std::span<const std::byte> bytes) {
    mtrun_plan *loaded = nullptr;
    check(mtrun_plan_load_memory(bytes.data(), bytes.size(), &loaded));
    handle.reset(loaded, mtrun_plan_free);
  }
  /** The handle of mtrun.h. */
  const mtrun_plan *get() const { return handle.get(); }
  /** The model's name. */
  std::string model() const { return mtrun_plan_model(get()); }
  /** The global batch: the largest number of samples in a step. */
  int64_t batch() const { return mtrun_plan_batch(get()); }
  /** The number of shards: the largest number of devices. */
  int32_t shards() const { return mtrun_plan_shards(get()); }
  /** What a program reads and writes, in order. */
  std::vector<mtrun_tensor_info> signature(const char *program) const {
    std::vector<mtrun_tensor_info> entries(static_cast<size_t>(mtrun_plan_signature_count(get(), program)));
    for (size_t index = 0; index < entries.size(); ++index)
      check(mtrun_plan_signature(get(), program, static_cast<int32_t>(index), &entries[index]));
    return entries;
  }
  /** All variables, including the optimizer's. */
  std::vector<mtrun_tensor_info> variables() const {
    std::vector<mtrun_tensor_info> entries(static_cast<size_t>(mtrun_plan_variable_count(get())));
    for (size_t index = 0; index < entries.size(); ++index)
      check(mtrun_plan_variable(get(), static_cast<int32_t>(index), &entries[index]));
    return entries;
  }
  /** The names of the losses and metrics of a program. */
  std::vector<std::string> metrics(const char *program) const {
    std::vector<std::string> names;
    for (int32_t index = 0; index < mtrun_plan_metric_count(get(), program); ++index)
      names.emplace_back(mtrun_plan_metric_name(get(), program, index));
    return names;
  }

private:
  std::shared_ptr<mtrun_plan> handle;
};

/** One value of every sample, for the input, target or sample weight of its name: mtrun_field. */
struct Field {
  std::string name;           /**< The name of an entry of the plan. */
  Tensor data;                /**< The elements of all samples; of a source only its type counts. */
  std::vector<int64_t> shape; /**< Axes of one sample; empty: those of the entry of the plan. */
};

/** Samples that are made when they are needed: mtrun_source. */
struct Source {
  int64_t samples = -1;      /**< Number of samples; -1: unknown. */
  std::vector<Field> fields; /**< What a sample has. */
  /** Writes the samples that are asked for and returns how many. A thread of the library calls it; what it throws ends
   * the run with its message. */
  std::function<int64_t(mtrun_request &)> read;
  int32_t threads = 1; /**< Threads that may call `read` at once. */
};

/** Samples for a plan: mtrun_dataset. */
class Dataset {
public:
  /** Opens a data source, such as "csv:FILE": mtrun_dataset_open(). */
  Dataset(const Plan &plan, const std::string &spec) : plan(plan) {
    mtrun_dataset *opened = nullptr;
    check(mtrun_dataset_open(plan.get(), spec.c_str(), &opened));
    handle.reset(opened);
  }
  /** Arrays in memory, which must outlive the dataset: mtrun_dataset_open_arrays(). */
  Dataset(const Plan &plan, std::span<const Field> fields, const std::string &keys = {}) : plan(plan) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<mtrun_field> described = describe(fields, shapes);
    std::optional<size_t> samples;
    for (size_t index = 0; index < described.size(); ++index) {
      size_t row = 1;
      for (int64_t size : shapes[index])
        row *= static_cast<size_t>(size);
      size_t size = fields[index].data.size(), found = row ? size / row : 0;
      if (!row || size % row || (samples && *samples != found))
        throw Error(MT_INVALID, "\"" + fields[index].name + "\": expected " +
                                    (samples ? std::to_string(*samples) + " " : std::string()) + "samples of " +
                                    std::to_string(row) + " elements, found " + std::to_string(size) + " elements");
      samples = found;
    }
    mtrun_dataset *opened = nullptr;
    check(mtrun_dataset_open_arrays(plan.get(), described.data(), static_cast<int32_t>(described.size()),
                                    static_cast<int64_t>(samples.value_or(0)), keys.c_str(), &opened));
    handle.reset(opened);
  }
  /** The same of a list. */
  Dataset(const Plan &plan, std::initializer_list<Field> fields, const std::string &keys = {})
      : Dataset(plan, std::span(fields.begin(), fields.size()), keys) {}
  /** A callback: mtrun_dataset_open_source(). */
  Dataset(const Plan &plan, Source made, const std::string &keys = {})
      : plan(plan), source(std::make_unique<Source>(std::move(made))) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<mtrun_field> described = describe(source->fields, shapes);
    mtrun_source passed = {};
    passed.samples = source->samples;
    passed.fields = described.data();
    passed.field_count = static_cast<int32_t>(described.size());
    passed.read = read;
    passed.user = source.get();
    passed.threads = source->threads;
    mtrun_dataset *opened = nullptr;
    check(mtrun_dataset_open_source(plan.get(), &passed, keys.c_str(), &opened));
    handle.reset(opened);
  }
  /** The handle of mtrun.h. */
  mtrun_dataset *get() const { return handle.get(); }
  /** Number of samples; -1: unknown. */
  int64_t size() const { return mtrun_dataset_size(get()); }

private:
  std::vector<mtrun_field> describe(std::span<const Field> fields, std::vector<std::vector<int64_t>> &shapes) const {
    std::vector<mtrun_field> described(fields.size());
    shapes.reserve(fields.size());
    for (size_t index = 0; index < fields.size(); ++index) {
      const Field &field = fields[index];
      shapes.push_back(field.shape);
      if (field.shape.empty())
        for (const mtrun_tensor_info &entry : plan.signature("train_step"))
          if (entry.name == field.name)
            shapes.back().assign(entry.shape + 1, entry.shape + entry.rank);
      described[index].name = field.name.c_str();
      described[index].dtype = field.data.dtype();
      described[index].rank = static_cast<int32_t>(shapes.back().size());
      described[index].shape = shapes.back().data();
      described[index].data = field.data.data();
      described[index].stride = MTRUN_DENSE;
    }
    return described;
  }
  // An exception must not pass through the library, which is C to its callers.
  static int64_t read(void *user, mtrun_request *request) noexcept {
    std::string message = "an exception that is no std::exception";
    try {
      return static_cast<Source *>(user)->read(*request);
    } catch (const std::exception &error) {
      message = error.what();
    } catch (...) {
    }
    if (request->message_size) {
      size_t length = std::min(message.size(), request->message_size - 1);
      std::copy_n(message.data(), length, request->message);
      request->message[length] = 0;
    }
    return -1;
  }

  Plan plan;
  std::unique_ptr<Source> source; // the library has its address
  std::unique_ptr<mtrun_dataset, detail::Free<mtrun_dataset_free>> handle;
};

/** A plan on devices: mtrun_session. */
class Session {
public:
  /** Binds a plan to devices: mtrun_session_create(). */
  explicit Session(const Plan &plan, const Options &options = {}) : plan(plan) {
    mtrun_session *created = nullptr;
    check(mtrun_session_create(plan.get(), &options, &created));
    handle.reset(created);
    training.open(plan, "train_step");
    evaluation.open(plan, "eval_step");
    prediction = plan.signature("predict");
    variables = plan.variables();
  }
  /** The handle of mtrun.h. */
  mtrun_session *get() const { return handle.get(); }
  /** The first row of a whole batch that this process computes, and how many: mtrun_session_own_rows(). */
  std::pair<int64_t, int64_t> own_rows() const {
    std::pair<int64_t, int64_t> own;
    mtrun_session_own_rows(get(), &own.first, &own.second);
    return own;
  }
  /** Starts over with initial values: mtrun_session_init(). */
  void init(int64_t seed = 0) { check(mtrun_session_init(get(), seed)); }
  /** One training step of as many samples as the tensors have, which stand in the order of the signature:
   * mtrun_train_step(). The results live until the next step. */
  const Results &train_step(std::initializer_list<Tensor> tensors) { return step(training, tensors, mtrun_train_step); }
  /** Losses and metrics without an update: mtrun_eval_step(). */
  const Results &eval_step(std::initializer_list<Tensor> tensors) { return step(evaluation, tensors, mtrun_eval_step); }
  /** Computes the model's outputs: mtrun_predict(). Both lists have the order of the signature. */
  void predict(std::initializer_list<Tensor> inputs, std::initializer_list<Output> outputs) {
    std::vector<void *> passed;
    int64_t rows = -1;
    const Tensor *input = inputs.begin();
    const Output *output = outputs.begin();
    for (const mtrun_tensor_info &entry : prediction)
      if (entry.role == MTRUN_OUTPUT)
        passed.push_back(output == outputs.end() ? nullptr : fitting("predict", entry, *output++, rows));
      else // the library reads inputs only
        passed.push_back(input == inputs.end() ? nullptr
                                               : const_cast<void *>(fitting("predict", entry, *input++, rows)));
    size_t count = inputs.size() + outputs.size();
    if (input != inputs.end() || output != outputs.end() || count != prediction.size())
      throw Error(MT_INVALID, "predict: expected a tensor for each of the " + std::to_string(prediction.size()) +
                                  " inputs and outputs, found " + std::to_string(count));
    check(mtrun_predict(get(), passed.data(), std::max<int64_t>(rows, 0)));
  }
  /** Trains whole epochs: mtrun_fit(). `progress`, which may be empty, is called after each step, and a result of true
   * stops; what it throws ends the training and is thrown here. */
  mtrun_fit_result fit(const Dataset &data, LoopOptions options = {},
                       std::function<bool(const mtrun_progress &)> progress = {}) {
    struct Call {
      std::function<bool(const mtrun_progress &)> progress;
      std::exception_ptr thrown;
    } call{std::move(progress), nullptr};
    mtrun_fit_result result = {};
    if (!options.result)
      options.result = &result;
    if (call.progress) {
      if (options.progress)
        throw Error(MT_INVALID, "fit: expected one function of progress, found another in the options");
      options.progress_user = &call;
      options.progress = [](void *user, const mtrun_progress *now) noexcept -> int {
        auto &made = *static_cast<Call *>(user);
        try {
          return made.progress(*now) ? 1 : 0;
        } catch (...) {
          made.thrown = std::current_exception();
          return 1;
        }
      };
    }
    mt_status *status = mtrun_fit(get(), data.get(), &options);
    if (call.thrown) {
      mt_status_free(status);
      std::rethrow_exception(call.thrown);
    }
    check(status);
    return *options.result;
  }
  /** Means over a dataset: mtrun_evaluate(). */
  Metrics evaluate(const Dataset &data, const LoopOptions &options = {}) {
    Metrics metrics{plan.metrics("eval_step"), {}};
    metrics.values.resize(metrics.names.size());
    check(mtrun_evaluate(get(), data.get(), &options, metrics.values.data()));
    return metrics;
  }
  /** Predicts every sample into a file: mtrun_predict_file(). */
  void predict_file(const Dataset &data, const std::string &path, int32_t index = -1) {
    check(mtrun_predict_file(get(), data.get(), index, path.c_str()));
  }
  /** The elements of a variable, such as get_variable<float>("kernel"). */
  template <typename T> std::vector<T> get_variable(const std::string &name) const {
    std::vector<T> elements(count<T>(name));
    check(mtrun_get_variable(get(), name.c_str(), elements.data(), elements.size() * sizeof(T)));
    return elements;
  }
  /** Sets the elements of a variable. */
  template <typename T> void set_variable(const std::string &name, std::span<const T> elements) {
    count<T>(name);
    check(mtrun_set_variable(get(), name.c_str(), elements.data(), elements.size_bytes()));
  }
  /** The same of a vector. */
  template <typename T> void set_variable(const std::string &name, const std::vector<T> &elements) {
    set_variable(name, std::span<const T>(elements));
  }
  /** Writes the variables to a file: mtrun_save(). */
  void save(const std::string &path) { check(mtrun_save(get(), path.c_str())); }
  /** Reads variables by their names: mtrun_load(), or mtrun_load_matching() by another rule. */
  void load(const std::string &path, std::optional<mtrun_match> match = {}) {
    check(match ? mtrun_load_matching(get(), path.c_str(), *match, nullptr, nullptr) : mtrun_load(get(), path.c_str()));
  }

private:
  // A program whose steps have results.
  struct Program {
    const char *name = "";
    std::vector<mtrun_tensor_info> signature;
    Results results;
    void open(const Plan &plan, const char *program) {
      name = program;
      signature = plan.signature(program);
      results.names = plan.metrics(program);
      results.values.resize(results.names.size());
      results.weights.resize(results.names.size());
      results.sums.resize(static_cast<size_t>(mtrun_plan_sum_count(plan.get(), program)));
    }
  };

  // The memory of a tensor, if its type and size are those of the entry; the first one tells the number of rows.
  template <typename Pointer>
  static Pointer fitting(const char *program, const mtrun_tensor_info &entry, const BasicTensor<Pointer> &tensor,
                         int64_t &rows) {
    if (!tensor.data() && entry.optional)
      return nullptr;
    std::string where = std::string(program) + ": \"" + entry.name + "\": expected ";
    if (tensor.dtype() != entry.dtype)
      throw Error(MT_INVALID, where + mt_dtype_name(entry.dtype) + ", found " + mt_dtype_name(tensor.dtype()));
    int64_t row = 0, size = static_cast<int64_t>(tensor.size());
    std::string elements = detail::elements(entry, &row);
    int64_t found = row ? size / row : 0;
    if (!row || size % row || (rows >= 0 && found != rows))
      throw Error(MT_INVALID, where + (rows >= 0 ? std::to_string(rows) + " " : std::string()) + "samples of " +
                                  elements + " elements, found " + std::to_string(size) + " elements");
    rows = found;
    return tensor.data();
  }

  const Results &step(Program &program, std::initializer_list<Tensor> tensors,
                      mt_status *(*call)(mtrun_session *, const void *const *, int64_t, mtrun_results *)) {
    if (tensors.size() != program.signature.size())
      throw Error(MT_INVALID, std::string(program.name) + ": expected " + std::to_string(program.signature.size()) +
                                  " tensors, found " + std::to_string(tensors.size()));
    std::vector<const void *> passed;
    int64_t rows = -1;
    for (const Tensor &tensor : tensors)
      passed.push_back(fitting(program.name, program.signature[passed.size()], tensor, rows));
    Results &results = program.results;
    mtrun_results filled = {results.values.data(), results.weights.data(), results.sums.data(), &results.learning_rate};
    check(call(get(), passed.data(), std::max<int64_t>(rows, 0), &filled));
    return results;
  }

  // Number of elements of a variable, whose type must be T. A name that there is not is left to the library.
  template <typename T> size_t count(const std::string &name) const {
    for (const mtrun_tensor_info &variable : variables) {
      if (variable.name != name)
        continue;
      if (constexpr auto dtype = detail::dtypeOf<T>(); dtype != variable.dtype)
        throw Error(MT_INVALID,
                    "\"" + name + "\": expected elements of " + mt_dtype_name(variable.dtype) + ", found another type");
      int64_t elements = 0;
      detail::elements(variable, &elements);
      return static_cast<size_t>(elements);
    }
    return 0;
  }

  Plan plan;
  Program training, evaluation;
  std::vector<mtrun_tensor_info> prediction, variables;
  std::unique_ptr<mtrun_session, detail::Free<mtrun_session_free>> handle;
};

} // namespace mtrun
#endif
