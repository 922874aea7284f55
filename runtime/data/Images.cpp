// SPDX-License-Identifier: Apache-2.0
//
// images:DIR, a folder for each class, and images:FILE.csv, with a line per file and label.
#include "runtime/data/Pictures.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

namespace mtrun {
namespace {

namespace fs = std::filesystem;

// Returns true if the extension of a file's name is one of `ends`.
bool endsWithOne(std::string_view name, std::initializer_list<std::string_view> ends) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return false;
  std::string end(name.substr(dot + 1));
  for (char &c : end)
    c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return std::find(ends.begin(), ends.end(), end) != ends.end();
}

bool isPicture(std::string_view name) { return endsWithOne(name, {"jpg", "jpeg", "jfif", "jpe", "png"}); }

// Formats of phones, browsers and scanners that are not supported.
bool isOtherPicture(std::string_view name) {
  return endsWithOne(name, {"heic", "heif", "avif", "webp", "gif", "bmp", "tif", "tiff", "jp2", "jxl"});
}

// The files and labels of a source before the pictures are read.
struct Listing {
  std::vector<std::string> files;
  std::vector<int64_t> labels; // labels of the files; empty: there are no labels
  std::vector<std::string> classes;
  uint64_t others = 0; // files of other kinds
  uint64_t unread = 0; // pictures of unsupported formats among them
  std::string firstUnread;
};

} // namespace

// Returns true for a link to a folder that contains the link, which would make the walk endless.
static bool leadsUp(const fs::directory_entry &entry) {
  std::error_code error;
  if (!entry.is_symlink(error) || !entry.is_directory(error))
    return false;
  fs::path target = fs::canonical(entry.path(), error), at = fs::canonical(entry.path().parent_path(), error);
  return !error && std::mismatch(target.begin(), target.end(), at.begin(), at.end()).first == target.end();
}

// Lists the pictures in `folder` and its subfolders, sorted by path.
static Status listFolder(const fs::path &folder, bool deep, Listing &listing) {
  std::vector<std::string> &files = listing.files;
  size_t before = files.size();
  std::error_code error;
  auto add = [&](const fs::directory_entry &entry) {
    if (entry.is_directory(error))
      return;
    const std::string &path = entry.path().native();
    if (isPicture(path)) {
      files.push_back(path);
      return;
    }
    ++listing.others;
    if (!isOtherPicture(path))
      return;
    if (listing.unread++ == 0 || path < listing.firstUnread)
      listing.firstUnread = path;
  };
  auto options = fs::directory_options::follow_directory_symlink;
  if (deep) {
    for (fs::recursive_directory_iterator i(folder, options, error), end; !error && i != end; i.increment(error)) {
      if (i.depth() > 32)
        return {MT_IO, "cannot read " + folder.native() + ": expected at most 32 levels of folders, found more"};
      if (leadsUp(*i))
        return {MT_IO, "cannot read " + i->path().native() + ": it is a link to a folder that holds it"};
      add(*i);
    }
  } else {
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
      add(*i);
  }
  if (error)
    return ioError("cannot read", folder.native(), error.value());
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  return {};
}

static Status listClasses(const DataSpec &spec, Listing &listing, std::vector<std::string> &notes) {
  const std::string &path = spec.paths[0];
  std::error_code error;
  for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error))
    if (i->is_directory(error) && !i->path().filename().native().starts_with("."))
      listing.classes.push_back(i->path().filename());
  if (error)
    return ioError("cannot read", path, error.value());
  std::sort(listing.classes.begin(), listing.classes.end());
  if (listing.classes.empty())
    return listFolder(path, false, listing);
  for (size_t label = 0; label < listing.classes.size(); ++label) {
    if (Status s = listFolder(fs::path(path) / listing.classes[label], true, listing); !s.ok())
      return s;
    listing.labels.resize(listing.files.size(), static_cast<int64_t>(label));
  }
  return {};
}

// Reads lines "FILE,LABEL", with a comma or a semicolon, or "FILE". FILE is relative to the folder of the list. The
// first line may have the names of the columns.
static Status readList(const DataSpec &spec, Listing &listing) {
  std::vector<uint8_t> bytes;
  std::string opened;
  if (Status s = readData(spec.paths[0], bytes, opened); !s.ok())
    return s;
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  std::vector<std::string> names;
  fs::path folder = fs::path(spec.paths[0]).parent_path();
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    size_t comma = line.rfind(',');
    if (comma == std::string_view::npos && !isPicture(line))
      comma = line.rfind(';');
    std::string_view file = line.substr(0, comma);
    if (line.empty() || (number == 1 && !isPicture(file)))
      continue;
    bool labelled = comma != std::string_view::npos;
    std::string_view label = labelled ? line.substr(comma + 1) : "";
    if (file.empty() || (labelled && label.empty()) || (!listing.files.empty() && labelled == names.empty()))
      return {MT_INVALID, opened + ", line " + std::to_string(number) + ": expected FILE,LABEL" +
                              (names.empty() && !listing.files.empty() ? " in every line or in none" : "") +
                              ", found \"" + std::string(line) + "\""};
    listing.files.push_back(folder / file);
    if (labelled)
      names.emplace_back(label);
  }
  bool numbers = std::all_of(names.begin(), names.end(), [&](const std::string &name) {
    int64_t label = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), label);
    listing.labels.push_back(label);
    return error == std::errc() && end == name.data() + name.size();
  });
  if (numbers)
    return {};
  listing.classes = names;
  std::sort(listing.classes.begin(), listing.classes.end());
  listing.classes.erase(std::unique(listing.classes.begin(), listing.classes.end()), listing.classes.end());
  listing.labels.clear();
  for (const std::string &name : names)
    listing.labels.push_back(std::lower_bound(listing.classes.begin(), listing.classes.end(), name) -
                             listing.classes.begin());
  return {};
}

// Reports classes without a picture, which are usually a mistake.
static Status checkClasses(const DataSpec &spec, const Listing &listing, const std::vector<int64_t> &labels,
                           std::vector<std::string> &notes) {
  std::vector<uint64_t> counts(listing.classes.size());
  for (int64_t label : labels)
    if (!listing.classes.empty())
      ++counts[static_cast<size_t>(label)];
  std::string empty;
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0 && ++count <= 5)
      empty += (empty.empty() ? "" : ", ") + listing.classes[i];
  if (count == 0)
    return {};
  std::string text = spec.paths[0] + ": expected pictures of each of " + std::to_string(counts.size()) +
                     " classes, found none of " + std::to_string(count) + ": " + empty + (count > 5 ? ", ..." : "");
  if (spec.strict)
    return {MT_INVALID, text};
  notes.push_back(text + "; " + (count == 1 ? "it keeps its label" : "they keep their labels"));
  return {};
}

static Status openImages(const DataSpec &spec, Table &table) {
  Listing listing;
  std::error_code error;
  const std::string &path = spec.paths[0];
  bool folder = fs::is_directory(path, error);
  if (Status s = folder ? listClasses(spec, listing, table.notes) : readList(spec, listing); !s.ok())
    return s;
  if (listing.files.empty())
    return {MT_INVALID, path + ": expected .jpg, .jpeg or .png files" +
                            (folder ? ", in a folder for each class" : ", one per line with a label") + ", found none" +
                            (listing.others ? " among " + std::to_string(listing.others) + " files" : "")};
  if (listing.unread) {
    std::string text = path + ": expected JPEG and PNG files, found " + std::to_string(listing.unread) +
                       " pictures of other formats; the first: " + listing.firstUnread;
    if (spec.strict)
      return {MT_INVALID, text};
    table.notes.push_back(text + "; they are left out");
  }
  auto pictures = std::make_shared<Pictures>();
  if (Status s = pictures->open(spec); !s.ok())
    return s;
  pictures->files = std::move(listing.files);
  for (size_t i = 0; i < pictures->files.size(); ++i)
    pictures->places.push_back({static_cast<uint32_t>(i), 0, 0});
  std::vector<uint64_t> intact;
  if (Status s = surveyPictures(spec, path, *pictures, intact, table.notes); !s.ok())
    return s;

  Field image;
  image.name = "image";
  image.where = path;
  image.samples = intact.size();
  image.pictures = std::move(pictures);
  table.fields.push_back(std::move(image));
  if (listing.labels.empty())
    return {};
  std::vector<int64_t> labels;
  for (uint64_t sample : intact)
    labels.push_back(listing.labels[sample]);
  if (Status s = checkClasses(spec, listing, labels, table.notes); !s.ok())
    return s;
  std::vector<uint8_t> bytes(labels.size() * sizeof(int64_t));
  memcpy(bytes.data(), labels.data(), bytes.size());
  Field label;
  label.name = "label";
  label.where = path;
  label.role = MTRUN_TARGET;
  label.type = Stored::I64;
  label.samples = labels.size();
  label.stride = sizeof(int64_t);
  label.bytes = share(std::move(bytes));
  table.fields.push_back(std::move(label));
  table.classes = std::move(listing.classes);
  return {};
}

extern const SourceKind imagesSource = {
    .name = "images",
    .form = "images:DIR",
    .help = "JPEG and PNG files in a folder for each class; or images:LIST.csv, of files and labels",
    .keys = "size=, flip=, crop=, cache=, check=, strict=, upright=, threads=",
    .open = openImages,
};

} // namespace mtrun
