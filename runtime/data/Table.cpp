// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Table.h"
#include "runtime/data/Idx.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace mtrun {

size_t storedSize(Stored type) {
  switch (type) {
  case Stored::U8:
  case Stored::Bool:
  case Stored::I8:
    return 1;
  case Stored::U16:
  case Stored::I16:
    return 2;
  case Stored::I32:
  case Stored::U32:
  case Stored::F32:
    return 4;
  case Stored::I64:
  case Stored::F64:
    return 8;
  }
  return 1;
}

const char *storedName(Stored type) {
  static const char *const kNames[] = {"u8", "bool", "i8", "u16", "i16", "i32", "u32", "i64", "f32", "f64"};
  return kNames[static_cast<int>(type)];
}

uint64_t Field::elements() const {
  uint64_t product = 1;
  for (uint64_t dim : shape)
    product *= dim;
  return product;
}

std::shared_ptr<const uint8_t> share(std::vector<uint8_t> &&bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return {owner, owner->data()};
}

static Status readAll(int descriptor, const std::string &path, std::vector<uint8_t> &bytes) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return {MT_IO, "cannot read " + path + ": it is not a regular file"};
  }
  gzFile file = gzdopen(descriptor, "rb");
  if (!file) {
    close(descriptor);
    return {MT_NO_MEMORY, "cannot read " + path + ": out of memory"};
  }
  gzbuffer(file, 1 << 17);
  bytes.resize(static_cast<size_t>(facts.st_size) + 1); // one more, so that a plain file ends within
  size_t got = 0;
  Status status;
  while (true) {
    if (got == bytes.size())
      bytes.resize(bytes.size() * 2);
    int count = gzread(file, bytes.data() + got, static_cast<unsigned>(std::min<size_t>(bytes.size() - got, 1 << 30)));
    if (count > 0) {
      got += static_cast<size_t>(count);
      continue;
    }
    int code = Z_OK;
    const char *reason = gzerror(file, &code);
    if (code == Z_ERRNO)
      status = ioError("cannot read", path, errno);
    else if (code != Z_OK)
      status = {MT_CORRUPT, path + ": damaged gzip data: " + reason};
    break;
  }
  gzclose_r(file);
  bytes.resize(got);
  return status;
}

Status readData(const std::string &path, std::vector<uint8_t> &bytes, std::string &found) {
  for (const char *suffix : {"", ".gz"}) {
    found = path + suffix;
    int descriptor = ::open(found.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0)
      return readAll(descriptor, found, bytes);
    if (errno != ENOENT)
      return ioError("cannot open", found, errno);
  }
  return ioError("cannot open", path + " or " + path + ".gz", ENOENT);
}

static Status addIdx(const std::string &path, int rank, const char *name, mtrun_role role, Table &table) {
  IdxArray array;
  if (Status s = readIdx(path, rank, array); !s.ok())
    return s;
  Field field;
  field.name = name;
  field.where = array.path;
  field.role = role;
  field.shape.assign(array.dims.begin() + 1, array.dims.end());
  field.samples = array.dims[0];
  field.stride = field.elements();
  field.bytes = std::shared_ptr<const uint8_t>(array.bytes.release(), std::default_delete<uint8_t[]>());
  table.fields.push_back(std::move(field));
  return {};
}

Status openMnist(const DataSpec &spec, Table &table) {
  std::string base = spec.paths[0] + (spec.test ? "/t10k" : "/train");
  if (Status s = addIdx(base + "-images-idx3-ubyte", 3, "image", MTRUN_INPUT, table); !s.ok())
    return s;
  return addIdx(base + "-labels-idx1-ubyte", 1, "label", MTRUN_TARGET, table);
}

// Records of labels and a picture of 3 x 32 x 32 bytes, channel by channel; we hold channels last.
Status openCifar(const DataSpec &spec, Table &table) {
  constexpr uint64_t kPixels = 32 * 32, kPicture = 3 * kPixels;
  bool hundred = spec.kind == "cifar100";
  uint64_t labels = hundred ? 2 : 1, record = labels + kPicture; // coarse and fine; the fine one counts
  const std::string &path = spec.paths[0];
  std::vector<std::string> names;
  if (path.ends_with(".bin") || path.ends_with(".bin.gz")) // a file of them alone
    names = {path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path};
  else if (hundred || spec.test)
    names = {path + (hundred ? (spec.test ? "/test.bin" : "/train.bin") : "/test_batch.bin")};
  else
    for (int i = 1; i <= 5; ++i)
      names.push_back(path + "/data_batch_" + std::to_string(i) + ".bin");
  std::vector<uint8_t> pictures, targets;
  std::string found;
  for (const std::string &name : names) {
    std::vector<uint8_t> bytes;
    if (Status s = readData(name, bytes, found); !s.ok())
      return s;
    if (bytes.empty() || bytes.size() % record)
      return {MT_CORRUPT, found + ": expected records of " + std::to_string(record) + " bytes, found " +
                              std::to_string(bytes.size()) + " bytes"};
    for (size_t at = 0; at < bytes.size(); at += record) {
      targets.push_back(bytes[at + labels - 1]);
      const uint8_t *picture = bytes.data() + at + labels;
      for (uint64_t p = 0; p < kPixels; ++p)
        for (uint64_t c = 0; c < 3; ++c)
          pictures.push_back(picture[c * kPixels + p]);
    }
  }
  std::string where = names.size() == 1 ? found : path;
  uint64_t samples = targets.size();
  Field image = {
      "image", where, MTRUN_INPUT, false, Stored::U8, {32, 32, 3}, samples, kPicture, share(std::move(pictures))};
  Field label = {"label", where, MTRUN_TARGET, false, Stored::U8, {}, samples, 1, share(std::move(targets))};
  table.fields = {std::move(image), std::move(label)};
  return {};
}

// nanoGPT's files are u16 tokens and nothing else; llm.c's begin with 256 i32, of which the first three say what
// follows.
Status openTokens(const DataSpec &spec, Table &table) {
  constexpr size_t kHeader = 256 * 4;
  std::vector<uint8_t> bytes;
  std::string found;
  if (Status s = readData(spec.paths[0], bytes, found); !s.ok())
    return s;
  auto word = [&](size_t i) {
    return uint32_t(bytes[4 * i]) | uint32_t(bytes[4 * i + 1]) << 8 | uint32_t(bytes[4 * i + 2]) << 16 |
           uint32_t(bytes[4 * i + 3]) << 24;
  };
  size_t begin = 0;
  Stored type = Stored::U16;
  if (bytes.size() >= kHeader && (word(0) == 20240520 || word(0) == 20240801)) {
    begin = kHeader;
    uint32_t version = word(0) == 20240520 ? 1 : 7;
    type = version == 1 ? Stored::U16 : Stored::U32;
    if (word(1) != version || bytes.size() - kHeader != uint64_t(word(2)) * storedSize(type))
      return {MT_CORRUPT, found + ": expected version " + std::to_string(version) + " and " + std::to_string(word(2)) +
                              " tokens of " + std::to_string(storedSize(type)) + " bytes, found version " +
                              std::to_string(word(1)) + " and " + std::to_string(bytes.size() - kHeader) + " bytes"};
  }
  uint64_t size = storedSize(type), tokens = (bytes.size() - begin) / size, length = static_cast<uint64_t>(spec.length);
  if ((bytes.size() - begin) % size)
    return {MT_CORRUPT, found + ": expected tokens of " + std::to_string(size) + " bytes, found " +
                            std::to_string(bytes.size() - begin) + " bytes"};
  if (length == 0)
    return {MT_INVALID, "data: expected length=T, the tokens of a sample, found none"};
  if (tokens < length + 1)
    return {MT_INVALID,
            found + ": expected at least " + std::to_string(length + 1) + " tokens, found " + std::to_string(tokens)};
  std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
  // Windows of T + 1 that share their ends: each token but the first is predicted once.
  uint64_t samples = (tokens - 1) / length;
  Field in = {
      "tokens", found, MTRUN_INPUT, false, type, {length}, samples, length * size, {owner, owner.get() + begin}};
  Field out = in;
  out.name = "next";
  out.role = MTRUN_TARGET;
  out.bytes = {owner, owner.get() + begin + size};
  table.fields = {std::move(in), std::move(out)};
  return {};
}

Status openTable(const DataSpec &spec, Table &table) {
  struct {
    const char *kind;
    Status (*open)(const DataSpec &, Table &);
  } sources[] = {{"mnist", openMnist}, {"cifar10", openCifar}, {"cifar100", openCifar},
                 {"npy", openNpy},     {"npz", openNpz},       {"tokens", openTokens},
                 {"csv", openCsv},     {"images", openImages}, {"tfrecord", openTfrecord}};
  for (const auto &source : sources)
    if (spec.kind == source.kind)
      if (Status s = source.open(spec, table); !s.ok())
        return s;
  for (const Field &field : table.fields)
    if (field.samples != table.fields[0].samples)
      return {MT_INVALID, table.fields[0].where + " has " + std::to_string(table.fields[0].samples) + " samples, " +
                              field.where + (field.where == table.fields[0].where ? " (" + field.name + ")" : "") +
                              " has " + std::to_string(field.samples)};
  return {};
}

} // namespace mtrun
