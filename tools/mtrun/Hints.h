// SPDX-License-Identifier: Apache-2.0
//
// Suggestions in errors about unknown subcommands and options of mtrun.
#pragma once

#include "tools/commandline/CommandLine.h"

namespace mtrun_tool {

using commandline::Hint;

// Names in other tools, and options that are fixed when a plan is compiled.
inline constexpr char ofTheCompiler[] = "it is fixed when the plan is compiled: mtc compile MODEL has it";
inline constexpr char ofTheOptimizer[] = "it belongs to the optimizer: --optimizer adam,clipnorm=1";
inline constexpr Hint hints[] = {
    {"fit", "did you mean train?"},
    {"run", "did you mean train?"},
    {"eval", "did you mean evaluate?"},
    {"score", "did you mean evaluate?"},
    {"test", "did you mean evaluate?"},
    {"infer", "did you mean predict?"},
    {"save", "did you mean export?"},
    {"compile", "mtc compile makes plans"},
    {"import", "mtc import does, of a Keras model"},
    {"inspect", "mtc inspect shows what is in a plan"},
    {"summary", "mtc summary shows the layers of a model"},
    {"--replicas", "it is called --shards now, and is an option of mtc compile: compile the plan with it"},
    {"--shards", ofTheCompiler},
    {"--target", ofTheCompiler},
    {"--mode", "the way that a metric is better is part of --monitor NAME:max or NAME:min; exact or fast is fixed when "
               "the plan is compiled"},
    {"--batch-norm", ofTheCompiler},
    {"--freeze", ofTheCompiler},
    {"--trainable", ofTheCompiler},
    {"--no-weight-decay", ofTheCompiler},
    {"--device-memory", ofTheCompiler},
    {"--recompute", ofTheCompiler},
    {"--max-batch", ofTheCompiler},
    {"--lr", "did you mean --learning-rate?"},
    {"--gpus", "did you mean --devices cuda:0-3?"},
    {"--gpu", "did you mean --devices cuda:0?"},
    {"--weights", "did you mean --load?"},
    {"--load-weights", "did you mean --load?"},
    {"--patience", "did you mean --early-stopping?"},
    {"--validation-data", "did you mean --validation?"},
    {"--shuffle", "samples are shuffled unless --no-shuffle is given"},
    {"--class-weight", "it is a key of the data: --data SPEC,class-weight=0:1+1:2.5"},
    {"--workers", "it is a key of pictures: --data images:DIR,threads=4"},
    {"--num-workers", "it is a key of pictures: --data images:DIR,threads=4"},
    {"--amp", "did you mean --precision bf16?"},
    {"--mixed-precision", "did you mean --precision bf16?"},
    {"--clipnorm", ofTheOptimizer},
    {"--momentum", ofTheOptimizer},
    {"--weight-decay", ofTheOptimizer},
    {"--strategy", "the devices say it: --devices cpu:2 or cuda:0-3"},
    {"--nproc-per-node", "did you mean --processes?"},
    {"--log-dir", "did you mean --tensorboard?"},
    {"--logdir", "did you mean --tensorboard?"},
    {"--resume-from", "did you mean --resume?"},
    {"--resume-from-checkpoint", "did you mean --resume?"},
    {"--ckpt", "did you mean --checkpoint?"},
    {"--output", "did you mean --save?"},
    {"-o", "did you mean --save?"},
    {"--callbacks", "see --checkpoint, --early-stopping, --plateau, --history and --tensorboard"},
};

} // namespace mtrun_tool
