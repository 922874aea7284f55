// SPDX-License-Identifier: Apache-2.0
//
// The command line of mtrun: arguments only, the work is in Commands.cpp.
#include "tools/mtrun/Options.h"
#include "runtime/abi/mtrun.h"
#include "tools/commandline/Options.h"

#include <charconv>
#include <cmath>

namespace mtrun_tool {

using commandline::atLeast;
using commandline::oneOf;

// Of the options that are added next, in the help.
static void group(CLI::App *app, const char *name) { app->option_defaults()->group(name); }

// The options of the C structs that are in the group `name`; in the help they are in `shown`.
static void addOptions(CLI::App *app, Arguments &a, std::string_view name, const char *shown = nullptr) {
  auto takes = [name](const auto &row) { return name == row.group; };
  commandline::addOptions(*app, mtrun::sessionOptions, a.session, shown, takes);
  commandline::addOptions(*app, mtrun::checkpointOptions, a.saving, shown, takes);
  commandline::addOptions(*app, mtrun::loopOptions, a.loop, shown, takes);
}

static void addLoad(CLI::App *app, Arguments &a, const char *names = "--load") {
  app->add_option(names, a.load,
                  "read the variables first: a .safetensors or .keras file, a checkpoint, or a folder of them whose "
                  "newest is taken; FILE:partial takes those of FILE that fit by name and shape")
      ->type_name("FILE[:partial]");
}

static CLI::Option *addPlan(CLI::App *app, Arguments &a) {
  auto *plan = app->add_option("PLAN", a.plan,
                               "plan file, made by mtc compile; or a model (.keras, .mlir), where mtc is installed")
                   ->type_name("FILE")
                   ->required();
  group(app, "Devices");
  app->add_option("--devices", a.devices,
                  "cpu:N, cpu:NxT (N devices of T threads each), null:N; GPUs: cuda:0, cuda:0-3, cuda:0*4 (four "
                  "devices on one); without it every "
                  "GPU, if the plan has code for GPUs and there are any, else a thread for each CPU, or fewer if the "
                  "plan has no work for more; the bits of CPUs are the same")
      ->type_name("DEVICES");
  addOptions(app, a, "Devices");
  app->add_flag("--verbose", a.verbose, "tell what the start takes, and on what code it runs");
  group(app, "Options");
  addLoad(app, a);
  return plan;
}

static void addCompiler(CLI::App *app, Arguments &a) {
  commandline::addOptions(*app, mtrun::mtcOptions, a.compile, "Of a model in place of a plan (mtc compile --help)",
                          [](const auto &row) { return row.shared; });
}

static void addStrict(CLI::App *app, Arguments &a) {
  app->add_flag("--strict", a.strict, "a damaged picture or a class without any is an error, and not left out");
}

static void addDataSource(CLI::App *app, Arguments &a) {
  std::string forms;
  for (int32_t i = 0; mtrun_data_form(i); ++i)
    forms += (i == 0 ? "" : mtrun_data_form(i + 1) ? ", " : " or ") + std::string(mtrun_data_form(i));
  app->add_option("--data", a.data,
                  forms + ", then any of ,split=train|test ,range=BEGIN:END ,scale=A/B ,mean=M ,std=S "
                          ",preprocess=caffe|torch|tf and ,class-weight=CLASS:WEIGHT+...")
      ->type_name("SPEC")
      ->required();
  addStrict(app, a);
}

static void addData(CLI::App *app, Arguments &a) {
  addDataSource(app, a);
  addOptions(app, a, "Checks", "Options");
}

template <typename Number>
static CLI::Option *addCount(CLI::App *app, const char *name, Number &value, int64_t least, const char *help) {
  return app->add_option(name, value, help)->type_name("N")->capture_default_str()->check(atLeast(least));
}

static void addTrace(CLI::App *sub, Arguments &a) {
  group(sub, "Time");
  sub->add_option("--trace", a.trace,
                  "write what every thread does in training steps FIRST to LAST, from 1 (default: ten steps after the "
                  "first ten), for ui.perfetto.dev")
      ->type_name("FILE[:FIRST-LAST]");
  sub->add_flag("--profile", a.profile,
                "print where the time goes: by layer, kind and kernel, and how far from the floor");
}

static void addDeviceOptions(CLI::App *sub, Arguments &a) {
  group(sub, "Devices");
  addCount(
      sub, "--processes", a.session.processes, 0,
      "1: all devices in one process; 0: a process per GPU, those that mpirun, srun or torchrun started (on several "
      "hosts with a secret in MTC_SECRET), or else mtrun's own; for CPU devices those of mpirun or srun (predict and "
      "verify have one for GPUs)");
  addOptions(sub, a, "Processes", "Devices");
}

static void addCheckpoints(CLI::App *sub, Arguments &a) {
  sub->add_option("--checkpoint", a.checkpoint,
                  "folder of checkpoints, each of them complete or absent; or in place of --epoch-file its pattern")
      ->type_name("DIR");
  sub->add_option(
         "--epoch-file", a.epochFile,
         "write a model (.keras) or its variables (.safetensors) after each epoch, as 'model-{epoch}.keras' or "
         "'w-{epoch:02d}-{val_loss:.2f}.safetensors'")
      ->type_name("PATTERN");
  addOptions(sub, a, "Checkpoints and logs");
  sub->add_option("--run", a.run,
                  "folder for weights, history and checkpoints; runs/MODEL-TIME without it, --save and --checkpoint")
      ->type_name("DIR");
  sub->add_option("--history", a.history, "write the metrics of every epoch to PATH.json and PATH.csv")
      ->type_name("PATH");
  sub->add_option("--tensorboard", a.tensorboard, "write event files of losses and metrics by step and epoch")
      ->type_name("DIR");
}

static void addCallbacks(CLI::App *sub, Arguments &a) {
  addOptions(sub, a, "Callbacks");
  sub->add_option("--learning-rate", a.learningRate,
                  "begin with this rate in place of the model's; a schedule's cannot be set")
      ->type_name("X");
  auto *scaling = sub->add_option("--lr-scaling", a.lrScaling,
                                  "begin with the model's learning rate times batch / base batch, or its square root; "
                                  "devices and shards do not count")
                      ->type_name("linear|sqrt")
                      ->check(oneOf({"linear", "sqrt"}));
  auto *base = sub->add_option("--base-batch", a.baseBatch, "the batch that the model's learning rate was chosen for")
                   ->type_name("B")
                   ->check(atLeast(1));
  scaling->needs(base);
  base->needs(scaling);
}

// "0.2", "0.2:last".
static void parseSplit(std::string_view text, Arguments &a) {
  bool last = text.ends_with(":last");
  std::string_view share = text.substr(0, last ? text.size() - 5 : text.size());
  double &split = a.loop.validation_split;
  a.loop.validation_last = last;
  auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), split);
  if (error != std::errc() || end != share.data() + share.size() || !(split >= 0 && split < 1))
    throw CLI::ValidationError("--validation-split",
                               "expected a share from 0 up to below 1, or with :last, found " + std::string(text));
}

static void addTrain(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand("train", "train a model for whole epochs; the last batch of each may be short");
  addPlan(sub, a);
  addData(sub, a);
  sub->add_option("--validation", a.validation, "data to evaluate on after each epoch")->type_name("SPEC");
  sub->add_option_function<std::string>(
         "--validation-split", [&a](const std::string &text) { parseSplit(text, a); },
         "the share of --data to hold out and evaluate on, of each class alike, drawn by the seed; with :last its last "
         "samples")
      ->type_name("X[:last]")
      ->excludes("--validation");
  addOptions(sub, a, "Epochs", "Options");
  sub->add_option(
         "--save", a.save,
         "write at the end: the model as NAME.keras, its weights for Keras as NAME.weights.h5, or the variables "
         "as NAME.safetensors")
      ->type_name("FILE");
  sub->add_flag("--json-logs", a.json, "a JSON object a step and one an epoch instead of the progress line");
  addDeviceOptions(sub, a);
  group(sub, "Checkpoints and logs");
  addCheckpoints(sub, a);
  group(sub, "Callbacks");
  addCallbacks(sub, a);
  addTrace(sub, a);
  addCompiler(sub, a);
  sub->footer(
      "Example:\n  mtrun train mnist.mtp --data mnist:DIR --validation mnist:DIR,split=test --epochs 2 --devices cpu:2 "
      "--save w.safetensors");
}

static void addEvaluate(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand("evaluate", "losses and metrics over a data set");
  addPlan(sub, a);
  addData(sub, a);
  sub->add_flag("--json-logs", a.json, "a JSON object instead of the progress line");
  addDeviceOptions(sub, a);
  addCompiler(sub, a);
  sub->footer("Example:\n  mtrun evaluate mnist.mtp --load w.safetensors --data mnist:DIR,split=test");
}

static void addPredict(CLI::App &app, Arguments &a) {
  CLI::App *sub =
      app.add_subcommand("predict", "write what the model says of every sample to a .csv, .npz or .npy file");
  addPlan(sub, a);
  addData(sub, a);
  sub->add_option("-o,--output", a.output,
                  "the file: .csv has one line per sample, .npz all outputs by name, .npy one output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--index", a.outputIndex,
                  "this output alone, counted from 0; without it .npy has the first, others have all")
      ->type_name("N")
      ->check(atLeast(0));
  addDeviceOptions(sub, a);
  addCompiler(sub, a);
  sub->footer("Example:\n  mtrun predict mnist.mtp --load w.safetensors --data mnist:DIR,split=test --output p.csv");
}

static void addExport(CLI::App &app, Arguments &a) {
  CLI::App *sub =
      app.add_subcommand("export", "write the model with trained variables in the format that it came from");
  sub->add_option("PLAN", a.plan, "plan file, made by mtc compile; or the model, where mtc is installed")
      ->type_name("FILE")
      ->required();
  addLoad(sub, a, "--load,--checkpoint");
  sub->add_option("-o,--output", a.output,
                  "the file to write: .keras, .weights.h5 for its weights, or .safetensors for the variables")
      ->type_name("FILE")
      ->required();
  sub->footer("Example:\n  mtrun export model.mtp --load w.safetensors -o trained.keras");
}

static void addBenchmark(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand("benchmark", "time training steps on random inputs in memory");
  CLI::Option *plan = addPlan(sub, a);
  auto *allReduces =
      sub->add_option("--all-reduce", a.allReduces,
                      "in place of PLAN, time all-reduces of these sizes between the processes that mpirun or srun "
                      "started, in turn with MPI_Allreduce, whose order of additions is another; without sizes 1 KB, "
                      "100 KB, 10 MB and 100 MB")
          ->type_name("BYTES...")
          ->expected(0, 64)
          ->excludes(plan)
          ->check(atLeast(4));
  // CLI11 knows no option that is required without another.
  plan->required(false);
  sub->callback([allReduces, plan, &a] {
    if (allReduces->empty() && plan->empty())
      throw CLI::RequiredError("PLAN");
    // Without a size CLI11 adds an element of 0.
    if (!allReduces->empty() && (a.allReduces.empty() || a.allReduces == std::vector<int64_t>{0}))
      a.allReduces = {1 << 10, 100'000, 10'000'000, 100'000'000};
  });
  sub->add_option("--steps", a.steps, "timed steps")->type_name("N")->capture_default_str()->check(atLeast(1));
  sub->add_option("--warmup", a.warmup, "steps before them")->type_name("N")->capture_default_str()->check(atLeast(0));
  sub->add_option("--rows", a.rows, "samples per step; 0: the plan's batch")
      ->type_name("N")
      ->capture_default_str()
      ->check(atLeast(0));
  sub->add_flag("--json", a.json, "print one JSON object; times are in microseconds");
  addDeviceOptions(sub, a);
  addTrace(sub, a);
  addCompiler(sub, a);
  sub->footer("Inputs are the same batch each step. Ids and labels are drawn from all rows and classes, where the\n"
              "plan knows their number; other integers are 0 or 1, numbers lie in [0, 1).\n\n"
              "Examples:\n  mtrun benchmark mnist.mtp --devices cpu:2 --json\n"
              "  mpirun -np 4 mtrun benchmark --all-reduce");
}

static void addTune(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand(
      "tune",
      "measure on a GPU what runs each kernel fastest, generated code or a library's call, for --tuning of train");
  sub->add_option("PLAN", a.plan, "plan file, made by mtc compile")->type_name("FILE")->required();
  sub->add_option("--devices", a.devices, "the GPU: cuda:0")->type_name("DEVICES")->required();
  sub->add_option("-o,--output", a.output, "the tuning file; without it PLAN.tuning")->type_name("FILE");
  sub->add_option("--repeats", a.repeats, "timed launches of each")
      ->type_name("N")
      ->capture_default_str()
      ->check(atLeast(1));
  sub->footer("Example:\n  mtrun tune mnist.mtp --devices cuda:0 -o mnist.tuning");
}

static void addDataCommand(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand("data", "show what a data source holds: shapes, ranges, classes, a few samples");
  sub->add_option("SPEC", a.data, "as --data of train takes it")->required();
  addCount(sub, "--samples", a.samples, 0, "samples to show");
  addStrict(sub, a);
  sub->add_option("--save-columns", a.saveColumns,
                  "of csv: write a columns file, for mtc compile --columns: what the cells become as numbers")
      ->type_name("FILE");
  sub->add_flag(
      "--benchmark", a.speed,
      "instead, measure how many samples a second batches have, and of pictures (with size=HxW) the decoder alone");
  addCount(sub, "--batch", a.rows, 1, "of --benchmark: samples of a batch; 64 without it");
  sub->add_option("--seconds", a.seconds, "of --benchmark")->type_name("S")->capture_default_str();
  std::string kinds = "Sources:\n";
  for (int32_t i = 0; mtrun_data_form(i); ++i)
    kinds += std::string("  ") + mtrun_data_form(i) + ": " + mtrun_data_help(i) + "\n";
  sub->footer(kinds + "Example:\n  mtrun data mnist:DIR,split=test");
}

static void addVerify(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand("verify", "train parts of a run again and compare them with its receipt");
  sub->add_option("RECEIPT", a.receipt, "the file that mtrun train --receipt wrote")->type_name("FILE")->required();
  sub->add_option("--plan", a.plan, "the run's plan, for any CPU; or the model, where mtc is installed")
      ->type_name("FILE")
      ->required();
  addDataSource(sub, a);
  sub->add_option("--validation", a.validation, "the data that the run evaluated on")->type_name("SPEC");
  auto *window = sub->add_option("--window", a.window, "only steps A to B, each the next record before or after")
                     ->type_name("A:B");
  auto *random = addCount(sub, "--random", a.windows, 1, "M random windows between two records");
  random->excludes(window);
  addCount(sub, "--seed", a.windowSeed, 0, "of the random windows")->needs(random);
  sub->add_option("--checkpoints", a.checkpoint,
                  "folder of checkpoints of the run, from which windows begin; without it they begin at step 0")
      ->type_name("DIR");
  sub->add_option("--devices", a.devices, "as of mtrun train; their number and CPUs may be others than the run's")
      ->type_name("DEVICES");
  addDeviceOptions(sub, a);
  commandline::addOptions(*sub, mtrun::sessionOptions, a.session, nullptr, [](const auto &row) {
    return std::string_view(row.group) == "Devices" && std::string_view(row.name) != "seed"; // the receipt has it
  });
  group(sub, "Options");
  addLoad(sub, a);
  addCompiler(sub, a);
  sub->footer(
      "Exit codes: 0 verified; 10 the run differs from the receipt; 1 it cannot be checked.\n\n"
      "Example:\n  mtrun verify run.mtr --plan mnist.mtp --data mnist:DIR --random 3 --seed 7 --checkpoints ck");
}

static void addDiff(CLI::App &app, Arguments &a) {
  CLI::App *sub =
      app.add_subcommand("diff", "show where two checkpoints, .safetensors files, plans or receipts differ");
  sub->add_option("FILES", a.paths, "two of one kind; digests of launches too; or variables and their run's receipt")
      ->type_name("A B")
      ->required()
      ->expected(2);
  sub->add_option("--plan", a.plan, "the plan, whose order the variables then have")->type_name("FILE");
  sub->footer("Exit codes: 0 no difference; 10 a difference; 1 no two files that can be compared.\n\n"
              "Example:\n  mtrun diff ck/step-000000000100 other/step-000000000100 --plan mnist.mtp");
}

static void addSupervise(CLI::App &app, Arguments &a) {
  CLI::App *sub = app.add_subcommand(
      "supervise", "start a run of several processes with MPI, and start it again when a process or a host is lost");
  addCount(sub, "--min-processes", a.minProcesses, 1, "end if fewer processes than that are left");
  addCount(sub, "--max-restarts", a.maxRestarts, 0, "end, with exit code 9, after this number of restarts");
  sub->add_option("COMMAND", a.supervised,
                  "after --: mpirun, mpiexec or srun with its options, and mtrun train with --checkpoint and --resume "
                  "auto")
      ->required();
  sub->footer("A signal to stop is passed to the run, which saves a checkpoint and ends with exit code 75.\n\n"
              "Example:\n  mtrun supervise -- mpirun --host a,b,c,d --map-by node --bind-to none mtrun train m.mtp "
              "--data mnist:DIR --checkpoint ck --resume auto");
}

void addCommands(CLI::App &app, Arguments &arguments) {
  arguments.loop.epochs = 1;
  addTrain(app, arguments);
  addEvaluate(app, arguments);
  addPredict(app, arguments);
  addExport(app, arguments);
  addBenchmark(app, arguments);
  addTune(app, arguments);
  addDataCommand(app, arguments);
  addVerify(app, arguments);
  addDiff(app, arguments);
  addSupervise(app, arguments);
  app.add_subcommand("devices", "list what --devices may name here");
}

} // namespace mtrun_tool
