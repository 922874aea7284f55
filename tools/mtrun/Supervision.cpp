// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Supervision.h"

#include "runtime/abi/mtrun.h"
#include "runtime/support/blocked_signals.h"
#include "runtime/support/launcher.h"
#include "runtime/support/secret.h"
#include "runtime/support/socket.h"
#include "tools/mtrun/Run.h"
#include "tools/mtrun/Worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace mtrun_tool {
namespace {

constexpr size_t secretBytes = 16, nameBytes = 8, maxCallers = 64;
constexpr int reachMilliseconds = 5000;
constexpr char stopKind = 't';

std::string drawn(size_t bytes) {
  std::string text;
  if (mtrun::Status status = mtrun::randomBytes(bytes, text); !status.ok())
    throw Failure{status.code(), status.message()};
  return text;
}

bool sendAll(int socket, const std::string &bytes) {
  return bytes.empty() ||
         ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Reads what the greeting wants. Returns false if the connection has ended, or the other does not know the secret.
bool receiveGreeting(int socket, mtrun::Greeting &greeting) {
  std::array<char, mtrun::responseBytes> room;
  ssize_t count = recv(socket, room.data(), std::min(room.size(), greeting.wanted()), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return true;
  if (count <= 0)
    return false;
  greeting.take({room.data(), static_cast<size_t>(count)});
  return greeting.state() != mtrun::Greeting::State::Refused && sendAll(socket, greeting.answer());
}

// Returns a connection to the supervisor; -1 if there is none.
int reach(const std::string &secret, const std::vector<std::string> &places) {
  for (const std::string &place : places) {
    int socket = -1;
    if (!mtrun::connectTo(place, reachMilliseconds, socket).ok() || socket < 0)
      continue;
    mtrun::Greeting greeting(false, secret, drawn(mtrun::nonceBytes));
    bool good = mtrun::isOfThisUser(socket);
    while (good && greeting.state() == mtrun::Greeting::State::Waits) {
      pollfd waits = {socket, POLLIN, 0};
      good = poll(&waits, 1, reachMilliseconds) > 0 && receiveGreeting(socket, greeting);
    }
    if (good)
      return socket;
    close(socket);
  }
  return -1;
}

// Waits for a request of the supervisor.
void obey(int socket) {
  mtrun::MessageReader reader;
  for (std::array<char, 64> room;;) {
    pollfd waits = {socket, POLLIN, 0};
    (void)poll(&waits, 1, -1);
    ssize_t count = recv(socket, room.data(), room.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    std::vector<mtrun::Message> messages;
    if (count <= 0 || !reader.take({room.data(), static_cast<size_t>(count)}, messages))
      return;
    for (const mtrun::Message &message : messages)
      if (message.kind == stopKind)
        kill(getpid(), stopSignal);
  }
}

} // namespace

SupervisorPort::SupervisorPort()
    : name_(mtrun::hexadecimal(drawn(nameBytes))), secret_(mtrun::hexadecimal(drawn(secretBytes))) {
  int socket = -1;
  std::string local = "unix:mtrun-supervisor-" + name_;
  if (mtrun::Status status = mtrun::listenAt(local, socket); !status.ok())
    throw Failure{status.code(), status.message()};
  listening_.push_back(socket);
  places_ = " " + local;
  if (mtrun::listenAt("tcp:[::]:0", socket).ok() || mtrun::listenAt("tcp:0.0.0.0:0", socket).ok()) {
    listening_.push_back(socket);
    for (const std::string &address : mtrun::hostAddresses())
      places_ += " tcp:" + address + ":" + std::to_string(mtrun::portOf(socket));
  }
  for (int each : listening_)
    mtrun::neverWait(each);
}

SupervisorPort::~SupervisorPort() {
  for (int socket : sockets())
    close(socket);
}

std::string SupervisorPort::variable() const { return name_ + " " + secret_ + places_; }

std::vector<int> SupervisorPort::sockets() const {
  std::vector<int> all = listening_;
  for (const Caller &caller : callers_)
    all.push_back(caller.socket);
  return all;
}

void SupervisorPort::greet(Caller &caller) {
  bool known = caller.greeting.state() == mtrun::Greeting::State::Known;
  char end;
  bool good = known ? recv(caller.socket, &end, 1, 0) != 0 : receiveGreeting(caller.socket, caller.greeting);
  if (good)
    return;
  close(caller.socket);
  caller.socket = -1;
}

void SupervisorPort::serve() {
  for (int listening : listening_)
    for (int socket; (socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      if (!mtrun::isOfThisUser(socket) || callers_.size() >= maxCallers) {
        close(socket);
        continue;
      }
      Caller &caller = callers_.emplace_back(Caller{socket, mtrun::Greeting(true, secret_, drawn(mtrun::nonceBytes))});
      (void)sendAll(socket, caller.greeting.answer());
    }
  for (Caller &caller : callers_)
    greet(caller);
  std::erase_if(callers_, [](const Caller &caller) { return caller.socket < 0; });
  wasConnected_ = wasConnected_ || isConnected();
  if (stops_)
    stop();
}

bool SupervisorPort::isConnected() const {
  return std::any_of(callers_.begin(), callers_.end(),
                     [](const Caller &caller) { return caller.greeting.state() == mtrun::Greeting::State::Known; });
}

void SupervisorPort::stop() {
  stops_ = true;
  for (Caller &caller : callers_)
    if (caller.greeting.state() == mtrun::Greeting::State::Known && !caller.asked)
      caller.asked = sendAll(caller.socket, mtrun::messageBytes(stopKind, ""));
}

void obeySupervisor() {
  const char *text = mtrun::environmentVariable(mtrun::supervisorVariable);
  std::istringstream stream(text ? text : "");
  std::string name, secret;
  std::vector<std::string> places;
  if (!(stream >> name >> secret))
    return;
  for (std::string place; stream >> place;)
    places.push_back(place);
  mtrun::BlockedSignals blocked;
  std::thread([secret, places] {
    if (int socket = reach(secret, places); socket >= 0)
      obey(socket);
  }).detach();
}

} // namespace mtrun_tool
