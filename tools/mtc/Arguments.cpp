// SPDX-License-Identifier: Apache-2.0
#include "tools/mtc/Arguments.h"

#include "tools/commandline/Options.h"

#include <algorithm>

using commandline::Hint;

static const char *const exitCodes = R"(Exit codes:
  0  done
  1  the model is wrong
  2  the command line is wrong: an option, or its value
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

// Of importers too: what a model's file may lack. Of mtc compile alone: all others.
static constexpr const char *modelGroups[] = {"Training", "Model"};
static constexpr const char *groups[] = {"", "Training", "Model", "Devices and precision", "Memory", "Stages"};

static void addOptions(CLI::App &command, Arguments &arguments, std::span<const char *const> groups,
                       const char *shown = nullptr) {
  for (std::string_view group : groups)
    commandline::addOptions(command, mtrun::mtcOptions, arguments.options, shown,
                            [group](const auto &row) { return group == row.group; });
}

static void addCompile(CLI::App &app, Arguments &arguments) {
  CLI::App *compile = app.add_subcommand("compile", "compile a model into a plan");
  compile
      ->add_option("model", arguments.input,
                   "a Keras model (.keras, config.json), an ONNX model (.onnx), StableHLO or MLIR text with one "
                   "mt.model; - reads standard input")
      ->required()
      ->type_name("MODEL");
  compile
      ->add_option("-o,--output", arguments.output,
                   "the file to write; - writes to standard output (default: MODEL with .mtp)")
      ->type_name("PLAN");
  addOptions(*compile, arguments, groups);
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
  addOptions(*command, arguments, modelGroups, "");
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
  addOptions(*command, arguments, modelGroups, "");
  command->footer("\nFLOPs and bytes are those of a sample's forward pass, before any fusion.\n\nExample:\n  mtc "
                  "summary model.keras");
}

static void addInspect(CLI::App &app, Arguments &arguments) {
  CLI::App *inspect =
      app.add_subcommand("inspect", "print what a plan holds: programs, variables, kernels, collectives, memory");
  inspect->add_option("plan", arguments.input, "a file that mtc compile wrote; - reads standard input")
      ->required()
      ->type_name("PLAN");
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
  auto *hosts = inspect
                    ->add_option("--hosts", arguments.hosts,
                                 "model a training step on 1, 2, 4 ... H hosts: HxG with G GPUs of --gpu each, or H "
                                 "with CPUs of --cpu; exchanges inside each host first, and a ring in comparison")
                    ->type_name("HxG")
                    ->excludes("--json")
                    ->excludes("--html")
                    ->excludes(trace)
                    ->excludes(against);
  inspect->add_option("--cpu", arguments.hostCpu, "CPUs of each host: 32x40GF are 32 cores of 40 GFLOP/s")
      ->type_name("CPUS")
      ->needs(hosts)
      ->excludes("--gpu");
  inspect
      ->add_option("--network", arguments.network,
                   "bits per second of each device between hosts, as 25Gb (default for GPUs: the data sheet's)")
      ->type_name("RATE")
      ->needs(hosts);
  inspect
      ->add_option(
          "--devices", arguments.inspectDevices,
          "draw which of N devices works on which rows of a batch and holds which variables; with --html as a page")
      ->type_name("N")
      ->excludes("--json")
      ->excludes("--gpu")
      ->excludes(hosts)
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
  arguments.command = app.got_subcommand("inspect")   ? Command::Inspect
                      : app.got_subcommand("import")  ? Command::Import
                      : app.got_subcommand("summary") ? Command::Summary
                                                      : Command::Compile;
  return true;
}
