// SPDX-License-Identifier: Apache-2.0
// Early stopping minimised precision, recall and F1, and restored the worst epoch. Here "gain" rises with every epoch,
// from 0 to 1.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/ones.py x.npy y.npy
// RUN: mtc compile %s -o m.mtp --batch 4 --shards 2 --cpu x86-64-v3
// RUN: mtc inspect --json m.mtp | tr -d '\n' | tr '{' '\n' | FileCheck %s --check-prefix=PLAN
// PLAN: "name": "loss"{{.*}}"better": "lower"
// PLAN: "name": "gain"{{.*}}"better": "higher"

// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --early-stopping 1 --restore-best --monitor gain --history h --save w.safetensors | FileCheck %s --check-prefix=UP
// UP: Epoch 4/4
// UP-NOT: stopping
// UP: restored the variables of the best epoch, with gain 0.{{[6-9]}}
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --early-stopping 1 --restore-best --monitor gain:min --save w.safetensors | FileCheck %s --check-prefix=DOWN
// DOWN: epoch 2: stopping early, gain was best at 0.1

// Each callback may have a monitor of its own: the rate falls where "gain" is taken for an error, and the run goes on.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --early-stopping 1 --early-stopping-monitor gain --plateau 2 --plateau-monitor gain:min --plateau-factor 0.5 --save w.safetensors | FileCheck %s --check-prefix=OWN
// OWN: epoch 3: gain has a plateau; the learning rate is now 0.05
// OWN: Epoch 4/4

// What is better by less than the plateau's own delta, 1e-4 unless said otherwise, does not count; early stopping's was
// ignored in silence, and is refused without it.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 3 --plateau 1 --plateau-min-delta 1 --monitor loss --save w.safetensors | FileCheck %s --check-prefix=DELTA
// DELTA: epoch 2: loss has a plateau
// DELTA: epoch 3: loss has a plateau
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 3 --plateau 1 --monitor loss --save w.safetensors | FileCheck %s --check-prefix=FALLS
// FALLS: Epoch 3/3
// FALLS-NOT: plateau
// RUN: %python %S/../tools/mtrun/outcome.py 2 mtrun train m.mtp --data npy:x.npy,y.npy --plateau 1 --min-delta 1 --save w.safetensors | FileCheck %s --check-prefix=OTHER
// OTHER: mtrun: error: --min-delta requires --early-stopping

// The best checkpoint stays: with the highest gain it is the newest, with the lowest the first.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --checkpoint high --keep 1 --checkpoint-monitor gain
// RUN: ls high | FileCheck %s --check-prefix=HIGH
// HIGH-NOT: step-000000000002
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --checkpoint low --keep 1 --checkpoint-monitor gain:min
// RUN: ls low | FileCheck %s --check-prefix=LOW
// LOW: step-000000000002
// LOW: step-000000000008

// A folder of checkpoints and a file of each best epoch in the same run; weights alone have no optimizer's variables.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 3 --checkpoint both --epoch-file 'e-{epoch}.safetensors' --best-only --weights-only --checkpoint-monitor gain:min
// RUN: ls both e-*.safetensors | FileCheck %s --check-prefix=BOTH
// BOTH: e-1.safetensors
// BOTH-NOT: e-2
// BOTH: step-000000000006
// RUN: not grep -q sgd e-1.safetensors
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train m.mtp --data npy:x.npy,y.npy --epoch-file 'e-{epoch}.keras' --weights-only | FileCheck %s --check-prefix=WHOLE
// WHOLE: mtrun: error: {{.*}}found
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train m.mtp --data npy:x.npy,y.npy --checkpoint c --best-only | FileCheck %s --check-prefix=NONE
// NONE: mtrun: error: --best-only: expected a file per epoch (--epoch-file PATTERN), found none

// A name that is neither a folder's nor one of the two formats' is refused before anything is made.
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train m.mtp --data npy:x.npy,y.npy --checkpoint 'best-{loss:.2f}-{epoch:02d}.weights.h5' | FileCheck %s --check-prefix=FORMAT
// FORMAT: mtrun: error: expected a plan of a model of Keras 3, found one of MLIR text
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train m.mtp --data npy:x.npy,y.npy --checkpoint 'c-{epoch}' | FileCheck %s --check-prefix=BRACES
// BRACES: mtrun: error: expected a file name that ends with .safetensors (the variables), found c-{epoch}
// RUN: not ls 'best-{loss:.2f}-{epoch:02d}.weights.h5' 2> /dev/null

// The rate of the command line, once: resuming with the same words goes on with what the plateau left, another number
// is a new wish.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 3 --learning-rate 0.2 --plateau 2 --monitor gain:min --plateau-factor 0.5 --checkpoint rate --history rate
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 4 --learning-rate 0.2 --plateau 2 --monitor gain:min --plateau-factor 0.5 --checkpoint rate --history rate --resume auto
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 5 --learning-rate 0.4 --checkpoint rate --history rate --resume auto | FileCheck %s --check-prefix=RATE
// RATE: learning rate 0.4
// RUN: FileCheck %s --check-prefix=RATES < rate.csv
// RATES: epoch,loss,gain,learning_rate
// RATES: {{^}}3,{{.*}},0.2000000
// RATES: {{^}}4,{{.*}},0.1000000
// RATES: {{^}}5,{{.*}},0.4000000

// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --epochs 5 --checkpoint rate --history rate --resume auto | FileCheck %s --check-prefix=LEFT
// LEFT: nothing left to do: 5 of 5 epochs are done; --more-epochs N continues

// A training without validation in most epochs.
// RUN: mtrun train m.mtp --data npy:x.npy,y.npy --validation npy:x.npy,y.npy --validation-freq 2 --validation-steps 1 --initial-epoch 1 --epochs 3 --history v --save w.safetensors | FileCheck %s --check-prefix=FREQ
// FREQ: Epoch 2/3
// FREQ-NEXT: val_loss
// FREQ-NEXT: Epoch 3/3
// FREQ-NOT: val_loss
// RUN: FileCheck %s --check-prefix=VALUES < v.csv
// VALUES: epoch,loss,gain,val_loss,val_gain,learning_rate
// VALUES-NEXT: {{^}}2,{{.*}}
// VALUES-NEXT: {{^}}3,{{.*}},nan,nan,

mt.model @rising {
  %x = mt.input "x" : tensor<?x1xf32>
  %y = mt.target "y" : tensor<?x1xf32>
  %w = mt.variable "w" init(zeros) : tensor<1x1xf32>
  %p = mt.matmul %x, %w : tensor<?x1xf32>, tensor<1x1xf32>
  %e = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %e : tensor<?xf32>
  mt.metric "gain", %p better higher : tensor<?x1xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
