// SPDX-License-Identifier: Apache-2.0
//
// cifar10:DIR and cifar100:DIR: the binary files, or the pickles of the Python version, which Keras downloads.
#include "runtime/data/Pickle.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"

#include <array>
#include <filesystem>

namespace mtrun {
namespace {

constexpr uint64_t pixels = 32 * 32, pictureSize = 3 * pixels;

struct Samples {
  std::vector<uint8_t> pictures, targets;

  // Adds a picture. `from` has channels first; the result has channels last.
  void add(const char *from, uint8_t target) {
    targets.push_back(target);
    for (uint64_t p = 0; p < pixels; ++p)
      for (uint64_t c = 0; c < 3; ++c)
        pictures.push_back(static_cast<uint8_t>(from[c * pixels + p]));
  }
};

bool there(const std::string &path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

} // namespace

// Adds records of labels and a picture. A record of CIFAR-100 has a coarse and then a fine label; the fine label is
// used.
static Status addRecords(const std::string &opened, std::vector<uint8_t> &&bytes, uint64_t labels, Samples &samples) {
  uint64_t record = labels + pictureSize;
  if (bytes.empty() || bytes.size() % record)
    return {MT_CORRUPT, opened + ": expected records of " + std::to_string(record) + " bytes, found " +
                            std::to_string(bytes.size()) + " bytes"};
  for (size_t at = 0; at < bytes.size(); at += record)
    samples.add(reinterpret_cast<const char *>(bytes.data()) + at + labels, bytes[at + labels - 1]);
  return {};
}

// Adds a dictionary with "data", a byte array [N, 3072], and "labels" or "fine_labels", a list of N numbers.
static Status addPickle(const std::string &opened, std::vector<uint8_t> &&bytes, bool hundred, Samples &samples) {
  Pickle pickle;
  if (Status s = readPickle(bytes, opened, pickle); !s.ok())
    return s;
  const char *name = hundred ? "fine_labels" : "labels";
  const PickleValue *data = find(*pickle.root, "data"), *labels = find(*pickle.root, name);
  if (!data || data->kind != PickleValue::Array || !data->elements || data->shape.size() != 2 ||
      data->shape[1] != int64_t{pictureSize} || !labels || labels->items.size() != static_cast<size_t>(data->shape[0]))
    return {MT_CORRUPT, opened + ": expected \"data\", bytes of the shape [N, 3072], and N \"" + name + "\", found " +
                            (data && labels ? "other sizes"
                             : data         ? "no labels"
                                            : "no data")};
  for (size_t i = 0; i < labels->items.size(); ++i) {
    int64_t label = labels->items[i]->integer;
    if (labels->items[i]->kind != PickleValue::Integer || label < 0 || label > 255)
      return {MT_CORRUPT,
              opened + ": expected labels of 0 to 255, found an invalid label in sample " + std::to_string(i)};
    samples.add(data->elements->text.data() + i * pictureSize, static_cast<uint8_t>(label));
  }
  return {};
}

// Reads the names of the classes, if their file is in the folder.
static void addNames(const std::string &folder, bool pickled, bool hundred, Table &table) {
  std::string path = folder + (pickled   ? hundred ? "/meta" : "/batches.meta"
                               : hundred ? "/fine_label_names.txt"
                                         : "/batches.meta.txt");
  std::vector<uint8_t> bytes;
  std::string opened;
  if (!there(path) || !readData(path, bytes, opened).ok())
    return;
  if (pickled) {
    Pickle pickle;
    if (!readPickle(bytes, opened, pickle).ok())
      return;
    if (const PickleValue *names = find(*pickle.root, hundred ? "fine_label_names" : "label_names"))
      for (const PickleValue *name : names->items)
        table.classes.push_back(name->text);
    return;
  }
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_suffix(line.ends_with('\r'));
    if (!line.empty())
      table.classes.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

static Status openCifar(const DataSpec &spec, Table &table) {
  bool hundred = spec.kind == "cifar100";
  std::string path = spec.paths[0];
  for (const char *inside : hundred ? std::array{"/cifar-100-python", "/cifar-100-binary"}
                                    : std::array{"/cifar-10-batches-py", "/cifar-10-batches-bin"})
    if (there(path + inside)) { // the folder of an unpacked download
      path += inside;
      break;
    }
  std::vector<std::string> names;
  bool file = path.ends_with(".bin") || path.ends_with(".bin.gz"); // the path names a file and not a folder
  bool pickled = !file && there(path + (hundred ? "/train" : "/test_batch"));
  std::string suffix = pickled ? "" : ".bin";
  if (file)
    names = {path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path};
  else if (hundred)
    names = {path + (spec.test ? "/test" : "/train") + suffix};
  else if (spec.test)
    names = {path + "/test_batch" + suffix};
  else
    for (int i = 1; i <= 5; ++i)
      names.push_back(path + "/data_batch_" + std::to_string(i) + suffix);
  Samples read;
  std::string opened;
  for (const std::string &name : names) {
    std::vector<uint8_t> bytes;
    if (Status s = readData(name, bytes, opened); !s.ok())
      return s;
    if (Status s = pickled ? addPickle(opened, std::move(bytes), hundred, read)
                           : addRecords(opened, std::move(bytes), hundred ? 2 : 1, read);
        !s.ok())
      return s;
  }
  if (!file)
    addNames(path, pickled, hundred, table);
  std::string where = names.size() == 1 ? opened : path;
  uint64_t samples = read.targets.size();
  Field image = {"image", where,       MTRUN_INPUT,
                 false,   Stored::U8,  {32, 32, 3},
                 samples, pictureSize, share(std::move(read.pictures))};
  Field label = {"label", where, MTRUN_TARGET, false, Stored::U8, {}, samples, 1, share(std::move(read.targets))};
  table.fields = {std::move(image), std::move(label)};
  return {};
}

extern const SourceKind cifar10Source = {
    .name = "cifar10",
    .form = "cifar10:DIR",
    .help = "the files of CIFAR-10, binary or pickled",
    .keys = "split=",
    .open = openCifar,
};

extern const SourceKind cifar100Source = {
    .name = "cifar100",
    .form = "cifar100:DIR",
    .help = "the files of CIFAR-100, with the fine labels",
    .keys = "split=",
    .open = openCifar,
};

} // namespace mtrun
