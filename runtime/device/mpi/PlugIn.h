/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of libmtrun_mpi_openmpi.so, libmtrun_mpi_mpich.so and libmtrun_mpi_standard.so for libmtrun of the same
 * build: point-to-point messages of MPI as plain functions. The libraries are one source compiled with different
 * headers of MPI, whose types and constants differ. They are linked to no library of MPI: libmtrun opens one first. All
 * functions return 0 or an error code of MPI. */
#ifndef MTRUN_MPI_PLUG_IN_H
#define MTRUN_MPI_PLUG_IN_H

#include "runtime/abi/mt.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mtrun_mpi_functions {
  const char *build; /* must be equal in both libraries */
  /* Starts MPI, unless the program has started it. `provided`: 1 if any one thread at a time may call MPI, 0 if only
   * the main thread may. */
  int (*start)(int *process, int *processes, int *provided);
  int (*send)(int peer, int tag, const void *data, int bytes, int *request);
  int (*receive)(int peer, int tag, void *data, int bytes, int *request);
  /* `done`: the message has ended and the request is free; `bytes`: the size of a received message. */
  int (*test)(int request, int *done, int *bytes);
  void (*abandon)(void); /* ends all requests */
  /* MPI_Allreduce, which adds in an order of its own. Only benchmarks call it, to compare. */
  int (*all_reduce)(const float *from, float *to, int elements);
  /* Ends MPI, if start() has started it. All processes must call it. */
  void (*finish)(void);
  void (*describe)(int error, char *text, size_t room);
  void (*version)(char *text, size_t room); /* the library and its version */
} mtrun_mpi_functions;

MT_API const mtrun_mpi_functions *mtrun_mpi_plug_in(void);

#ifdef __cplusplus
}
#endif

#endif
