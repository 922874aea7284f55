// SPDX-License-Identifier: Apache-2.0
//
// A host program in C++20 that trains a plan on its own arrays. The plan is that of line.mlir:
//
//   mtc compile line.mlir -o line.mtp && c++ -std=c++20 train.cpp -lmtrun && ./a.out line.mtp
#include "mtrun.hpp"

#include <array>
#include <cstdio>
#include <span>
#include <vector>

int main(int argc, char **argv) try {
  mtrun::Plan plan(argc > 1 ? argv[1] : "line.mtp");
  mtrun::Session session(plan);
  std::vector<std::array<float, 2>> x(100); // a sample in each row
  std::vector<float> y(100);
  for (int i = 0; i < 100; ++i) {
    x[i] = {static_cast<float>(i % 10) / 10, static_cast<float>(i / 10) / 10};
    y[i] = 2 * x[i][0] - 3 * x[i][1] + 1;
  }
  double loss = 0;
  for (int epoch = 0; epoch < 200; ++epoch)
    for (size_t i = 0; i < x.size(); i += 32) { // the last batch is short: 4 samples
      size_t n = std::min<size_t>(32, x.size() - i);
      loss = session.train_step({std::span(x).subspan(i, n), std::span(y).subspan(i, n)})["loss"];
    }
  std::vector<float> kernel = session.get_variable<float>("kernel"), prediction(1);
  session.predict({std::span(x).subspan(57, 1)}, {prediction});
  std::printf("loss %.6f, y = %.2f a %+.2f b, at (0.7, 0.5): %.2f\n", loss, kernel[0], kernel[1], prediction[0]);
} catch (const mtrun::Error &error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return error.code();
}
