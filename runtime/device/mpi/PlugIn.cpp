// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/mpi/PlugIn.h"

#include <algorithm>
#include <cstring>
#ifdef MTRUN_MPI_STANDARD
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <vector>

namespace {

MPI_Comm world = MPI_COMM_NULL; // a copy of MPI's, so that messages of the program itself do not interfere
bool startedHere = false;
std::vector<MPI_Request> requests; // by number; MPI_REQUEST_NULL: free

int start(int *process, int *processes, int *provided) {
  int level = MPI_THREAD_SINGLE, started = 0;
  if (int error = MPI_Initialized(&started); error != MPI_SUCCESS)
    return error;
  if (!started) {
    if (int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level); error != MPI_SUCCESS)
      return error;
    startedHere = true;
  } else if (int error = MPI_Query_thread(&level); error != MPI_SUCCESS) {
    return error;
  }
  *provided = level >= MPI_THREAD_SERIALIZED;
  if (world == MPI_COMM_NULL)
    if (int error = MPI_Comm_dup(MPI_COMM_WORLD, &world); error != MPI_SUCCESS)
      return error;
  // Errors are returned; MPI's default is to end the process.
  if (int error = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN); error != MPI_SUCCESS)
    return error;
  if (int error = MPI_Comm_rank(world, process); error != MPI_SUCCESS)
    return error;
  return MPI_Comm_size(world, processes);
}

// Returns the number of a free request.
int freeRequest() {
  auto at = std::find(requests.begin(), requests.end(), MPI_REQUEST_NULL);
  if (at == requests.end())
    at = requests.insert(at, MPI_REQUEST_NULL);
  return static_cast<int>(at - requests.begin());
}

int send(int peer, int tag, const void *data, int bytes, int *request) {
  *request = freeRequest();
  return MPI_Isend(data, bytes, MPI_BYTE, peer, tag, world, &requests[static_cast<size_t>(*request)]);
}

int receive(int peer, int tag, void *data, int bytes, int *request) {
  *request = freeRequest();
  return MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, world, &requests[static_cast<size_t>(*request)]);
}

// MPI_Test() makes a request that has ended MPI_REQUEST_NULL.
int test(int request, int *done, int *bytes) {
  MPI_Status status;
  std::memset(&status, 0, sizeof status); // MPI leaves fields unset for messages that are sent
  if (int error = MPI_Test(&requests[static_cast<size_t>(request)], done, &status); error != MPI_SUCCESS)
    return error;
  return *done ? MPI_Get_count(&status, MPI_BYTE, bytes) : MPI_SUCCESS;
}

void abandon() {
  for (MPI_Request &request : requests)
    if (request != MPI_REQUEST_NULL) {
      (void)MPI_Cancel(&request);
      (void)MPI_Request_free(&request);
      request = MPI_REQUEST_NULL;
    }
}

int allReduce(const float *from, float *to, int elements) {
  return MPI_Allreduce(from, to, elements, MPI_FLOAT, MPI_SUM, world);
}

void finish() {
  int ended = 0;
  if (startedHere && MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
    (void)MPI_Comm_free(&world);
    (void)MPI_Finalize();
  }
}

void describe(int error, char *text, size_t room) {
  char message[MPI_MAX_ERROR_STRING + 1] = "";
  int size = 0;
  (void)MPI_Error_string(error, message, &size);
  std::strncpy(text, message, room - 1);
  text[room - 1] = '\0';
}

void version(char *text, size_t room) {
  char message[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int size = 0;
  (void)MPI_Get_library_version(message, &size);
  std::strncpy(text, message, room - 1);
  text[room - 1] = '\0';
  text[std::strcspn(text, ",\n")] = '\0'; // what follows tells how the library was built
  std::replace(text, text + std::strlen(text), '\t', ' ');
}

} // namespace

const mtrun_mpi_functions *mtrun_mpi_plug_in() {
  static const mtrun_mpi_functions functions = {MTRUN_BUILD, start,     send,   receive,  test,
                                                abandon,     allReduce, finish, describe, version};
  return &functions;
}
