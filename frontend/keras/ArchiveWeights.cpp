// SPDX-License-Identifier: Apache-2.0
//
// Runs in the child: reads the HDF5 file of weights. Only groups and plain data sets are read. Anything that could
// refer to other files (links, external and virtual storage), or that claims more data than the file has, is rejected
// before memory is allocated.
#include "frontend/keras/ArchiveReader.h"
#include "frontend/keras/Hdf5Handle.h"

#include <set>

namespace mtc::keras {
namespace {

constexpr unsigned maxDepth = 32;

template <herr_t (*Close)(hid_t)> struct Handle : Hdf5Handle<Close, ArchiveError> {
  Handle(hid_t id, const std::string &what)
      : Hdf5Handle<Close, ArchiveError>(id, "model.weights.h5: " + what + " cannot be read") {}
};

[[noreturn]] void refuse(const std::string &path, const std::string &message) {
  throw ArchiveError("model.weights.h5: " + path + ": " + message);
}

class WeightsReader {
public:
  explicit WeightsReader(RecordWriter &writer) : writer(writer) {}

  void readGroup(hid_t group, const std::string &path, unsigned depth) {
    if (depth > maxDepth)
      refuse(path, "expected groups at most " + std::to_string(maxDepth) + " deep, found more");
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0)
      refuse(path, "the group cannot be read");
    for (hsize_t i = 0; i < info.nlinks; ++i)
      readChild(group, path, i, depth);
  }

private:
  void readChild(hid_t group, const std::string &path, hsize_t index, unsigned depth) {
    if (++objects > maxTensors)
      refuse(path, "expected at most " + std::to_string(maxTensors) + " objects, found more");
    std::string name(256, '\0');
    ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
    if (length <= 0 || static_cast<size_t>(length) >= name.size())
      refuse(path, "expected names of 1 to 255 bytes, found another");
    name.resize(static_cast<size_t>(length));
    std::string child = path.empty() ? name : path + "/" + name;
    H5L_info_t link;
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0)
      refuse(child, "the link cannot be read");
    if (link.type != H5L_TYPE_HARD)
      refuse(child, "expected data in the file, found a link to another file or path");
    if (!visited.insert(link.u.address).second)
      refuse(child, "expected each object of the file once, found it a second time");
    H5O_info_t object;
    if (H5Oget_info_by_name(group, name.c_str(), &object, H5P_DEFAULT) < 0)
      refuse(child, "the object cannot be read");
    if (object.type == H5O_TYPE_GROUP) {
      Handle<H5Gclose> inner(H5Gopen2(group, name.c_str(), H5P_DEFAULT), child);
      return readGroup(inner, child, depth + 1);
    }
    if (object.type != H5O_TYPE_DATASET)
      refuse(child, "expected a group or a data set, found another object");
    readDataset(group, name, child);
  }

  // Reads the sizes of the axes, and returns their product, at most `maxWeightBytes` elements.
  static uint64_t readShape(hid_t dataset, const std::string &path, std::vector<int64_t> &shape) {
    Handle<H5Sclose> space(H5Dget_space(dataset), path);
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > static_cast<int>(maxTensorRank))
      refuse(path, "expected at most " + std::to_string(maxTensorRank) + " axes, found " + std::to_string(rank));
    hsize_t sizes[maxTensorRank] = {};
    if (H5Sget_simple_extent_type(space) == H5S_NULL ||
        (rank > 0 && H5Sget_simple_extent_dims(space, sizes, nullptr) < 0))
      refuse(path, "the shape cannot be read");
    uint64_t elements = 1;
    for (int i = 0; i < rank; ++i) {
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(sizes[i]), &elements) || elements > maxWeightBytes)
        refuse(path, "expected at most 2^36 elements, found more");
      shape.push_back(static_cast<int64_t>(sizes[i]));
    }
    return elements;
  }

  static void checkStorage(hid_t dataset, const std::string &path, uint64_t bytes) {
    Handle<H5Pclose> creation(H5Dget_create_plist(dataset), path);
    H5D_layout_t layout = H5Pget_layout(creation);
    if (H5Pget_external_count(creation) != 0 || layout == H5D_VIRTUAL)
      refuse(path, "expected data in the file, found data kept elsewhere");
    if (layout == H5D_CHUNKED || H5Pget_nfilters(creation) != 0)
      refuse(path, "expected one plain block as Keras writes it, found chunks or filters");
    if (uint64_t stored = H5Dget_storage_size(dataset); stored < bytes)
      refuse(path,
             "expected " + std::to_string(bytes) + " stored bytes for its shape, found " + std::to_string(stored));
  }

  void readDataset(hid_t group, const std::string &name, const std::string &path) {
    Handle<H5Dclose> dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT), path);
    Handle<H5Tclose> type(H5Dget_type(dataset), path);
    std::vector<int64_t> shape;
    uint64_t elements = readShape(dataset, path, shape);
    H5T_class_t kind = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || size < 1 || size > 8)
      refuse(path, "expected floats or integers of at most 8 bytes, found another type (mixed precision is not read)");
    checkStorage(dataset, path, elements * size);
    bool floats = kind == H5T_FLOAT;
    std::vector<uint8_t> bytes(elements * (floats ? sizeof(float) : sizeof(int64_t)));
    if (elements &&
        H5Dread(dataset, floats ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
      refuse(path, "the data cannot be read");
    writer.write(floats ? RecordKind::Floats : RecordKind::Integers, path, shape, bytes.data(), bytes.size());
  }

  RecordWriter &writer;
  uint64_t objects = 0;
  std::set<haddr_t> visited;
};

} // namespace

void readWeights(std::vector<uint8_t> file, RecordWriter &writer) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Handle<H5Pclose> access(H5Pcreate(H5P_FILE_ACCESS), "the library");
  // The file is in memory and is not extended.
  if (H5Pset_fapl_core(access, size_t{1} << 16, false) < 0 || H5Pset_file_image(access, file.data(), file.size()) < 0)
    throw ArchiveError("model.weights.h5: expected a file of HDF5, found another");
  // HDF5 rejects a file image if a file with its name exists; no file can have this name.
  Handle<H5Fclose> opened(H5Fopen("/dev/null/model.weights.h5", H5F_ACC_RDONLY, access), "the HDF5 file");
  std::vector<uint8_t>().swap(file); // the library has a copy
  Handle<H5Gclose> root(H5Gopen2(opened, "/", H5P_DEFAULT), "the root group");
  WeightsReader(writer).readGroup(root, "", 0);
}

} // namespace mtc::keras
