// SPDX-License-Identifier: Apache-2.0
//
// mnist:DIR: the IDX files that MNIST's authors published.
#include "runtime/data/Idx.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"

#include <memory>

namespace mtrun {

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

static Status openMnist(const DataSpec &spec, Table &table) {
  std::string base = spec.paths[0] + (spec.test ? "/t10k" : "/train");
  if (Status s = addIdx(base + "-images-idx3-ubyte", 3, "image", MTRUN_INPUT, table); !s.ok())
    return s;
  return addIdx(base + "-labels-idx1-ubyte", 1, "label", MTRUN_TARGET, table);
}

extern const SourceKind mnistSource = {.name = "mnist",
                                       .form = "mnist:DIR",
                                       .help = "the IDX files of MNIST: pictures of 28 x 28 pixels and labels",
                                       .keys = "split=",
                                       .open = openMnist,
                                       .divides = true};

} // namespace mtrun
