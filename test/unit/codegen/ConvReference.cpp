// SPDX-License-Identifier: Apache-2.0
#include "test/unit/codegen/ConvReference.h"
#include <array>
#include <cmath>
#include <functional>
#include <vector>

namespace codegentest {
namespace {

// Calls use(x, w, y, inside) for every product of a sample: those of an element of y, of x and of w each in the order
// of its chain.
template <typename Use> void forEachProduct(const ConvolutionShape &s, const Use &use) {
  int64_t cg = s.c / s.groups, fg = s.f / s.groups;
  for (int64_t oh = 0; oh < s.oh(); ++oh)
    for (int64_t f = 0; f < s.f; ++f)
      for (int64_t ow = 0; ow < s.ow(); ++ow)
        for (int64_t kh = 0; kh < s.kh; ++kh)
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t kw = 0; kw < s.kw; ++kw) {
              int64_t ih = oh * s.stride[0] + kh * s.dilation[0] - s.padding[0],
                      iw = ow * s.stride[1] + kw * s.dilation[1] - s.padding[2];
              bool inside = ih >= 0 && ih < s.h && iw >= 0 && iw < s.w;
              use((ih * s.w + iw) * s.c + f / fg * cg + c, ((kh * s.kw + kw) * cg + c) * s.f + f,
                  (oh * s.ow() + ow) * s.f + f, inside);
            }
}

// An image, rows x columns x channels; 0 outside.
struct Image {
  int64_t rows, columns, channels;
  const float *data;
  float at(int64_t i, int64_t j, int64_t c) const {
    bool inside = i >= 0 && i < rows && j >= 0 && j < columns;
    return inside ? data[(i * columns + j) * channels + c] : 0.0f;
  }
};

bool isByTiles(const ConvolutionShape &s, int64_t channels, int64_t filters, int64_t rows, int64_t columns) {
  bool plain = s.kh == 3 && s.kw == 3 && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 &&
               s.dilation[1] == 1 && s.groups == 1;
  return plain && channels % 16 == 0 && channels <= 1024 && filters >= 16 && rows >= 4 && columns >= 4;
}

using Line = std::vector<float>;
using Transform = Line (*)(const Line &);

Line pixelLine(const Line &d) { return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}; }
Line tapLine(const Line &g) {
  float outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
  return {g[0], outer + inner, outer - inner, g[2]};
}
Line sumLine(const Line &m) { return {m[0] + m[1] + m[2], m[1] - m[2] - m[3]}; }
Line positionLine(const Line &y) { return {y[0], y[0] + y[1], y[0] - y[1], 0.0f - y[1]}; }
Line elementLine(const Line &u) {
  float mean = 0.5f * (u[1] + u[2]);
  return {u[0] + mean, 0.5f * (u[1] - u[2]), mean + u[3]};
}

// Of the columns of a square matrix, then of the rows of what that makes.
Line both(const Line &matrix, Transform transform) {
  int64_t size = std::lround(std::sqrt(matrix.size()));
  std::vector<Line> columns;
  for (int64_t j = 0; j < size; ++j) {
    Line column;
    for (int64_t i = 0; i < size; ++i)
      column.push_back(matrix[i * size + j]);
    columns.push_back(transform(column));
  }
  Line made;
  for (size_t i = 0; i < columns[0].size(); ++i) {
    Line row;
    for (const Line &column : columns)
      row.push_back(column[i]);
    for (float value : transform(row))
      made.push_back(value);
  }
  return made;
}

// `size` x `size` pixels of a channel from (i, j) on, transformed.
Line square(const Image &image, int64_t i, int64_t j, int64_t c, int64_t size, Transform transform) {
  Line pixels;
  for (int64_t row = 0; row < size; ++row)
    for (int64_t column = 0; column < size; ++column)
      pixels.push_back(image.at(i + row, j + column, c));
  return both(pixels, transform);
}

// result[i, j] = the sum of source[i + low + a, j + left + b] * tap(a, b, channel, filter).
void correlate(const Image &source, int64_t low, int64_t left, int64_t rows, int64_t columns, int64_t filters,
               const std::function<float(int64_t, int64_t, int64_t, int64_t)> &tap, float *result) {
  std::vector<Line> taps;
  for (int64_t c = 0; c < source.channels; ++c)
    for (int64_t f = 0; f < filters; ++f) {
      Line all;
      for (int64_t i = 0; i < 9; ++i)
        all.push_back(tap(i / 3, i % 3, c, f));
      taps.push_back(both(all, tapLine));
    }
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t j = 0; j < columns; j += 2) {
      std::vector<Line> sums(filters, Line(16));
      for (int64_t c = 0; c < source.channels; ++c) {
        Line pixels = square(source, i + low, j + left, c, 4, pixelLine);
        for (int64_t f = 0; f < filters; ++f)
          for (int64_t e = 0; e < 16; ++e)
            sums[f][e] = std::fma(pixels[e], taps[c * filters + f][e], sums[f][e]);
      }
      for (int64_t f = 0; f < filters; ++f) {
        Line tile = both(sums[f], sumLine);
        for (int64_t p = 0; p < 4; ++p)
          if (i + p / 2 < rows && j + p % 2 < columns)
            result[((i + p / 2) * columns + j + p % 2) * filters + f] = tile[p];
      }
    }
}

} // namespace

void forward(const ConvolutionShape &s, const float *x, const float *w, float *y) {
  if (isByTiles(s, s.c, s.f, s.oh(), s.ow()))
    return correlate(
        {s.h, s.w, s.c, x}, -s.padding[0], -s.padding[2], s.oh(), s.ow(), s.f,
        [&](int64_t a, int64_t b, int64_t c, int64_t f) { return w[((a * 3 + b) * s.c + c) * s.f + f]; }, y);
  forEachProduct(s, [&](int64_t xi, int64_t wi, int64_t yi, bool inside) {
    y[yi] = std::fma(inside ? x[xi] : 0.0f, w[wi], y[yi]);
  });
}

void inputGradient(const ConvolutionShape &s, const float *dy, const float *w, float *dx) {
  if (isByTiles(s, s.f, s.c, s.h, s.w))
    return correlate(
        {s.oh(), s.ow(), s.f, dy}, s.padding[0] - 2, s.padding[2] - 2, s.h, s.w, s.c,
        [&](int64_t a, int64_t b, int64_t f, int64_t c) { return w[(((2 - a) * 3 + 2 - b) * s.c + c) * s.f + f]; }, dx);
  forEachProduct(s, [&](int64_t xi, int64_t wi, int64_t yi, bool inside) {
    if (inside)
      dx[xi] = std::fma(dy[yi], w[wi], dx[xi]);
  });
}

void kernelGradient(const ConvolutionShape &s, int64_t samples, const float *x, const float *dy, float *dw) {
  if (!isByTiles(s, s.c, s.f, s.oh(), s.ow()) || s.oh() * s.ow() < 64 || s.c < 32) {
    for (int64_t n = 0; n < samples; ++n)
      forEachProduct(s, [&](int64_t xi, int64_t wi, int64_t yi, bool inside) {
        dw[wi] = std::fma(inside ? x[n * s.images() + xi] : 0.0f, dy[n * s.outputs() + yi], dw[wi]);
      });
    return;
  }
  std::vector<Line> sums(s.c * s.f, Line(16));
  for (int64_t n = 0; n < samples; ++n) {
    Image image{s.h, s.w, s.c, x + n * s.images()}, gradient{s.oh(), s.ow(), s.f, dy + n * s.outputs()};
    for (int64_t i = 0; i < s.oh(); i += 2)
      for (int64_t j = 0; j < s.ow(); j += 2) {
        std::vector<Line> positions;
        for (int64_t f = 0; f < s.f; ++f)
          positions.push_back(square(gradient, i, j, f, 2, positionLine));
        for (int64_t c = 0; c < s.c; ++c) {
          Line pixels = square(image, i - s.padding[0], j - s.padding[2], c, 4, pixelLine);
          for (int64_t f = 0; f < s.f; ++f)
            for (int64_t e = 0; e < 16; ++e)
              sums[c * s.f + f][e] = std::fma(pixels[e], positions[f][e], sums[c * s.f + f][e]);
        }
      }
  }
  for (int64_t c = 0; c < s.c; ++c)
    for (int64_t f = 0; f < s.f; ++f) {
      Line taps = both(sums[c * s.f + f], elementLine);
      for (int64_t tap = 0; tap < 9; ++tap)
        dw[(tap * s.c + c) * s.f + f] = taps[tap];
    }
}

} // namespace codegentest
