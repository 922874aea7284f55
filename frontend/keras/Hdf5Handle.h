// SPDX-License-Identifier: Apache-2.0
#ifndef FRONTEND_KERAS_HDF5HANDLE_H
#define FRONTEND_KERAS_HDF5HANDLE_H

#include <hdf5.h>
#include <string>

namespace mtc::keras {

// An HDF5 handle that closes itself. The constructor throws `Error` with `message` if the handle is invalid.
template <herr_t (*Close)(hid_t), typename Error> class Hdf5Handle {
public:
  Hdf5Handle(hid_t id, const std::string &message) : id(id) {
    if (id < 0)
      throw Error(message);
  }
  Hdf5Handle(const Hdf5Handle &) = delete;
  Hdf5Handle &operator=(const Hdf5Handle &) = delete;
  ~Hdf5Handle() { Close(id); }
  operator hid_t() const { return id; }

private:
  hid_t id;
};

} // namespace mtc::keras

#endif
