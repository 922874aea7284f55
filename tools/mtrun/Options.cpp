// SPDX-License-Identifier: Apache-2.0
//
// The command line of mtrun: arguments only, the work is in Commands.cpp.
#include "tools/mtrun/Options.h"
#include "runtime/abi/mtrun.h"
#include "tools/commandline/CommandLine.h"

#include <charconv>
#include <cmath>

namespace mtrun_tool {

using commandline::addText;
using commandline::addToggle;
using commandline::atLeast;
using commandline::numberIn;
using commandline::oneOf;

// Of the options that are added next, in the help.
static void group(CLI::App *app, const char *name) { app->option_defaults()->group(name); }

static void addLoad(CLI::App *app, Arguments &a, const char *names = "--load") {
  app->add_option(names, a.load,
                  "read the variables first: a .safetensors or .keras file, a checkpoint, or a folder of them whose "
                  "newest is taken; FILE:partial takes those of FILE that fit by name and shape")
      ->type_name("FILE[:partial]");
}

static void addPlan(CLI::App *app, Arguments &a) {
  app->add_option("PLAN", a.plan, "plan file, made by mtc compile; or a model (.keras, .mlir), where mtc is installed")
      ->type_name("FILE")
      ->required();
  group(app, "Devices");
  app->add_option("--devices", a.devices,
                  "cpu:N, cpu:NxT (N devices of T threads each), null:N; GPUs: cuda:0, cuda:0-3, cuda:0*4 (four "
                  "devices on one); without it every "
                  "GPU, if the plan has code for GPUs and there are any, else a thread for each CPU, or fewer if the "
                  "plan has no work for more; the bits of CPUs are the same")
      ->type_name("DEVICES");
  addText(*app, "--cpu", a.session.cpu, "code to use, x86-64-v3 say, instead of the best that this CPU runs")
      ->type_name("NAME");
  addText(*app, "--libraries", a.session.libraries,
          "GPUs: kernels as calls of cuBLASLt and cuDNN where these are likely faster, never, or wherever there "
          "is a call")
      ->type_name("auto|off|require")
      ->default_str("auto")
      ->check(oneOf({"auto", "off", "require"}));
  addText(*app, "--tuning", a.session.tuning,
          "GPUs: what runs each kernel, a file that mtrun tune wrote for this plan and GPU")
      ->type_name("FILE");
  app->add_option("--seed", a.session.seed, "of initial values, random numbers and the order of samples; 0: the plan's")
      ->type_name("N")
      ->capture_default_str();
  addToggle(*app, "--private-variables", a.session.private_variables, "a copy of the variables for each device");
  app->add_option("--micro-batches", a.session.micro_batches,
                  "of CPUs: cut the batch into K parts, a power of two up to the shards, which a device computes one "
                  "after another in less memory, to the same bits; 0: as compiled")
      ->type_name("K")
      ->capture_default_str();
  addToggle(*app, "--no-pin", a.session.no_pin, "do not pin threads to CPUs");
  app->add_flag("--verbose", a.verbose, "tell what the start takes, and on what code it runs");
  addToggle(*app, "--no-spin", a.session.no_spin, "threads that wait sleep at once instead of spinning first");
  group(app, "Options");
  addLoad(app, a);
}

static void addCompiler(CLI::App *app, Arguments &a) {
  group(app, "Of a model in place of a plan (mtc compile --help)");
  app->add_option("--batch,--batch-size", a.compile.batch, "samples per step; 32 without it")
      ->type_name("B")
      ->check(atLeast(1));
  app->add_option("--optimizer", a.compile.optimizer, "as adam or sgd,learning_rate=0.1,momentum=0.9")
      ->type_name("OPTIMIZER");
  app->add_option("--loss", a.compile.loss, "as mse or sparse_categorical_crossentropy,from_logits=true")
      ->type_name("LOSS");
  app->add_option("--metrics", a.compile.metrics, "as accuracy,mae; none")->type_name("METRICS");
  app->add_option("--precision", a.compile.precision, "f32, tf32, bf16 or f16")->type_name("TYPE");
  app->add_option("--input-shape", a.compile.inputShapes, "of a sample, for models without sizes, as 224,224,3")
      ->type_name("[NAME=]SIZES")
      ->allow_extra_args(false);
  app->add_option("--lengths", a.compile.lengths, "of sequences, as 64,128,256")->type_name("L,...");
  app->add_option("--length-input", a.compile.lengthInput, "says how long a sample is")->type_name("NAME");
  app->add_option("--vocabulary", a.compile.vocabulary,
                  "a text whose distinct characters are the tokens of text:FILE; without it these are bytes")
      ->type_name("FILE");
  app->add_flag("--sample-weights", a.compile.sampleWeights, "losses take weights of samples");
  group(app, "Options");
}

static void addStrict(CLI::App *app, Arguments &a) {
  app->add_flag("--strict", a.strict, "a damaged picture or a class without any is an error, and not left out");
}

static void addChecks(CLI::App *app, Arguments &a) {
  addToggle(*app, "--allow-nan", a.loop.allow_nan,
            "go on with values of the data that are not finite, and in training after a loss that is not");
  addToggle(*app, "--unchecked-ids", a.session.unchecked_ids,
            "do not look whether the data's integers are below what the model says; wrong ones count as the nearest");
}

static void addData(CLI::App *app, Arguments &a) {
  std::string forms;
  for (int32_t i = 0; mtrun_data_form(i); ++i)
    forms += (i == 0 ? "" : mtrun_data_form(i + 1) ? ", " : " or ") + std::string(mtrun_data_form(i));
  app->add_option("--data", a.data,
                  forms +
                      ", then "
                      "[,split=train|test][,range=BEGIN:END][,scale=A/B][,mean=M][,std=S][,preprocess=caffe|torch|tf]"
                      "[,class-weight=CLASS:WEIGHT+...]")
      ->type_name("SPEC")
      ->required();
  addStrict(app, a);
  addChecks(app, a);
}

template <typename Number>
static CLI::Option *addCount(CLI::App *app, const char *name, Number &value, int64_t least, const char *help) {
  return app->add_option(name, value, help)->type_name("N")->capture_default_str()->check(atLeast(least));
}

template <typename Number>
static CLI::Option *addReal(CLI::App *app, const char *name, Number &value, const char *help) {
  return app->add_option(name, value, help)->type_name("X");
}

static CLI::Option *addReal(CLI::App *app, const char *name, const double *&value, const char *help) {
  return commandline::addNumber(*app, name, value, help)->type_name("X");
}

static CLI::Option *addMonitor(CLI::App *app, const char *name, const char *&value, const char *help) {
  return addText(*app, name, value, help)->type_name("NAME[:max|min]");
}

static void addLaunches(CLI::App *sub, Arguments &a) {
  addCount(sub, "--steps-per-launch", a.session.steps_per_launch = 1, 1,
           "of GPUs: steps that they are given at once; for steps of a few microseconds");
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

static void addProcesses(CLI::App *sub, Arguments &a) {
  addCount(sub, "--processes", a.session.processes, 0,
           "1: all GPUs in one process; 0: a process each, those that mpirun, srun or torchrun started (on several "
           "hosts with a secret in MTC_SECRET), or else mtrun's own");
  sub->add_option("--timeout", a.session.timeout = 600,
                  "seconds that a process waits for the others before they are lost")
      ->type_name("S")
      ->capture_default_str()
      ->check(numberIn(1e-3, HUGE_VAL));
}

static void addDeviceOptions(CLI::App *sub, Arguments &a) {
  group(sub, "Devices");
  addProcesses(sub, a);
  addLaunches(sub, a);
}

static void addCheckpoints(CLI::App *sub, Arguments &a) {
  sub->add_option("--checkpoint", a.checkpoint,
                  "folder of checkpoints, each of them complete or absent; or in place of --epoch-file its pattern")
      ->type_name("DIR");
  addMonitor(sub, "--checkpoint-monitor", a.loop.checkpoint_monitor,
             "of the best checkpoint, which is kept, and of --best-only; without it --monitor's");
  sub->add_option(
         "--epoch-file", a.epochFile,
         "write a model (.keras) or its variables (.safetensors) after each epoch, as 'model-{epoch}.keras' or "
         "'w-{epoch:02d}-{val_loss:.2f}.safetensors'")
      ->type_name("PATTERN");
  addToggle(*sub, "--best-only", a.loop.epoch_best_only,
            "the epoch's file: only after an epoch that is better than all before");
  addToggle(*sub, "--weights-only", a.loop.epoch_weights_only,
            "the epoch's file, .safetensors: the model's variables without the optimizer's");
  addCount(sub, "--every-steps", a.saving.every_steps, 0, "save after so many steps");
  addCount(sub, "--every-epochs", a.saving.every_epochs, 0,
           "save after so many epochs; the default, 1, if nothing else is said");
  sub->add_option("--every-seconds", a.saving.every_seconds, "save when so many seconds have passed")->type_name("S");
  addCount(sub, "--keep", a.saving.keep = 3, 1, "checkpoints that stay, the newest; the best stays too");
  addText(*sub, "--resume", a.saving.resume, "auto: the newest checkpoint in DIR that verifies; or the path of one")
      ->type_name("auto|PATH");
  addToggle(*sub, "--force", a.saving.force, "resume with another plan or other data, or drop newer checkpoints");
  sub->add_option("--run", a.run,
                  "folder for weights, history and checkpoints; runs/MODEL-TIME without it, --save and --checkpoint")
      ->type_name("DIR");
  sub->add_option("--history", a.history, "write the metrics of every epoch to PATH.json and PATH.csv")
      ->type_name("PATH");
  sub->add_option("--tensorboard", a.tensorboard, "write event files of losses and metrics by step and epoch")
      ->type_name("DIR");
}

static void addCallbacks(CLI::App *sub, Arguments &a) {
  addMonitor(sub, "--monitor", a.loop.monitor,
             "the metric that decides: val_loss, or loss without validation. Accuracies, precision and the like are "
             "better when higher, losses and errors when lower; :max or :min says otherwise");
  auto *early = addCount(sub, "--early-stopping", a.loop.early_patience, 0,
                         "stop after so many epochs without a better one; 0: never");
  addMonitor(sub, "--early-stopping-monitor", a.loop.early_monitor, "its metric; without it --monitor's")->needs(early);
  addReal(sub, "--min-delta", a.loop.early_min_delta, "what is better by less does not count")->needs(early);
  addReal(sub, "--baseline", a.loop.early_baseline, "only an epoch better than this, too, begins the count anew")
      ->needs(early);
  addCount(sub, "--start-from-epoch", a.loop.early_start_epoch, 0, "so many epochs pass before the count begins")
      ->needs(early);
  addToggle(*sub, "--restore-best", a.loop.restore_best,
            "with --early-stopping: end with the variables of the best epoch, the optimizer's excepted");
  auto *plateau = addCount(sub, "--plateau", a.loop.plateau_patience, 0,
                           "reduce the learning rate after so many epochs without a better one; 0: never");
  addMonitor(sub, "--plateau-monitor", a.loop.plateau_monitor, "its metric; without it --monitor's")->needs(plateau);
  addReal(sub, "--plateau-factor", a.loop.plateau_factor = 0.1, "by which the rate is multiplied, below 1")
      ->capture_default_str()
      ->needs(plateau);
  addReal(sub, "--plateau-min", a.loop.plateau_min_rate, "the rate never goes below")->needs(plateau);
  addReal(sub, "--plateau-min-delta", a.loop.plateau_min_delta,
          "what is better by less does not count; 1e-4 without it")
      ->needs(plateau);
  addCount(sub, "--plateau-cooldown", a.loop.plateau_cooldown, 0, "so many epochs after a reduction do not count")
      ->needs(plateau);
  addReal(sub, "--learning-rate", a.learningRate,
          "begin with this rate in place of the model's; a schedule's cannot be set");
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
  addCount(sub, "--epochs", a.loop.epochs = 1, 1, "passes over the data, in total");
  addCount(sub, "--more-epochs", a.loop.more_epochs, 1, "after those of the checkpoint, instead of --epochs");
  addCount(sub, "--initial-epoch", a.loop.initial_epoch, 0,
           "epochs that count as done where no checkpoint is resumed: of --epochs, names of files, order of samples");
  addCount(sub, "--steps-per-epoch", a.loop.steps_per_epoch, 0, "0: a pass over the data");
  sub->add_option("--validation", a.validation, "data to evaluate on after each epoch")->type_name("SPEC");
  sub->add_option_function<std::string>(
         "--validation-split", [&a](const std::string &text) { parseSplit(text, a); },
         "the share of --data to hold out and evaluate on, of each class alike, drawn by the seed; with :last its last "
         "samples")
      ->type_name("X[:last]")
      ->excludes("--validation");
  addCount(sub, "--validation-freq", a.loop.validation_freq = 1, 1, "validate after each so many epochs");
  addCount(sub, "--validation-steps", a.loop.validation_steps, 0, "of the validation data, the first batches; 0: all");
  sub->add_option(
         "--save", a.save,
         "write at the end: the model as NAME.keras, its weights for Keras as NAME.weights.h5, or the variables "
         "as NAME.safetensors")
      ->type_name("FILE");
  auto *ordered = addToggle(*sub, "--no-shuffle", a.loop.no_shuffle, "take the samples in the order of the file");
  addCount(sub, "--shuffle-window", a.loop.shuffle_window, 0, "draw each sample among the next N; 0: among all")
      ->excludes(ordered);
  addToggle(*sub, "--drop-remainder", a.loop.drop_remainder, "leave out the short last batch of an epoch");
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
  addPlan(sub, a);
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
              "Example:\n  mtrun benchmark mnist.mtp --devices cpu:2 --json");
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

void addCommands(CLI::App &app, Arguments &arguments) {
  addTrain(app, arguments);
  addEvaluate(app, arguments);
  addPredict(app, arguments);
  addExport(app, arguments);
  addBenchmark(app, arguments);
  addTune(app, arguments);
  addDataCommand(app, arguments);
  app.add_subcommand("devices", "list what --devices may name here");
}

} // namespace mtrun_tool
