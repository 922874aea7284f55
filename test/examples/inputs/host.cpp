// SPDX-License-Identifier: Apache-2.0
//
// host PLAN FOLDER: what examples/embed/train.cpp does not use of mtrun.hpp, and its errors.
#include "mtrun.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>

static void refused(const char *what, const std::function<void()> &call) {
  try {
    call();
    std::printf("%s: taken\n", what);
  } catch (const mtrun::Error &error) {
    std::printf("%s: %d: %s\n", what, static_cast<int>(error.code()), error.what());
  } catch (const std::exception &error) {
    std::printf("%s: other: %s\n", what, error.what());
  }
}

int main(int, char **argv) {
  std::string folder = argv[2];
  std::ifstream file(argv[1], std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  mtrun::Plan plan(std::as_bytes(std::span(bytes)));
  std::printf("%s: batch %d, %d shards, %zu variables\n", plan.model().c_str(), static_cast<int>(plan.batch()),
              plan.shards(), plan.variables().size());
  mtrun::Options options;
  options.devices = "cpu:2";
  mtrun::Session session(plan, options);
  std::printf("rows %d of %d\n", static_cast<int>(session.own_rows().first),
              static_cast<int>(session.own_rows().second));

  float x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  std::vector<float> y{1, -2, 3, 0}, prediction(4);
  std::vector<double> wide(4);
  std::vector<int> whole(4);
  refused("step", [&] { session.train_step({x, y}); });
  refused("type", [&] { session.train_step({x, wide}); });
  refused("size", [&] { session.train_step({x, std::span(y).first(3)}); });
  refused("part", [&] { session.train_step({std::span(y).first(3), y}); });
  refused("count", [&] { session.train_step({x}); });
  refused("outputs", [&] { session.predict({x}, {}); });
  refused("metric", [&] { session.eval_step({x, y})["accuracy"]; });
  refused("variable", [&] { session.get_variable<float>("weight"); });
  refused("elements", [&] { session.get_variable<int>("kernel"); });
  refused("plan", [&] { mtrun::Plan(folder + "/none.mtp"); });
  refused("samples", [&] { mtrun::Dataset(plan, {{"x", x, {}}, {"y", std::span(y).first(3), {}}}); });

  // Arrays, with the type of the caller: labels of integers become floats.
  whole = {1, -2, 3, 0};
  mtrun::Dataset arrays(plan, {{"x", x, {}}, {"y", whole, {}}});
  mtrun::LoopOptions loop;
  loop.epochs = 300;
  int calls = 0;
  mtrun_fit_result result = session.fit(arrays, loop, [&](const mtrun_progress &) { return ++calls == 250; });
  std::printf("stopped %d after %d steps\n", result.stopped, static_cast<int>(result.total_step));
  refused("progress", [&] {
    session.fit(arrays, loop, [](const mtrun_progress &) -> bool { throw std::runtime_error("enough"); });
  });

  // A source, of which a test is asked for more than there is.
  mtrun::Source source;
  source.fields = {{"x", std::span<float>(), {}}, {"y", std::span<float>(), {}}};
  source.read = [&](mtrun_request &request) -> int64_t {
    if (request.first > 7)
      throw std::runtime_error("the generator is broken");
    int64_t i = 0;
    for (; i < request.rows && request.first + i < 7; ++i) {
      std::copy_n(x[(request.first + i) % 4], 2, static_cast<float *>(request.fields[0]) + 2 * i);
      static_cast<float *>(request.fields[1])[i] = y[static_cast<size_t>((request.first + i) % 4)];
    }
    return i;
  };
  mtrun::Dataset seven(plan, source);
  std::printf("seven: %d samples, loss %.4f\n", static_cast<int>(seven.size()), session.evaluate(seven)["loss"]);
  source.read = [](mtrun_request &) -> int64_t { throw std::runtime_error("the generator is broken"); };
  mtrun::Dataset broken(plan, source);
  refused("source", [&] { session.evaluate(broken); });

  session.predict({x}, {prediction});
  session.save(folder + "/line.safetensors");
  std::vector<float> kernel = session.get_variable<float>("kernel");
  session.set_variable("kernel", std::vector<float>{0, 0});
  session.load(folder + "/line.safetensors");
  session.load(folder + "/line.safetensors", MTRUN_MATCH_ANY);
  std::printf("the same kernel %d, prediction %.1f\n", kernel == session.get_variable<float>("kernel"), prediction[2]);
}
