// SPDX-License-Identifier: Apache-2.0
//
// The library writes to a file in memory. Offsets of data sets are allocated when they are created, but their contents
// are never written, so the file has holes, which take no memory, and consists otherwise of metadata.
#include "frontend/keras/WeightsFile.h"
#include "frontend/keras/Hdf5Handle.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <unistd.h>

namespace mtc::keras {
namespace {

template <herr_t (*Close)(hid_t)> struct WrittenHandle : Hdf5Handle<Close, std::runtime_error> {
  explicit WrittenHandle(hid_t id) : Hdf5Handle<Close, std::runtime_error>(id, "HDF5 gives no handle") {}
};

void expect(bool good, const char *what) {
  if (!good)
    throw std::runtime_error(what);
}

struct Range { // of a variable in the file
  uint64_t begin, size;
  const std::string *name;
};

// A file in the folder of temporary files, deleted by the destructor.
class TemporaryFile {
public:
  TemporaryFile() {
    std::error_code none;
    name = (std::filesystem::temp_directory_path(none) / "mtc-weights-XXXXXX").string();
    descriptor = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor < 0)
      throw std::runtime_error("cannot create " + name + ": " + std::strerror(errno));
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    close(descriptor);
    unlink(name.c_str());
  }

  const std::string &path() const { return name; }
  uint64_t size() const { return static_cast<uint64_t>(lseek(descriptor, 0, SEEK_END)); }
  std::string read(uint64_t begin, uint64_t end) const {
    std::string bytes(end - begin, '\0');
    for (size_t at = 0; at < bytes.size();) {
      ssize_t got = pread(descriptor, bytes.data() + at, bytes.size() - at, static_cast<off_t>(begin + at));
      if (got < 0 && errno == EINTR)
        continue;
      expect(got > 0, "the temporary file is shorter than it was");
      at += static_cast<size_t>(got);
    }
    return bytes;
  }

private:
  std::string name;
  int descriptor;
};

hid_t typeOf(mt_dtype dtype) {
  return dtype == MT_F32 ? H5T_IEEE_F32LE : dtype == MT_I64 ? H5T_STD_I64LE : H5T_STD_I32LE;
}

hid_t makeSpace(const std::vector<int64_t> &shape) {
  std::vector<hsize_t> sizes(shape.begin(), shape.end());
  return sizes.empty() ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
}

std::vector<Range> writeFile(const std::string &path, const std::vector<StoredTensor> &tensors) {
  std::vector<Range> ranges;
  WrittenHandle<H5Fclose> file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  WrittenHandle<H5Pclose> links(H5Pcreate(H5P_LINK_CREATE)), creation(H5Pcreate(H5P_DATASET_CREATE));
  expect(H5Pset_create_intermediate_group(links, 1) >= 0 && H5Pset_layout(creation, H5D_CONTIGUOUS) >= 0 &&
             H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
             H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 && H5Pset_obj_track_times(creation, false) >= 0,
         "HDF5 does not take its options");
  for (const StoredTensor &stored : tensors) {
    WrittenHandle<H5Sclose> space(makeSpace(stored.tensor.shape));
    WrittenHandle<H5Dclose> dataset(
        H5Dcreate2(file, stored.path.c_str(), typeOf(stored.tensor.dtype), space, links, creation, H5P_DEFAULT));
    if (!stored.isVariable)
      expect(H5Dwrite(dataset, typeOf(stored.tensor.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      stored.tensor.bytes.data()) >= 0,
             "HDF5 does not write a data set");
    else if (uint64_t size = H5Dget_storage_size(dataset))
      ranges.push_back({H5Dget_offset(dataset), size, &stored.tensor.name});
  }
  return ranges;
}

} // namespace

std::string layOutWeights(const std::vector<StoredTensor> &tensors, std::vector<ExportPiece> &pieces) {
  static std::mutex library; // the library is not thread-safe
  std::lock_guard<std::mutex> lock(library);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  try {
    TemporaryFile file;
    std::vector<Range> ranges = writeFile(file.path(), tensors);
    std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
    uint64_t at = 0, end = file.size();
    for (const Range &range : ranges) {
      expect(range.begin >= at && range.begin <= end && range.size <= end - range.begin,
             "HDF5 assigns overlapping offsets to data sets");
      if (range.begin > at)
        pieces.push_back(ExportPiece::bytes(file.read(at, range.begin)));
      pieces.push_back(ExportPiece::variable(*range.name, range.size));
      at = range.begin + range.size;
    }
    if (end > at)
      pieces.push_back(ExportPiece::bytes(file.read(at, end)));
    return {};
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

} // namespace mtc::keras
