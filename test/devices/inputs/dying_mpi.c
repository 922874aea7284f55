/* SPDX-License-Identifier: Apache-2.0
 *
 * A library of MPI of MPICH's family that ends the process when it is started, as one of another version does. */
#include <stdlib.h>

int MPI_Init_thread(void) { exit(1); }

#define NOTHING(name)                                                                                                  \
  int name(void) { return 0; }
NOTHING(MPI_Allreduce)
NOTHING(MPI_Cancel)
NOTHING(MPI_Comm_dup)
NOTHING(MPI_Comm_free)
NOTHING(MPI_Comm_rank)
NOTHING(MPI_Comm_set_errhandler)
NOTHING(MPI_Comm_size)
NOTHING(MPI_Error_string)
NOTHING(MPI_Finalize)
NOTHING(MPI_Finalized)
NOTHING(MPI_Get_count)
NOTHING(MPI_Get_library_version)
NOTHING(MPI_Initialized)
NOTHING(MPI_Irecv)
NOTHING(MPI_Isend)
NOTHING(MPI_Query_thread)
NOTHING(MPI_Request_free)
NOTHING(MPI_Test)
