// SPDX-License-Identifier: Apache-2.0
//
// Parses a data specification: "KIND:PATH[,PATH]...[,key=value]...". Double quotes enclose a path or a value that has a
// comma, and "" stands for a quote inside: csv:"a,b.csv",y="price, net".
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtrun {

struct ColumnRules;
struct SourceKind;

// Element types of files; little endian in memory.
enum class Stored { U8, Bool, I8, U16, I16, I32, U32, I64, F32, F64, F16 };
size_t storedSize(Stored type);
const char *storedName(Stored type);
inline bool isFloat(Stored type) { return type == Stored::F32 || type == Stored::F64 || type == Stored::F16; }

// An input, target or sample weight of a model.
struct Wanted {
  std::string name;
  mtrun_role role = MTRUN_INPUT;
};

// csv: the keys of encodings, as the user wrote them; "": not given. CsvColumns.cpp parses them.
struct ColumnKeys {
  std::string standardize, categories, hash, buckets, quantiles, dates, index, missing;

  // The key's value; null: it is none of these keys.
  std::string *find(std::string_view key);
  bool any() const;
};

struct DataSpec {
  std::string text; // the whole specification
  // The tensors of the model, if known: sources with many arrays read only these.
  std::vector<Wanted> wanted;
  std::string kind;                   // the text before the colon; for the caller's own data "array" or "source"
  const SourceKind *source = nullptr; // NULL: the caller's own data
  std::vector<std::string> paths;
  bool test = false;           // split=test
  bool allowNan = false;       // nan=yes: accept values that are not finite
  bool uncheckedIds = false;   // ids=unchecked: integers are not compared with the model's limits
  bool keepDamaged = false;    // damaged=keep: a damaged picture keeps its row, for predictions
  bool groupByLength = false;  // group=length: batches of training have samples of similar lengths
  int64_t begin = 0, end = -1; // range=BEGIN:END in samples; end -1: the last sample
  std::optional<int64_t> classes;
  bool anyLabel = false; // classes=any: only the model limits labels
  std::vector<std::pair<int64_t, float>>
      classWeights;   // class-weight=CLASS:WEIGHT[+...]: weights of samples by label; 1 for other labels
  int64_t length = 0; // tokens, text: tokens per sample; 0: the length of the model's only input [?, T]
  int64_t stride = 0; // tokens, text: distance between the first tokens of consecutive samples; 0: the length
  // npz, tfrecord: the array or feature of the only input and of the only target; "": bound by name. csv: columns as
  // "a+b"; "": the target is the last column, and inputs are all others.
  std::string input, target;
  std::string skip; // csv: columns that are neither input nor target, as "a+b"
  ColumnKeys columns;
  std::shared_ptr<const ColumnRules> rules; // csv: of the plan's columns file; null: it has none
  std::optional<bool> header;               // csv: whether the first line has names; nullopt: detected
  // text: the characters of tokens 0, 1, ... in UTF-8, from the plan; empty: tokens are bytes.
  std::vector<std::string> vocabulary;

  // An element of channel c (the last axis) of an input becomes (stored * scale / divisor - mean[c]) / std[c]. A single
  // mean or std is for all channels; none means 0 or 1. Computed in double and rounded once.
  std::optional<double> scale;
  double divisor = 1;
  std::vector<double> mean, deviation;
  bool reversed = false;  // preprocess=caffe: channels in reverse order
  bool byDefault = false; // the kind's default division, which is skipped if the model expects 0 to 255
  bool scaled = false;    // the user set scale=, mean=, std= or preprocess=

  // For pictures.
  enum class Check { Quick, Full, None };
  Check check = Check::Quick;                // check=quick|full|none: how much of each file is read before the run
  bool strict = false;                       // strict=yes: a damaged picture is an error
  bool upright = true;                       // upright=no: ignore the EXIF orientation
  bool flipAcross = false, flipDown = false; // flip=horizontal|vertical|both: each with probability 1/2
  uint32_t crop = 0;                         // crop=P: resize to P pixels more, and take a random window
  uint32_t height = 0, width = 0;            // size=HxW, for inputs that do not determine the size
  int64_t threads = 0;                       // threads=N for reading; 0: one per CPU
  std::string cache;                         // cache=memory|FILE: cache for decoded pictures
  // tfrecord: raw=f32: type of the numbers in features of bytes; nullopt: bytes
  std::optional<Stored> raw;
};

// Parses a specification. MT_INVALID: the message names the invalid part and what is expected.
Status parseDataSpec(const std::string &text, DataSpec &spec);
// Parses only keys, "key=value[,key=value]..." or "". spec.kind must be set.
Status parseDataKeys(const std::string &text, DataSpec &spec);

} // namespace mtrun
