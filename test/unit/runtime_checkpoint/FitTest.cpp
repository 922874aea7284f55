// SPDX-License-Identifier: Apache-2.0
//
// Fits that save, end and go on, on devices that compute nothing. That bits are the same is for test/checkpoint.
#include "Sample.h"

#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

using Steps = std::vector<std::pair<int64_t, int64_t>>; // epoch, step

class FitTest : public testing::Test {
protected:
  void SetUp() override {
    writeSmallMnist(folder, std::string("\0\1\2\3\0\1\2", 7)); // 4 steps of 2
    data = openData(plan.get(), "mnist:" + folder.path());
    session = nullSession(plan.get());
    checkpoint.folder = path.c_str();
    options.checkpoint = &checkpoint;
    options.progress = record;
    options.progress_user = this;
    options.stop = stop;
    options.stop_user = this;
    options.note = note;
    options.note_user = this;
    options.result = &result;
  }
  static int record(void *user, const mtrun_progress *p) {
    auto *self = static_cast<FitTest *>(user);
    self->rate = p->learning_rate;
    if (!p->epoch_end || !p->validation)
      self->steps.push_back({p->epoch, p->step});
    return 0;
  }
  static int stop(void *user) {
    auto *self = static_cast<FitTest *>(user);
    return --self->stopIn == 0;
  }
  static void note(void *user, const char *message) { static_cast<FitTest *>(user)->notes.push_back(message); }
  // Status of a fit; what it reported is in `steps` and `notes`.
  std::string fit() {
    steps.clear();
    notes.clear();
    return text(mtrun_fit(session.get(), data.get(), &options));
  }
  std::vector<int64_t> saved() const { return checkpointSteps(path); }

  TempFolder folder;
  std::string path = folder.path("checkpoints");
  Owned<mtrun_plan> plan = emptyPlan(2);
  Owned<mtrun_dataset> data;
  Owned<mtrun_session> session;
  mtrun_checkpoint_options checkpoint = mtrun_checkpoint_options_init();
  mtrun_loop_options options = mtrun_loop_options_init();
  mtrun_fit_result result = {};
  Steps steps;
  std::vector<std::string> notes;
  int stopIn = -1;
  double rate = NAN; // of the last report
};

} // namespace

TEST_F(FitTest, SavesEveryEpochAndKeepsThree) {
  options.epochs = 5;
  ASSERT_EQ(fit(), "0");
  // Step 4 stays as the best: all losses are equal, and it was first.
  EXPECT_EQ(saved(), (std::vector<int64_t>{20, 16, 12, 4}));
  EXPECT_EQ(result.epochs, 5);
  EXPECT_EQ(result.total_step, 20);
  EXPECT_TRUE(result.saved);
  EXPECT_FALSE(result.stopped);
}

TEST_F(FitTest, SavesEverySteps) {
  options.epochs = 2;
  checkpoint.every_steps = 3;
  checkpoint.keep = 10;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(saved(), (std::vector<int64_t>{8, 6, 3})); // and the end
}

TEST_F(FitTest, GoesOnWhereItStopped) {
  options.epochs = 2;
  stopIn = 3;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{0, 1}, {0, 2}, {0, 3}}));
  EXPECT_TRUE(result.stopped && result.saved);
  EXPECT_EQ(saved(), (std::vector<int64_t>{3}));
  checkpoint.resume = "auto";
  session = nullSession(plan.get(), "null:2");
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{0, 4}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}));
  EXPECT_EQ(notes,
            std::vector<std::string>{"resumed " + path + "/step-000000000003: 0 epochs and 3 of 4 steps are done"});
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, Steps{});
  EXPECT_EQ(notes.back(), "nothing left to do: 2 of 2 epochs are done; --more-epochs N continues");
  options.more_epochs = 1;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{2, 1}, {2, 2}, {2, 3}, {2, 4}}));
}

// A manifest with a right hash and a position past the epoch hung the run that resumed it.
TEST_F(FitTest, RefusesAPositionPastTheEpoch) {
  options.epochs = 2;
  stopIn = 3;
  ASSERT_EQ(fit(), "0");
  std::string file = path + "/step-000000000003/manifest.json";
  Manifest manifest;
  ASSERT_EQ(text(readManifest(path + "/step-000000000003", manifest)), "0");
  manifest.state.position = 5;
  manifest.state.step = 5;
  writeFile(file, writeManifest(manifest));
  checkpoint.resume = "auto";
  std::string message = fit();
  EXPECT_TRUE(message.starts_with("3: resume auto: none of the 1 checkpoints")) << message;
  EXPECT_NE(message.find("expected position of at most 4, the steps of an epoch, found 5"), std::string::npos)
      << message;
}

TEST_F(FitTest, StopsInValidation) {
  options.validation = data.get();
  options.epochs = 2;
  stopIn = 6; // 4 steps, the second of validation
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(saved(), (std::vector<int64_t>{4}));
  EXPECT_EQ(result.epochs, 0);
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{1, 1}, {1, 2}, {1, 3}, {1, 4}}));
  EXPECT_EQ(result.epochs, 2);
}

TEST_F(FitTest, SameHistoryAfterAResume) {
  std::string json = folder.path("h.json"), csv = folder.path("h.csv");
  options.history_json = json.c_str();
  options.history_csv = csv.c_str();
  options.epochs = 3;
  ASSERT_EQ(fit(), "0");
  std::string wholeJson = readFile(json), wholeCsv = readFile(csv);
  EXPECT_EQ(wholeCsv, "epoch,loss,accuracy\n1,0,0\n2,0,0\n3,0,0\n");
  std::filesystem::remove_all(path);
  stopIn = 6;
  ASSERT_EQ(fit(), "0");
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(readFile(json), wholeJson);
  EXPECT_EQ(readFile(csv), wholeCsv);
}

TEST_F(FitTest, SkipsADamagedOne) {
  options.epochs = 2;
  ASSERT_EQ(fit(), "0");
  std::string newest = path + "/step-000000000008", older = path + "/step-000000000004";
  std::filesystem::resize_file(newest + "/manifest.json", 10);
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{1, 1}, {1, 2}, {1, 3}, {1, 4}}));
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "skipped " + newest + ": " + newest + "/manifest.json: expected at least 47 bytes, found 10");
  EXPECT_EQ(notes[1], "kept the damaged checkpoint as " + path + "/damaged-step-000000000008");
  for (const std::string &one : {newest, older})
    std::filesystem::resize_file(one + "/manifest.json", 10);
  EXPECT_TRUE(fit().starts_with("3: resume auto: none of the 2 checkpoints in " + path + " verifies\nskipped "));
}

TEST_F(FitTest, Refuses) {
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(fit(), "1: " + path +
                       " holds the checkpoints of a run that came to step 4; expected another folder, or to "
                       "resume it (--resume auto)");
  checkpoint.resume = "auto";
  options.no_shuffle = 1;
  std::string message = "1: " + path +
                        "/step-000000000004: made with other data: expected shuffled (1) or not (0): 1, "
                        "found 0; --force begins the epoch again with the current data";
  EXPECT_EQ(fit(), message);
  options.no_shuffle = 0;
  Owned<mtrun_dataset> three = openData(plan.get(), "mnist:" + folder.path() + ",range=0:3");
  std::swap(data, three);
  EXPECT_NE(fit().find("expected samples: 7, found 3"), std::string::npos);
  std::swap(data, three);
  options.monitor = "val_acc";
  EXPECT_EQ(fit(), "1: monitor: expected one of loss, accuracy, found val_acc, and nothing is validated");
  options.monitor = nullptr;
  options.plateau_patience = 1;
  EXPECT_TRUE(fit().starts_with("1: the plan computes its learning rate by a schedule"));
}

TEST_F(FitTest, AnotherPlanNeedsForce) {
  options.epochs = 2;
  stopIn = 3;
  ASSERT_EQ(fit(), "0");
  plan = emptyPlan(3); // another batch: another plan with the same variables
  session = nullSession(plan.get());
  data = openData(plan.get(), "mnist:" + folder.path());
  checkpoint.resume = "auto";
  std::string message = fit();
  EXPECT_TRUE(message.starts_with("1: " + path + "/step-000000000003: made by the plan of model empty with hash "));
  EXPECT_NE(message.find("--force"), std::string::npos);
  checkpoint.force = 1;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(notes[0], "another plan made " + path + "/step-000000000003: continuing with its variables, to other bits");
  EXPECT_EQ(steps, (Steps{{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}}));
}

TEST_F(FitTest, AnOlderOneNeedsForce) {
  options.epochs = 3;
  ASSERT_EQ(fit(), "0");
  std::string older = path + "/step-000000000004";
  checkpoint.resume = older.c_str();
  EXPECT_EQ(fit(), "1: " + path + " holds checkpoints up to step 12, after step 4 of " + older +
                       "; expected another folder to save in, or --force, which removes them");
  checkpoint.force = 1;
  options.epochs = 2;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(saved(), (std::vector<int64_t>{8, 4}));
}

TEST_F(FitTest, NoCheckpointHoldsNaN) {
  float weights[6] = {1, 2, NAN, 4, 5, 6};
  ASSERT_EQ(text(mtrun_set_variable(session.get(), "w", weights, sizeof weights)), "0");
  EXPECT_EQ(fit(), "1: epoch 1: 1 variable is not finite: w");
  stopIn = 2; // in the middle of an epoch
  EXPECT_EQ(fit(), "1: variable \"w\" holds NaN after step 2, which would make every resumed run invalid");
  EXPECT_EQ(saved(), std::vector<int64_t>{});
  // Infinity is NaN two steps later: a checkpoint of it poisoned the run.
  weights[2] = INFINITY;
  ASSERT_EQ(text(mtrun_set_variable(session.get(), "w", weights, sizeof weights)), "0");
  stopIn = 2;
  EXPECT_EQ(fit(), "1: variable \"w\" holds infinity after step 2, which would make every resumed run invalid");
  EXPECT_EQ(saved(), std::vector<int64_t>{});
  stopIn = -1;
  options.allow_nan = 1;
  EXPECT_EQ(fit(), "0");
  EXPECT_EQ(saved(), std::vector<int64_t>{4});
}

TEST_F(FitTest, StepsOfAnEpoch) {
  options.steps_per_epoch = 3;
  options.epochs = 3;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps.size(), 9u);
  EXPECT_EQ(steps.back(), (std::pair<int64_t, int64_t>{2, 3}));
}

TEST_F(FitTest, EarlyStopping) {
  options.epochs = 10;
  options.early_patience = 2;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(notes, std::vector<std::string>{"epoch 3: stopping early, loss was best at 0"});
  EXPECT_TRUE(result.stopped_early);
  EXPECT_FALSE(result.stopped);
  // What was counted goes on after a resume.
  std::filesystem::remove_all(path);
  stopIn = 10;
  ASSERT_EQ(fit(), "0");
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(result.epochs, 3);
}

// A run that had ended early trained on when a job scheduler started it again, and once more each time.
TEST_F(FitTest, ResumedAfterItsEarlyEndDoesNothing) {
  options.epochs = 10;
  options.early_patience = 2;
  ASSERT_EQ(fit(), "0");
  checkpoint.resume = "auto";
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(fit(), "0");
    EXPECT_EQ(steps, Steps{});
    EXPECT_EQ(notes.back(),
              "nothing left to do: early stopping ended the run after epoch 3; --more-epochs N continues");
    EXPECT_TRUE(result.stopped_early);
  }
  options.more_epochs = 1;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps.size(), 4u);
  EXPECT_FALSE(result.stopped_early);
}

// Killed between the last save and what goes with it, a run never wrote the last row of its history.
TEST_F(FitTest, WritesWhatACheckpointIsAheadOf) {
  std::string json = folder.path("h.json"), csv = folder.path("h.csv"), files = folder.path("e-{epoch}.safetensors");
  options.history_json = json.c_str();
  options.history_csv = csv.c_str();
  options.epoch_file = files.c_str();
  options.epochs = 2;
  ASSERT_EQ(fit(), "0");
  std::string last = folder.path("e-2.safetensors"), history = readFile(csv), variables = readFile(last);
  EXPECT_EQ(history, "epoch,loss,accuracy\n1,0,0\n2,0,0\n");
  for (const std::string &file : {json, csv, last})
    std::filesystem::remove(file);
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(readFile(csv), history);
  EXPECT_EQ(readFile(last), variables);
  EXPECT_TRUE(std::filesystem::exists(json));
}

// A full disk ended the training with the first epoch's log.
TEST_F(FitTest, AHistoryThatCannotBeWrittenIsAWarning) {
  std::string json = folder.path("none/h.json");
  options.history_json = json.c_str();
  options.epochs = 2;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(result.epochs, 2);
}

TEST_F(FitTest, TheErrorOfAnEpochsFileIsThatOfTheLast) {
  std::string files = folder.path("none/e-{epoch}.safetensors");
  options.epoch_file = files.c_str();
  options.epochs = 2;
  EXPECT_TRUE(fit().starts_with("7: cannot create "));
  EXPECT_EQ(result.epochs, 2);
  EXPECT_EQ(saved().front(), 8);
}

TEST_F(FitTest, ValidatesNowAndThen) {
  std::string csv = folder.path("h.csv");
  options.history_csv = csv.c_str();
  options.validation = data.get();
  options.validation_freq = 2;
  options.validation_steps = 1;
  options.epochs = 5;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(readFile(csv), "epoch,loss,accuracy,val_loss,val_accuracy\n1,0,0,nan,nan\n2,0,0,0,0\n3,0,0,nan,nan\n"
                           "4,0,0,0,0\n5,0,0,nan,nan\n");
  std::filesystem::remove_all(path);
  stopIn = 9; // 4 steps of training and 4 more: the only one of validation
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(result.epochs, 1);
  checkpoint.resume = "auto";
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(result.epochs, 5);
}

TEST_F(FitTest, InitialEpoch) {
  std::string csv = folder.path("h.csv");
  options.history_csv = csv.c_str();
  options.initial_epoch = 3;
  options.epochs = 4;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{3, 1}, {3, 2}, {3, 3}, {3, 4}}));
  EXPECT_EQ(readFile(csv), "epoch,loss,accuracy\n4,0,0\n");
  checkpoint.resume = "auto"; // which says how many epochs are done
  options.epochs = 5;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(steps, (Steps{{4, 1}, {4, 2}, {4, 3}, {4, 4}}));
}

// A caller who sets the learning rate of an epoch has to know which one begins, in a resumed run too.
TEST_F(FitTest, TellsTheBeginningsOfEpochs) {
  struct Begun {
    int *stopIn; // counts downwards, for ever
    Steps at;    // epoch, how often the loop had asked whether to stop
    int64_t endAt;
  } begun = {&stopIn, {}, -1};
  options.epochs = 3;
  options.progress = nullptr;
  options.progress_user = &begun;
  options.epoch_begin = [](void *user, int64_t epoch) {
    auto *self = static_cast<Begun *>(user);
    self->at.push_back({epoch, -*self->stopIn});
    return int(epoch == self->endAt);
  };
  stopIn = 0;
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(begun.at, (Steps{{0, 0}, {1, 4}, {2, 8}}));
  checkpoint.resume = "auto";
  options.epochs = 5;
  begun.at.clear();
  begun.endAt = 4; // before its first step
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(begun.at, (Steps{{3, 12}, {4, 16}}));
  EXPECT_TRUE(result.stopped && result.saved);
  EXPECT_EQ(result.total_step, 16);
}

// Nobody could see a schedule's warm-up: its rate was nowhere.
TEST_F(FitTest, TheRateOfASchedule) {
  std::string csv = folder.path("h.csv");
  options.history_csv = csv.c_str();
  options.epochs = 2;
  plan = emptyPlan(2, true);
  session = nullSession(plan.get());
  data = openData(plan.get(), "mnist:" + folder.path());
  ASSERT_EQ(fit(), "0");
  EXPECT_EQ(rate, 0);
  EXPECT_EQ(readFile(csv), "epoch,loss,accuracy,learning_rate\n1,0,0,0\n2,0,0,0\n");
  float tensors[2 * 6] = {}, *image = tensors;
  int32_t labels[2] = {};
  const void *arguments[] = {image, labels};
  double step = NAN;
  mtrun_results results = {nullptr, nullptr, nullptr, &step};
  ASSERT_EQ(text(mtrun_train_step(session.get(), arguments, 2, &results)), "0");
  EXPECT_EQ(step, 0);
  ASSERT_EQ(text(mtrun_eval_step(session.get(), arguments, 2, &results)), "0");
  EXPECT_TRUE(std::isnan(step));
  checkpoint.resume = "auto";
  options.learning_rate = 0.1;
  EXPECT_EQ(fit(), "1: the plan computes its learning rate by a schedule: expected a variable, which alone can be set");
}

TEST_F(FitTest, OptionsWithoutTheirSize) {
  checkpoint.struct_size = 0;
  EXPECT_NE(fit().find("1: mtrun_checkpoint_options.struct_size: expected "), std::string::npos);
  options.struct_size = 0;
  EXPECT_NE(fit().find("1: mtrun_loop_options.struct_size: expected "), std::string::npos);
}

TEST_F(FitTest, NumbersThatMeanNothing) {
  options.checkpoint = nullptr;
  options.early_min_delta = NAN;
  EXPECT_EQ(fit(), "1: expected a min delta of early stopping of at least 0, found nan");
  options.early_min_delta = 0;
  options.plateau_factor = NAN;
  EXPECT_EQ(fit(), "1: expected a factor of the plateau from 0 to below 1, found nan");
  options.plateau_factor = 1;
  EXPECT_EQ(fit(), "1: expected a factor of the plateau from 0 to below 1, found 1");
  options.plateau_factor = 0;
  options.plateau_min_rate = NAN;
  EXPECT_EQ(fit(), "1: expected a least learning rate of the plateau of at least 0, found nan");
  options.plateau_min_rate = 0;
  options.learning_rate = -1;
  EXPECT_EQ(fit(), "1: expected a learning rate of at least 0, found -1");
  options.learning_rate = 0;
  options.initial_epoch = -1;
  EXPECT_EQ(fit(), "1: expected initial_epoch of at least 0, found -1");
  options.initial_epoch = 0;
  options.checkpoint = &checkpoint;
  checkpoint.every_seconds = NAN;
  EXPECT_EQ(
      fit(),
      "1: expected numbers of at least 0 for the checkpoint options every_steps, every_seconds, every_epochs and keep");
}
