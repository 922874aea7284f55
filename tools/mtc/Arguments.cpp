// SPDX-License-Identifier: Apache-2.0
#include "tools/mtc/Arguments.h"

#include "runtime/abi/mtc.h"
#include "tools/commandline/CommandLine.h"

using commandline::atLeast;
using commandline::Hint;
using commandline::oneOf;

static const char *const exitCodes = R"(Exit codes:
  0  done
  1  the model or an option is wrong
  2  the command line is wrong
  3  a plan is damaged or of another version
  4  more memory than there is
  7  a file could not be read or written)";

static const char *const examples = R"(Examples:
  mtc compile examples/mnist_mlp.mlir -o mnist.mtp --batch 64
  mtc compile model.keras -o model.mtp --batch 128
  mtc import model.keras -o model.mlir
  mtc compile model.mlir -o - --stop-after shard
  mtc summary model.keras
  mtc inspect mnist.mtp --json
  mtc inspect mnist.mtp --html -o mnist.html)";

static std::string version() { return std::string("mtc ") + mtc_version(); }

static std::string stageTable() {
  std::string text = "Stages, in order:";
  for (int32_t i = 0; const char *name = mtc_stage_name(i); ++i) {
    std::string padded = name;
    padded.resize(std::max<size_t>(padded.size() + 1, 15), ' ');
    text += "\n  " + padded + mtc_stage_help(i);
  }
  return text;
}

// What is chosen when a plan runs, and names of other tools for what there is here.
static constexpr char ofTheRun[] = "it is an option of mtrun train, which takes any for the same plan";
static constexpr char ofTheOptimizer[] = "it belongs to the optimizer: --optimizer adam,learning_rate=0.001";
static const Hint hints[] = {
    {"train", "mtrun train PLAN trains a plan"},
    {"fit", "mtrun train PLAN trains a plan"},
    {"evaluate", "mtrun evaluate PLAN does, of a plan"},
    {"predict", "mtrun predict PLAN does, of a plan"},
    {"benchmark", "mtrun benchmark PLAN does, of a plan"},
    {"export", "mtrun export PLAN does, of a plan"},
    {"build", "did you mean compile?"},
    {"convert", "did you mean import?"},
    {"show", "did you mean inspect?"},
    {"--replicas", "it is called --shards now"},
    {"--card", "it is called --gpu now"},
    {"--epochs", ofTheRun},
    {"--data", ofTheRun},
    {"--devices", ofTheRun},
    {"--gpus", ofTheRun},
    {"--validation-split", ofTheRun},
    {"--validation", ofTheRun},
    {"--shuffle", ofTheRun},
    {"--checkpoint", ofTheRun},
    {"--save", ofTheRun},
    {"--learning-rate", ofTheOptimizer},
    {"--lr", ofTheOptimizer},
    {"--momentum", "it belongs to the optimizer: --optimizer sgd,learning_rate=0.1,momentum=0.9"},
    {"--dtype", "did you mean --precision?"},
    {"--mixed-precision", "did you mean --precision?"},
    {"--load", "did you mean --weights?"},
};

static void addTraining(CLI::App &command, Arguments &arguments) {
  command
      .add_option("--loss", arguments.loss,
                  "a Keras or ONNX model's loss, as mse or sparse_categorical_crossentropy,from_logits=true")
      ->type_name("LOSS");
  command
      .add_option("--optimizer", arguments.optimizer,
                  "a Keras or ONNX model's optimizer, as adam or sgd,learning_rate=0.1,momentum=0.9")
      ->type_name("OPTIMIZER");
  command.add_option("--metrics", arguments.metrics, "a Keras or ONNX model's metrics, as accuracy,mae; none")
      ->type_name("METRICS");
  command.add_flag("--drop-unsupported-metrics", arguments.dropUnsupportedMetrics,
                   "compile without metrics that are not known");
  command.add_flag("--sample-weights", arguments.sampleWeights,
                   "a Keras or ONNX model's losses and weighted metrics take weights of samples");
  command
      .add_option("--freeze", arguments.freeze,
                  "layers or variables that stay as they are, as conv1,block2_*,head/bias")
      ->type_name("NAMES");
  command
      .add_option("--trainable", arguments.trainable,
                  "layers or variables that are trained; all others stay as they are")
      ->type_name("NAMES");
  command
      .add_option("--no-weight-decay", arguments.noWeightDecay,
                  "layers or variables that the optimizer's weight decay leaves out, as */bias,*/gamma")
      ->type_name("NAMES");
}

// What a model's file may lack beside its training.
static void addModelFacts(CLI::App &command, Arguments &arguments) {
  command.add_option_function<std::vector<std::string>>(
             "--input-shape",
             [&arguments](const std::vector<std::string> &shapes) {
               for (const std::string &shape : shapes)
                 arguments.inputShape += (arguments.inputShape.empty() ? "" : ";") + shape;
             },
             "sizes of a Keras or ONNX model's input that has axes of any size, without the batch, as 224,224,3; with "
             "several inputs NAME=224,224,3, one --input-shape each")
      ->type_name("SIZES")->allow_extra_args(false);
  command.add_option("--class-names", arguments.classNames,
                     "names of the labels 0, 1, ..., which the plan keeps: a list, cat,dog, or a file with one a line")
      ->type_name("NAMES");
  command
      .add_option("--vocabulary", arguments.vocabulary,
                  "a text in UTF-8 whose distinct characters, in order, are the tokens 0, 1, ...: the plan keeps them")
      ->type_name("FILE");
}

static void addDevices(CLI::App &compile, Arguments &arguments) {
  compile.option_defaults()->group("Devices and precision");
  compile.add_option("--target", arguments.target, "what runs it: cpu, or a list: cpu,cuda or cpu,cuda:sm_80,sm_90")
      ->type_name("TARGET");
  compile
      .add_option("--shards", arguments.shards,
                  "slices of the batch, R: a power of two, and the most devices that can run the plan (default: 8, or "
                  "the largest power of two that B allows)")
      ->type_name("R")
      ->check(atLeast(1));
  compile.add_option("--precision", arguments.precision,
                     "number format of matrix products and convolutions: f32, tf32, bf16 or f16; Keras' names too, as "
                     "mixed_float16 (default: as the model's dtype policies say, else f32)")
      ->type_name("TYPE");
  compile.add_option("--batch-norm", arguments.batchNorm,
                     "statistics of batch normalisation while training: of the whole batch (global, the default), or "
                     "each shard's own (local)")
      ->type_name("WHICH")->check(oneOf({"global", "local"}));
  compile.add_option("--mode", arguments.mode, "exact: the same bits on any number of devices; fast: no such promise")
      ->type_name("MODE")->check(oneOf({"exact", "fast"}));
  compile
      .add_option(
          "--cpu", arguments.cpu,
          "code for native alone, or for a list of x86-64-v4, x86-64-v3 and armv8-a, of which the best is chosen "
          "when the plan is loaded (default: x86-64-v4,x86-64-v3)")
      ->type_name("CPU,...");
}

static void addMemory(CLI::App &compile, Arguments &arguments) {
  compile.option_defaults()->group("Memory");
  compile.add_option_function<std::string>(
             "--device-memory",
             [&arguments](const std::string &text) {
               if (std::string problem = commandline::parseBytes(text, arguments.deviceMemory); !problem.empty())
                 throw CLI::ValidationError("--device-memory", problem);
             },
             "what a device may use, as 16GiB or 16GB: says how many devices it takes, or what would help")
      ->type_name("BYTES");
  compile.add_option("--recompute", arguments.recompute,
                     "auto: compute cheap results again where they would not fit in --device-memory, to the same bits "
                     "(default: none)")
      ->type_name("MODE")->check(oneOf({"auto", "none"}));
  compile.add_option("--micro-batches", arguments.microBatches,
                     "of CPUs: the batch in K parts, a power of two up to the shards, which a device computes one "
                     "after another in less memory, to the same bits (default: as few as fit in --device-memory)")
      ->type_name("K");
  compile.add_flag("--max-batch", arguments.maxBatch, "the largest batch that fits in --device-memory on one device")
      ->excludes("--batch");
}

static void addStages(CLI::App &compile, Arguments &arguments) {
  compile.option_defaults()->group("Stages");
  compile.add_option("--stop-after", arguments.stopAfter, "write the MLIR text after this stage in place of a plan")
      ->type_name("STAGE");
  compile.add_option("--dump-stages", arguments.dumpStages, "write the MLIR text after each stage to this folder")
      ->type_name("DIR");
  compile.add_flag("--timing", arguments.timing, "print the time of each stage");
}

static void addCompile(CLI::App &app, Arguments &arguments) {
  CLI::App *compile = app.add_subcommand("compile", "compile a model into a plan");
  compile->add_option("model", arguments.input,
                      "a Keras model (.keras, config.json), an ONNX model (.onnx), StableHLO or MLIR text with one "
                      "mt.model; - reads standard input")
      ->required()->type_name("MODEL");
  compile->add_option("-o,--output", arguments.output,
                      "the file to write; - writes to standard output (default: MODEL with .mtp)")
      ->type_name("PLAN");
  compile->add_option("--batch,--batch-size", arguments.batch, "samples a step, B (default: 32)")
      ->type_name("B")->check(atLeast(1));
  compile
      ->add_option("--weights", arguments.weights,
                   "a .safetensors file of values that variables start with; those that it does not name stay as they "
                   "are in the "
                   "model's file")
      ->type_name("FILE");
  compile->add_option("--seed", arguments.seed, "of the initial values (default: 1)")->type_name("S");
  compile->option_defaults()->group("Training");
  addTraining(*compile, arguments);
  compile->option_defaults()->group("Model");
  addModelFacts(*compile, arguments);
  addDevices(*compile, arguments);
  addMemory(*compile, arguments);
  addStages(*compile, arguments);
  compile->footer(
      "\nExample:\n  mtc compile model.keras -o model.mtp --batch 128\n\nmtc --help lists the stages and the "
      "exit codes");
}

static void addImport(CLI::App &app, Arguments &arguments) {
  CLI::App *command =
      app.add_subcommand("import", "write a model of another format as MLIR text, with its weights beside it");
  command
      ->add_option("model", arguments.input, "a model of Keras (.keras, config.json), ONNX (.onnx) or StableHLO (text)")
      ->required()
      ->type_name("MODEL");
  command
      ->add_option(
          "-o,--output", arguments.output,
          "the text to write; - writes to standard output, without the weights (default: MODEL with .mlir). Weights go "
          "to the same name with .safetensors; mtc compile --weights takes them")
      ->type_name("FILE");
  addTraining(*command, arguments);
  addModelFacts(*command, arguments);
  command->footer("\nExample:\n  mtc import model.keras -o model.mlir");
}

static void addSummary(CLI::App &app, Arguments &arguments) {
  CLI::App *command =
      app.add_subcommand("summary", "print a model's layers: output shapes, parameters, FLOPs and bytes");
  command
      ->add_option("model", arguments.input,
                   "a Keras model (.keras, config.json), an ONNX model (.onnx), StableHLO or MLIR text with one "
                   "mt.model; - reads standard input")
      ->required()
      ->type_name("MODEL");
  addTraining(*command, arguments);
  addModelFacts(*command, arguments);
  command->footer("\nFLOPs and bytes are those of a sample's forward pass, before any fusion.\n\nExample:\n  mtc "
                  "summary model.keras");
}

static void addInspect(CLI::App &app, Arguments &arguments) {
  CLI::App *inspect =
      app.add_subcommand("inspect", "print what a plan holds: programs, variables, kernels, collectives, memory");
  inspect->add_option("plan", arguments.input, "a file that mtc compile wrote; - reads standard input")
      ->required()->type_name("PLAN");
  inspect->add_flag("--json", arguments.json, "print JSON; docs/inspect.md is the schema");
  inspect
      ->add_flag(
          "--html", arguments.html,
          "print one page for a browser, which needs nothing beside it: layers and their kernels, devices, memory over "
          "the steps, graph, schedule")
      ->excludes("--json");
  auto *trace =
      inspect
          ->add_option("--trace", arguments.trace,
                       "a file that mtrun train --trace wrote of this plan: times and shares of the floor, and one "
                       "line that says what binds the step")
          ->type_name("FILE")
          ->excludes("--json");
  auto *against = inspect
                      ->add_option("--against", arguments.against,
                                   "another plan: the two beside each other; floors are those of --gpu or --trace")
                      ->type_name("PLAN")
                      ->excludes("--json");
  inspect
      ->add_option("--gpu", arguments.gpu,
                   "model a training step on 1, 2, 4 ... GPUs of this name (h100, say): its time, and all-reduces that "
                   "no kernel hides; with --against, whose rates the floors are of")
      ->type_name("NAME")
      ->excludes("--json");
  inspect
      ->add_option(
          "--devices", arguments.inspectDevices,
          "draw which of N devices works on which rows of a batch and holds which variables; with --html as a page")
      ->type_name("N")
      ->excludes("--json")
      ->excludes("--gpu")
      ->excludes(trace)
      ->excludes(against);
  inspect->add_option("-o,--output", arguments.output, "the file to write; - writes to standard output (default)")
      ->type_name("FILE");
  inspect->footer("\nExamples:\n  mtc inspect mnist.mtp --json\n  mtc inspect mnist.mtp --html -o mnist.html\n"
                  "  mtc inspect mnist.mtp --html --trace step.json -o mnist.html\n"
                  "  mtc inspect mnist.mtp --against other.mtp");
}

bool parseArguments(int argc, char **argv, Arguments &arguments, int &exitCode) {
  CLI::App app("Compiles models into plans that train the same way on any number of devices.", "mtc");
  app.set_version_flag("--version", version());
  app.require_subcommand(1);
  app.footer("\n" + stageTable() + "\n\n" + examples + "\n\n" + exitCodes);
  addCompile(app, arguments);
  addImport(app, arguments);
  addSummary(app, arguments);
  addInspect(app, arguments);
  if (!commandline::parse(app, argc, argv, hints, exitCode))
    return false;
  arguments.command = app.got_subcommand("inspect")  ? Command::Inspect
                      : app.got_subcommand("import")  ? Command::Import
                      : app.got_subcommand("summary") ? Command::Summary
                                                      : Command::Compile;
  return true;
}
