// SPDX-License-Identifier: Apache-2.0
//
// Measures the rate of batches from a source without computation, and the rate of the decoding library alone.
#include "runtime/data/BatchStream.h"
#include "runtime/data/Describe.h"
#include "runtime/data/Resize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int rounds = 5; // the median of the rounds is reported
constexpr uint64_t maxPictures = 512;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The columns of a model with f32 inputs and i32 labels.
struct Model {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;

  mtrun_tensor_info entry(const Field &field, const DataSpec &spec) {
    std::vector<int64_t> shape = {-1};
    if (field.pictures)
      shape.insert(shape.end(), {spec.height, spec.width, 3});
    for (uint64_t dim : field.shape)
      shape.push_back(static_cast<int64_t>(dim));
    names.push_back(field.name);
    shapes.push_back(std::move(shape));
    mtrun_tensor_info info = {};
    info.limit = -1;
    info.name = names.back().c_str();
    info.role = field.role;
    info.dtype = isFloat(field.type) || (field.role == MTRUN_INPUT && field.type == Stored::U8) ? MT_F32 : MT_I32;
    if (field.pictures)
      info.dtype = MT_F32;
    info.rank = static_cast<int32_t>(shapes.back().size());
    info.shape = shapes.back().data();
    return info;
  }
};

// Returns samples per second of shuffled batches, measured for about `seconds` seconds.
double pipelineSpeed(const mtrun_dataset &data, const Binding &binding, int64_t batch, double seconds) {
  BatchStream stream(data, binding,
                     {.batch = batch,
                      .epochs = INT64_MAX / 4 / std::max<int64_t>(data.size, 1),
                      .shuffle = true,
                      .readers = data.readers,
                      .allowNan = true,
                      .augment = true});
  for (int i = 0; i < 3; ++i) // warms up the decoders and draws the first order
    stream.next();
  auto start = Clock::now();
  int64_t samples = 0;
  while (secondsSince(start) < seconds)
    samples += stream.next().rows;
  return static_cast<double>(samples) / secondsSince(start);
}

// Returns pictures per second that the library decodes and resizes, from files in memory.
double librarySpeed(const Pictures &pictures, const DataSpec &spec, const std::vector<std::vector<uint8_t>> &files,
                    int threads, double seconds) {
  std::atomic<int64_t> done{0};
  auto start = Clock::now();
  auto work = [&](size_t at) {
    Picture picture;
    std::vector<float> resized(uint64_t(spec.height) * spec.width * 3);
    for (; secondsSince(start) < seconds; ++at) {
      if (!decodePicture(pictures.decoder(), files[at % files.size()], 3, pictures.upright(), false, picture).ok())
        return;
      resizeBilinear(picture.pixels, picture.height, picture.width, 3, resized.data(), spec.height, spec.width);
      done.fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(work, static_cast<size_t>(i) * files.size() / static_cast<size_t>(threads));
  work(0);
  for (std::thread &thread : others)
    thread.join();
  return static_cast<double>(done.load()) / secondsSince(start);
}

} // namespace

static Status openForSpeed(const DataSpec &spec, Table &table, Model &model, mtrun_dataset &data, Binding &binding) {
  if (Status s = openTable(spec, table); !s.ok())
    return s;
  model.names.reserve(table.fields.size()); // entries point into `names`
  for (Field &field : table.fields) {
    if (field.pictures && spec.height == 0)
      return {MT_INVALID, "data: expected size=HxW, the size that a model takes, for the speed of pictures"};
    mtrun_tensor_info entry = model.entry(field, spec);
    data.columns.emplace_back();
    if (Status s = data.columns.back().open(field, entry, spec); !s.ok())
      return s;
    binding.columns.push_back(static_cast<int>(data.columns.size()) - 1);
  }
  data.size = static_cast<int64_t>(table.fields[0].samples);
  data.readers = readerThreads(spec);
  return {};
}

Status benchmarkData(const char *text, int64_t batch, double seconds, void (*line)(void *, const char *), void *user) {
  DataSpec spec;
  Table table;
  Model model;
  mtrun_dataset data;
  Binding binding;
  if (Status s = parseDataSpec(text, spec); !s.ok())
    return s;
  if (Status s = openForSpeed(spec, table, model, data, binding); !s.ok())
    return s;
  const Pictures *pictures = table.fields[0].pictures.get();
  int threads = data.readers;
  std::vector<std::vector<uint8_t>> files(pictures ? std::min<uint64_t>(maxPictures, pictures->places.size()) : 0);
  for (size_t i = 0; i < files.size(); ++i) {
    std::span<const uint8_t> bytes;
    uint64_t sample = i * pictures->places.size() / files.size();
    if (Status s = pictures->load(sample, files[i], bytes); !s.ok())
      return s;
    files[i] = std::vector<uint8_t>(bytes.begin(), bytes.end());
  }
  std::vector<double> pipeline, library, shares;
  for (int round = 0; round < rounds; ++round) { // alternate, so that other load on the machine affects both
    pipeline.push_back(pipelineSpeed(data, binding, batch, seconds / rounds));
    if (!pictures)
      continue;
    library.push_back(librarySpeed(*pictures, spec, files, threads, seconds / rounds));
    shares.push_back(library.back() > 0 ? pipeline.back() / library.back() : 0);
  }
  char buffer[256];
  snprintf(buffer, sizeof buffer, "%s: %.0f samples/s in shuffled batches of %lld, %d thread%s", text, median(pipeline),
           static_cast<long long>(batch), threads, threads == 1 ? "" : "s");
  line(user, buffer);
  if (!pictures)
    return {};
  snprintf(buffer, sizeof buffer,
           "  decoding and resizing alone, files in memory: %.0f samples/s; the pipeline has %.0f%%", median(library),
           100 * median(shares));
  line(user, buffer);
  return {};
}

} // namespace mtrun
