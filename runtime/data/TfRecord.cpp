// SPDX-License-Identifier: Apache-2.0
//
// tfrecord:GLOB: files of tf.train.Example records. Encoded pictures are read on demand; other features are kept in
// memory.
#include "runtime/data/Pictures.h"
#include "runtime/data/Records.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <cstring>
#include <glob.h>
#include <map>

namespace mtrun {
namespace {

// A feature in all records so far.
struct Gathered {
  Feature::Kind kind = Feature::Kind::None;
  bool encoded = false; // JPEG or PNG pictures
  uint64_t count = 0;   // values per sample; for bytes the number of bytes
  std::string trouble;  // the reason why the feature cannot be a field
  std::vector<uint8_t> bytes;
  std::vector<Pictures::Place> places;
};

class TfRecordReader {
public:
  explicit TfRecordReader(const DataSpec &spec) : spec_(spec) {}
  Status read(const std::vector<std::string> &paths);
  Status finish(Table &table);

private:
  Status add(uint32_t file, uint64_t number, uint64_t offset, std::span<const uint8_t> record);
  void begin(const Feature &feature);
  std::string append(const Feature &feature, Gathered &gathered, uint32_t file, uint64_t offset,
                     std::span<const uint8_t> record);
  bool isTextLabel(const Feature &feature) const;
  bool wanted(std::string_view name) const { return !chosen() || name == spec_.input || name == spec_.target; }
  bool chosen() const { return !spec_.input.empty() || !spec_.target.empty(); }
  Status setRoles(Table &table) const;
  std::string names() const;

  const DataSpec &spec_;
  std::shared_ptr<Pictures> pictures_ = std::make_shared<Pictures>();
  std::map<std::string, Gathered, std::less<>> features_;
  std::vector<Feature> parsed_;    // views of the current record
  std::vector<std::string> names_; // names in the first record
  uint64_t records_ = 0;
};

const char *kindName(Feature::Kind kind) {
  static const char *const kindNames[] = {"no values", "bytes", "floats", "integers"};
  return kindNames[static_cast<int>(kind)];
}

} // namespace

constexpr const char *labelNames[] = {"image/class/label", "label"};

// Returns true for a class name in a feature that should have the class number. With raw= bytes are always numbers.
bool TfRecordReader::isTextLabel(const Feature &feature) const {
  constexpr size_t longest = 256;
  bool label = chosen() ? feature.name == spec_.target
                        : std::find(std::begin(labelNames), std::end(labelNames), feature.name) != std::end(labelNames);
  if (!label || spec_.raw || feature.kind != Feature::Kind::Bytes || feature.bytes.size() != 1)
    return false;
  std::span<const uint8_t> bytes = feature.bytes[0];
  return bytes.size() <= longest && std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte >= ' '; });
}

void TfRecordReader::begin(const Feature &feature) {
  if (!wanted(feature.name))
    return;
  Gathered gathered;
  gathered.kind = feature.kind;
  gathered.count = feature.count();
  if (feature.kind == Feature::Kind::Bytes && feature.bytes.size() == 1) {
    gathered.count = feature.bytes[0].size();
    gathered.encoded = !spec_.raw && (images::isJpeg(feature.bytes[0].data(), feature.bytes[0].size()) ||
                                      images::isPng(feature.bytes[0].data(), feature.bytes[0].size()));
  } else if (feature.kind == Feature::Kind::Bytes) {
    gathered.trouble = "has " + std::to_string(gathered.count) + " strings of bytes, expected 1";
  }
  if (gathered.count == 0)
    gathered.trouble = "has no values in the first record";
  else if (isTextLabel(feature))
    gathered.trouble = "has the text \"" +
                       printable({reinterpret_cast<const char *>(feature.bytes[0].data()), feature.bytes[0].size()}) +
                       "\", expected the number of a class, an integer";
  features_.emplace(feature.name, std::move(gathered));
}

// Appends a record's feature. Returns "", or the reason why it does not match earlier records.
std::string TfRecordReader::append(const Feature &feature, Gathered &gathered, uint32_t file, uint64_t offset,
                                   std::span<const uint8_t> record) {
  if (feature.kind != gathered.kind)
    return std::string("has ") + kindName(feature.kind) + ", expected " + kindName(gathered.kind) +
           " as in the first record";
  auto keep = [&](const void *data, size_t size) {
    const auto *bytes = static_cast<const uint8_t *>(data);
    gathered.bytes.insert(gathered.bytes.end(), bytes, bytes + size);
  };
  uint64_t count = feature.count();
  if (feature.kind == Feature::Kind::Bytes) {
    if (count != 1)
      return "has " + std::to_string(count) + " strings of bytes, expected 1";
    std::span<const uint8_t> bytes = feature.bytes[0];
    count = bytes.size();
    if (gathered.encoded) {
      // In Pictures a size of 0 stands for the whole file, so an empty feature gets size 1, which is an invalid picture
      // too.
      gathered.places.push_back(
          {file, offset + static_cast<uint64_t>(bytes.data() - record.data()), std::max<uint64_t>(bytes.size(), 1)});
      return "";
    }
  }
  if (count != gathered.count)
    return "has " + std::to_string(count) + " values, expected " + std::to_string(gathered.count) +
           " as in the first record";
  if (feature.kind == Feature::Kind::Bytes)
    keep(feature.bytes[0].data(), count);
  else if (feature.kind == Feature::Kind::Floats)
    keep(feature.floats.data(), count * sizeof(float));
  else
    keep(feature.ints.data(), count * sizeof(int64_t));
  return "";
}

Status TfRecordReader::add(uint32_t file, uint64_t, uint64_t offset, std::span<const uint8_t> record) {
  if (Status s = parseExample(record, parsed_); !s.ok())
    return s;
  if (records_++ == 0)
    for (const Feature &feature : parsed_) {
      names_.emplace_back(feature.name);
      begin(feature);
    }
  for (auto &[name, gathered] : features_) {
    if (!gathered.trouble.empty() && !chosen())
      continue;
    auto found = std::find_if(parsed_.begin(), parsed_.end(), [&](const Feature &f) { return f.name == name; });
    if (gathered.trouble.empty())
      gathered.trouble = found == parsed_.end() ? "is missing" : append(*found, gathered, file, offset, record);
    if (gathered.trouble.empty())
      continue;
    if (chosen())
      return {MT_INVALID, "feature \"" + name + "\" " + gathered.trouble};
    gathered.bytes = {};
    gathered.places = {};
  }
  return {};
}

Status TfRecordReader::read(const std::vector<std::string> &paths) {
  if (Status s = pictures_->open(spec_); !s.ok())
    return s;
  for (const std::string &path : paths) {
    auto file = static_cast<uint32_t>(pictures_->files.size());
    pictures_->files.push_back(path);
    std::shared_ptr<const std::vector<uint8_t>> inflated;
    if (Status s = readRecords(path, inflated,
                               [&](uint64_t number, uint64_t offset, std::span<const uint8_t> bytes) {
                                 return add(file, number, offset, bytes);
                               });
        !s.ok())
      return s;
    pictures_->loaded.push_back(std::move(inflated));
  }
  return {};
}

std::string TfRecordReader::names() const {
  std::string text;
  for (const std::string &name : names_)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// Chooses the roles: by the names of the user or the model; without them, the only encoded picture is the input, and an
// integer feature with a label's name is the target.
Status TfRecordReader::setRoles(Table &table) const {
  uint64_t encoded = 0;
  for (const Field &field : table.fields)
    encoded += field.pictures != nullptr;
  if (encoded > 1)
    return {MT_INVALID, spec_.paths[0] + ": expected one feature of pictures, found " + std::to_string(encoded) +
                            "; x=NAME,y=NAME choose among " + names()};
  const char *label = "";
  for (const char *name : labelNames)
    for (const Field &field : table.fields)
      if (field.name == name && field.type == Stored::I64 && field.elements() == 1)
        label = name;
  for (Field &field : table.fields) {
    bool target = chosen() ? field.name == spec_.target : field.name == label;
    field.role = target ? MTRUN_TARGET : MTRUN_INPUT;
    field.named = !chosen() && !target && !field.pictures;
    field.spare = field.named;
  }
  return {};
}

Status TfRecordReader::finish(Table &table) {
  const std::string &where = spec_.paths[0];
  if (records_ == 0)
    return {MT_INVALID, where + ": expected records, found none"};
  for (const std::string &name : {spec_.input, spec_.target})
    if (!name.empty() && !features_.count(name))
      return {MT_INVALID, where + ": expected a feature \"" + name + "\", found " + names()};
  std::vector<uint64_t> intact;
  for (auto &[name, gathered] : features_)
    if (gathered.encoded && gathered.trouble.empty() && pictures_->places.empty()) {
      pictures_->places = std::move(gathered.places);
      if (Status s = surveyPictures(spec_, where, *pictures_, intact, table.notes); !s.ok())
        return s;
    }
  bool all = intact.empty() || intact.size() == records_;
  for (auto &[name, gathered] : features_) {
    if (!gathered.trouble.empty()) {
      table.notes.push_back(where + ": feature \"" + name + "\" is left out: it " + gathered.trouble);
      continue;
    }
    Field field;
    field.name = name;
    field.where = where;
    field.samples = all ? records_ : intact.size();
    if (gathered.encoded) {
      field.pictures = pictures_;
      table.fields.push_back(std::move(field));
      continue;
    }
    field.type = gathered.kind == Feature::Kind::Floats ? Stored::F32
                 : gathered.kind == Feature::Kind::Ints ? Stored::I64
                                                        : spec_.raw.value_or(Stored::U8);
    field.stride = gathered.kind == Feature::Kind::Bytes ? gathered.count : gathered.count * storedSize(field.type);
    if (field.stride % storedSize(field.type))
      return {MT_INVALID, where + ": feature \"" + name + "\" has " + std::to_string(field.stride) +
                              " bytes, expected a multiple of raw=" + storedName(field.type)};
    if (uint64_t elements = field.stride / storedSize(field.type); elements > 1)
      field.shape = {elements};
    for (uint64_t i = 0; !all && i < intact.size(); ++i)
      memmove(gathered.bytes.data() + i * field.stride, gathered.bytes.data() + intact[i] * field.stride, field.stride);
    field.bytes = share(std::move(gathered.bytes));
    table.fields.push_back(std::move(field));
  }
  if (table.fields.empty())
    return {MT_INVALID, where + ": expected features of the same number of values in every record, found " + names()};
  return setRoles(table);
}

static Status openTfrecord(const DataSpec &spec, Table &table) {
  std::vector<std::string> paths;
  glob_t matches = {};
  int code = glob(spec.paths[0].c_str(), GLOB_ERR, nullptr, &matches);
  for (size_t i = 0; code == 0 && i < matches.gl_pathc; ++i)
    paths.emplace_back(matches.gl_pathv[i]);
  globfree(&matches);
  if (code != 0 && code != GLOB_NOMATCH)
    return {MT_IO, "cannot look for " + spec.paths[0]};
  if (paths.empty())
    return {MT_IO, "expected files that match " + spec.paths[0] + ", found none"};
  TfRecordReader reader(spec);
  if (Status s = reader.read(paths); !s.ok())
    return s;
  return reader.finish(table);
}

extern const SourceKind tfrecordSource = {
    .name = "tfrecord",
    .form = "tfrecord:GLOB",
    .help = "features of tf.train.Example records",
    .keys = "x=, y=, raw=, size=, flip=, crop=, cache=, check=, strict=, upright=, threads=",
    .open = openTfrecord,
};

} // namespace mtrun
