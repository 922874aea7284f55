// SPDX-License-Identifier: Apache-2.0
//
// The layout of a zip archive whose members are stored as they are. Written here and not by a library, because members
// have gaps that are filled later: their checksums are pieces of their own.
#ifndef FRONTEND_KERAS_ZIP_H
#define FRONTEND_KERAS_ZIP_H

#include "frontend/ExportArchive.h"

namespace mtc::keras {

struct ZipMember {
  std::string name;
  std::vector<ExportPiece> pieces; // Bytes and Variable
};

// Local headers, members, directory; with the 64-bit fields where a size or an offset needs them. The same members give
// the same bytes.
std::vector<ExportPiece> layOutZip(std::vector<ZipMember> members);

} // namespace mtc::keras

#endif
