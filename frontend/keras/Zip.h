// SPDX-License-Identifier: Apache-2.0
//
// Layout of a zip archive whose members are not compressed. No library is used, because members have gaps that are
// filled later: their checksums are pieces of their own.
#ifndef FRONTEND_KERAS_ZIP_H
#define FRONTEND_KERAS_ZIP_H

#include "frontend/ExportArchive.h"

namespace mtc::keras {

struct ZipMember {
  std::string name;
  std::vector<ExportPiece> pieces; // Bytes and Variable
};

// Returns local headers, members and the directory, with 64-bit fields if a size or an offset needs them. The bytes
// depend only on the members.
std::vector<ExportPiece> layOutZip(std::vector<ZipMember> members);

} // namespace mtc::keras

#endif
