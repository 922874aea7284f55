// SPDX-License-Identifier: Apache-2.0
//
// A file of the model's own format, with room for the variables' values: what a trained model is written back as.
#ifndef FRONTEND_EXPORTARCHIVE_H
#define FRONTEND_EXPORTARCHIVE_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

struct ExportPiece {
  enum class Kind { Bytes, Variable, Crc32 } kind = Kind::Bytes;
  std::string text;  // Bytes: the bytes; Variable: its name
  uint64_t size = 0; // in the file, of Bytes and Variable; Crc32: of how many bytes of the file it is (it has 4 itself)
  uint64_t begin = 0; // Crc32: where in the file they begin

  static ExportPiece bytes(std::string text) {
    uint64_t size = text.size();
    return {Kind::Bytes, std::move(text), size, 0};
  }
  static ExportPiece variable(std::string name, uint64_t size) { return {Kind::Variable, std::move(name), size, 0}; }
  static ExportPiece crc32(uint64_t begin, uint64_t size) { return {Kind::Crc32, "", size, begin}; }
  uint64_t fileBytes() const { return kind == Kind::Crc32 ? 4 : size; }
};

struct ExportArchive {
  std::string suffix; // ".keras"; empty: there is no archive
  std::vector<ExportPiece> pieces;
};

} // namespace mtc

#endif
