// SPDX-License-Identifier: Apache-2.0
//
// A data specification as users write it: "KIND:PATH[,PATH]...[,key=value]...". A path or a value that holds a comma is
// written in double quotes, in which "" is a quote: csv:"a,b.csv",y="price, net".
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtrun {

struct SourceKind;

// Element types of files, little endian in memory.
enum class Stored { U8, Bool, I8, U16, I16, I32, U32, I64, F32, F64, F16 };
size_t storedSize(Stored type);
const char *storedName(Stored type);
inline bool isFloat(Stored type) { return type == Stored::F32 || type == Stored::F64 || type == Stored::F16; }

// An input, target or sample weight of a model.
struct Wanted {
  std::string name;
  mtrun_role role = MTRUN_INPUT;
};

struct DataSpec {
  std::string text; // all of it
  // What the model takes, where it is known: sources of many arrays read these alone.
  std::vector<Wanted> wanted;
  std::string kind;                   // before the colon; of the caller's own data "array" or "source"
  const SourceKind *source = nullptr; // of the kind; NULL: the caller's own
  std::vector<std::string> paths;
  bool test = false;           // split=test
  bool allowNan = false;       // nan=yes: values that are not finite may pass
  bool uncheckedIds = false;   // ids=unchecked: nobody looks whether integers are below what the model says
  bool keepDamaged = false;    // damaged=keep: a damaged picture keeps its row, for predictions
  bool groupByLength = false;  // group=length: batches of training have samples of similar lengths
  int64_t begin = 0, end = -1; // range=BEGIN:END in samples; end -1: to the last
  std::optional<int64_t> classes;
  bool anyLabel = false; // the model alone limits labels
  std::vector<std::pair<int64_t, float>>
      classWeights;   // class-weight=CLASS:WEIGHT[+...]: of samples, by label; 1 of other labels
  int64_t length = 0; // tokens, text: of a sample; 0: what the model's only input of [?, T] says
  int64_t stride = 0; // tokens, text: from the first token of a sample to that of the next; 0: the length
  // npz, tfrecord: the array or feature that is the only input, the only target; "": by their names. csv: columns as
  // "a+b"; "": all others, and the last one.
  std::string input, target;
  std::string skip;           // csv: columns that are neither, as "a+b"
  std::optional<bool> header; // csv: whether the first line has names; none: as it looks
  // text: the characters of tokens 0, 1, ..., in UTF-8, as the plan has them; empty: tokens are bytes.
  std::vector<std::string> vocabulary;

  // The value of an input's element of channel c (the last axis) is (stored * scale / divisor - mean[c]) / std[c]; no
  // or one entry: all channels. In double, rounded once.
  std::optional<double> scale;
  double divisor = 1;
  std::vector<double> mean, deviation;
  bool reversed = false;  // channels in the opposite order: preprocess=caffe
  bool byDefault = false; // divided because such data usually is: not for a model that takes 0 to 255
  bool scaled = false;    // the user said so, with scale=, mean=, std= or preprocess=

  // Pictures.
  enum class Check { Quick, Full, None };
  Check check = Check::Quick;                // check=quick|full|none: what is looked at before the run
  bool strict = false;                       // strict=yes: a damaged picture is an error
  bool upright = true;                       // upright=no: as stored, whatever EXIF says
  bool flipAcross = false, flipDown = false; // flip=horizontal|vertical|both: each in half of the samples
  uint32_t crop = 0;                         // crop=P: resized to P pixels more, of which a window is taken
  uint32_t height = 0, width = 0;            // size=HxW, for inputs that do not tell
  int64_t threads = 0;                       // threads=N that read; 0: one a CPU
  std::string cache;                         // cache=memory|FILE of decoded pictures
  std::optional<Stored> raw;                 // tfrecord: raw=f32: what features of plain bytes hold; none: bytes
};

// MT_INVALID names the part that is wrong and what may stand there.
Status parseDataSpec(const std::string &text, DataSpec &spec);
// The keys alone, "key=value[,key=value]..." or nothing; spec.kind is set.
Status parseDataKeys(const std::string &text, DataSpec &spec);

} // namespace mtrun
