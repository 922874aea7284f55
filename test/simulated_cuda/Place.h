// SPDX-License-Identifier: Apache-2.0
//
// Where a fiber stopped. On x86-64 a switch takes a few instructions: one through the system costs a hundred times
// more, and kernels meet at barriers in their innermost loops.
#ifndef TEST_SIMULATED_CUDA_PLACE_H
#define TEST_SIMULATED_CUDA_PLACE_H

#include <cstddef>

#if defined(__x86_64__)
// Each file that includes this one has a function of its own.
extern "C" void mt_simulated_switch(void **from, void *to);
asm(R"(
.text
.type mt_simulated_switch, @function
mt_simulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mt_simulated_switch, .-mt_simulated_switch
)");
#else
#include <ucontext.h>
#endif

namespace simulated {

class Place {
public:
  // At the beginning of `enter`, which never returns, with a stack of `bytes` from `bottom`, multiples of 16.
  void begin(std::byte *bottom, size_t bytes, void (*enter)()) {
#if defined(__x86_64__)
    auto *top = reinterpret_cast<void **>(bottom + bytes) - 2; // as after a call: 8 past a multiple of 16
    top[0] = reinterpret_cast<void *>(enter);
    top[1] = nullptr;
    stack = top - 6; // registers
#else
    getcontext(&context);
    context.uc_stack = {bottom, 0, bytes};
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
#endif
  }
  // Stops here, and goes on at the other place.
  void goTo(Place &other) {
#if defined(__x86_64__)
    mt_simulated_switch(&stack, other.stack);
#else
    swapcontext(&context, &other.context);
#endif
  }

private:
#if defined(__x86_64__)
  void *stack = nullptr;
#else
  ucontext_t context = {};
#endif
};

} // namespace simulated

#endif
