// SPDX-License-Identifier: Apache-2.0
//
// Connects the processes of a session. Each process connects to process 0, completes the handshake (greeting.h), sends
// 'h' with its number, device and settings, and receives the name of process 0 when all are connected. Process 0
// handles all connections concurrently: a connection that sends nothing or invalid data uses a descriptor until its
// timeout, and delays no process of the run. Its data is neither interpreted nor printed.
#include "runtime/device/ProcessGroup.h"

#include "runtime/support/secret.h"
#include "runtime/support/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto between = 20ms; // interval between attempts to connect
// timeout of an unidentified connection, and of retries after process 0 refused the secret
constexpr auto shortly = 3s;
constexpr size_t maxStrangers = 128; // above this number and that of processes the oldest connection is closed
constexpr size_t minSecretBytes = 16;

bool sendNow(int socket, const std::string &bytes) {
  return bytes.empty() ||
         ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

// Reads no more than the bytes of the handshake. Returns false if the connection has ended.
bool receiveGreeting(int socket, Greeting &greeting) {
  std::array<char, responseBytes> room;
  ssize_t count = recv(socket, room.data(), std::min(room.size(), greeting.wanted()), MSG_DONTWAIT);
  if (count < 0)
    return errno == EAGAIN || errno == EINTR;
  greeting.take({room.data(), static_cast<size_t>(count)});
  return count > 0 && greeting.state() != Greeting::State::Refused && sendNow(socket, greeting.answer());
}

} // namespace

std::string ProcessGroup::agreement() const {
  return "processes: " + std::to_string(options_.processes) + "\n" + options_.agreement;
}

Status ProcessGroup::connectAll() {
  if (options_.secret.empty() ? options_.rendezvous.starts_with("tcp:") : options_.secret.size() < minSecretBytes)
    return {MT_INVALID, "expected a secret of at least " + std::to_string(minSecretBytes) +
                            " bytes, the same in all processes, for the rendezvous " + options_.rendezvous +
                            " (MTC_SECRET in the environment; openssl rand -hex 16 makes one), found " +
                            (options_.secret.empty() ? "none" : std::to_string(options_.secret.size()) + " bytes")};
  auto deadline = limit();
  if (options_.process != 0)
    return connect(deadline);
  if (Status status = raiseLimit(); !status.ok())
    return status;
  int listening = -1;
  if (Status status = listen(listening); !status.ok())
    return status;
  Status status = accept(listening, deadline);
  ::close(listening);
  for (Stranger &stranger : strangers_)
    if (stranger.socket >= 0)
      ::close(stranger.socket);
  strangers_.clear();
  return status;
}

// Process 0 has a descriptor per process, and some for strangers. A soft limit that is too low is raised.
Status ProcessGroup::raiseLimit() const {
  constexpr rlim_t others = 64; // files, libraries, MPI, and the first strangers
  const rlim_t needed = static_cast<rlim_t>(options_.processes) + others;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed + maxStrangers)
    return {};
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, needed + maxStrangers));
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return {};
  return {MT_INVALID, "expected " + std::to_string(needed) + " open files for the connections of " +
                          std::to_string(options_.processes) + " processes, found a limit of " +
                          std::to_string(limit.rlim_cur) + " for process 0; raise it with: ulimit -n " +
                          std::to_string(needed)};
}

Status ProcessGroup::listen(int &socket) {
  if (!options_.rendezvous.starts_with("fd:")) {
    Status status = listenAt(options_.rendezvous, socket);
    if (status.ok())
      neverWait(socket);
    return status;
  }
  const char *end = options_.rendezvous.data() + options_.rendezvous.size();
  auto [stop, error] = std::from_chars(options_.rendezvous.data() + 3, end, socket);
  if (error != std::errc() || stop != end || socket < 0)
    return {MT_INVALID, "expected the number of a socket as fd:N, found " + options_.rendezvous};
  neverWait(socket);
  return {};
}

Status ProcessGroup::missing() const {
  std::string names;
  for (int process = 1; process < options_.processes; ++process)
    if (std::none_of(connections_.begin(), connections_.end(),
                     [&](const Connection &c) { return c.process == process; }))
      names += (names.empty() ? "" : ", ") + std::to_string(process);
  std::string others = refused_ == 0   ? ""
                       : refused_ == 1 ? "; 1 connection did not know the secret"
                                       : "; " + std::to_string(refused_) + " connections did not know the secret";
  return {MT_LOST, "expected " + std::to_string(options_.processes) + " processes at " + options_.rendezvous +
                       " within " + patience() + ", found " + std::to_string(connections_.size() + 1) +
                       "; missing processes: " + names + others};
}

Status ProcessGroup::accept(int listening, Clock::time_point deadline) {
  while (static_cast<int>(connections_.size()) + 1 < options_.processes) {
    std::vector<pollfd> waits = {{listening, POLLIN, 0}};
    for (const Stranger &stranger : strangers_)
      waits.push_back({stranger.socket, POLLIN, 0});
    bool some = poll(waits.data(), waits.size(), millisecondsTo(deadline)) > 0;
    for (size_t i = 0; some && i < strangers_.size(); ++i)
      if (waits[i + 1].revents)
        if (Status status = readStranger(strangers_[i]); !status.ok())
          return lose(status.message(), status.code());
    for (Stranger &stranger : strangers_)
      if (stranger.socket >= 0 && Clock::now() >= stranger.until) {
        ::close(stranger.socket);
        stranger.socket = -1;
      }
    std::erase_if(strangers_, [](const Stranger &stranger) { return stranger.socket < 0; });
    if (some && waits[0].revents)
      if (Status status = welcome(listening); !status.ok())
        return lose(status.message(), status.code());
    for (Connection &connection : connections_)
      receive(connection);
    if (Status status = check(); !status.ok())
      return status;
    if (Clock::now() >= deadline)
      return lose(missing().message());
  }
  for (Connection &connection : connections_)
    if (Status status = send(connection, 'h', options_.name); !status.ok())
      return status;
  return {};
}

// Accepts all waiting connections.
Status ProcessGroup::welcome(int listening) {
  for (size_t turn = 0; turn < maxStrangers; ++turn) {
    int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0)
      return {};
    if (!isOfThisUser(socket)) {
      ::close(socket);
      continue;
    }
    std::string nonce;
    if (Status status = randomBytes(nonceBytes, nonce); !status.ok()) {
      ::close(socket);
      return status;
    }
    if (strangers_.size() >= maxStrangers + static_cast<size_t>(options_.processes)) {
      auto oldest = std::find_if(strangers_.begin(), strangers_.end(),
                                 [](const Stranger &each) { return each.greeting.state() != Greeting::State::Known; });
      if (oldest != strangers_.end()) {
        ::close(oldest->socket);
        strangers_.erase(oldest);
      }
    }
    Stranger &stranger =
        strangers_.emplace_back(Stranger{socket, Greeting(true, options_.secret, nonce), {}, Clock::now() + shortly});
    if (!sendNow(socket, stranger.greeting.answer())) {
      ::close(socket);
      strangers_.pop_back();
    }
  }
  return {};
}

// Handles data of an unidentified connection. An error: it knows the secret but is not a process of this run, or has
// other settings.
Status ProcessGroup::readStranger(Stranger &stranger) {
  bool known = stranger.greeting.state() == Greeting::State::Known, good = true;
  std::vector<Message> messages;
  if (!known) {
    good = receiveGreeting(stranger.socket, stranger.greeting);
    refused_ += stranger.greeting.state() == Greeting::State::Refused;
    if (stranger.greeting.state() == Greeting::State::Known) // a process of the run: no timeout
      stranger.until = Clock::time_point::max();
  } else {
    std::array<char, 4096> room;
    ssize_t count = recv(stranger.socket, room.data(), room.size(), MSG_DONTWAIT);
    good = count > 0 ? stranger.connection.reader.take({room.data(), static_cast<size_t>(count)}, messages)
                     : count < 0 && (errno == EAGAIN || errno == EINTR);
  }
  Status status;
  if (good && !messages.empty()) {
    stranger.connection.socket = std::exchange(stranger.socket, -1);
    status = admit(stranger.connection, messages[0]);
    for (size_t i = 1; i < messages.size() && status.ok(); ++i)
      take(connections_.back(), messages[i]);
  }
  if (!good) {
    ::close(stranger.socket);
    stranger.socket = -1;
  }
  return status;
}

Status ProcessGroup::admit(Connection &connection, const Message &message) {
  Hello hello;
  bool understood = message.kind == 'h' && parseHello(message.bytes, hello);
  connection.process = hello.process;
  connection.name = hello.name;
  std::string who = "process " + std::to_string(connection.process) + " (" + connection.name + ")";
  bool twice = connection.process < 1 || connection.process >= options_.processes ||
               std::any_of(
                   connections_.begin(), connections_.end(),
                   [&](const Connection &c) { return c.process == connection.process; });
  connections_.push_back(std::move(connection)); // added first, so that the process receives the error too
  if (!understood)
    return {MT_INVALID, "expected a process at " + options_.rendezvous + " to identify itself, found other bytes"};
  std::string differs = difference(agreement(), hello.agreement);
  if (twice && differs.empty())
    differs = "expected each of processes 1 to " + std::to_string(options_.processes - 1) + " once, found it " +
              (hello.process < options_.processes ? "again" : "too");
  return differs.empty() ? Status() : Status(MT_INVALID, who + ": " + differs);
}

// Connects and completes the handshake. `socket` is -1 if process 0 is not listening yet.
Status ProcessGroup::greet(Clock::time_point deadline, int &socket) {
  if (Status status = connectTo(options_.rendezvous, millisecondsTo(deadline), socket); !status.ok() || socket < 0)
    return status;
  std::string nonce;
  Status status = isOfThisUser(socket)
                      ? randomBytes(nonceBytes, nonce)
                      : Status(MT_INVALID, "expected process 0 at " + options_.rendezvous + ", found another user's");
  Greeting greeting(false, options_.secret, nonce);
  bool open = true;
  while (status.ok() && open && greeting.state() == Greeting::State::Waits && Clock::now() < deadline) {
    pollfd waits = {socket, POLLIN, 0};
    if (poll(&waits, 1, millisecondsTo(deadline)) > 0)
      open = receiveGreeting(socket, greeting);
  }
  if (status.ok() && greeting.state() == Greeting::State::Known)
    return {};
  if (status.ok() && greeting.state() == Greeting::State::Refused)
    status = {MT_INVALID,
              "expected process 0 at " + options_.rendezvous + ", found a process that does not know the secret"};
  else if (status.ok() && !open && !greeting.challenged())
    status = {MT_LOST, "process 0 was lost"};
  else if (status.ok() && !open)
    ++refused_;
  ::close(socket);
  socket = -1;
  return status;
}

Status ProcessGroup::connect(Clock::time_point deadline) {
  Connection connection;
  Clock::time_point limit = deadline + 1s; // wait longer than process 0, whose error message is more precise
  Clock::time_point refusedFirst = Clock::time_point::max();
  while (connection.socket < 0) {
    if (Status status = greet(limit, connection.socket); !status.ok())
      return status;
    if (connection.socket < 0 && refused_ == 1)
      refusedFirst = std::min(refusedFirst, Clock::now());
    if (connection.socket < 0 && refused_ > 0 && Clock::now() - refusedFirst >= shortly)
      return {MT_INVALID, "expected process 0 at " + options_.rendezvous +
                              " to know this process by its secret (MTC_SECRET), found that it closes the connection"};
    if (connection.socket < 0 && Clock::now() >= deadline)
      return {MT_LOST, "expected process 0 at " + options_.rendezvous + " within " + patience() + ", found no process"};
    if (connection.socket < 0)
      std::this_thread::sleep_for(between);
  }
  connections_.push_back(std::move(connection));
  Connection &first = connections_[0];
  if (Status status = send(first, 'h', helloBytes({options_.process, options_.name, agreement()})); !status.ok())
    return status;
  while (!first.answered) {
    if (Status status = check(); !status.ok())
      return status;
    if (Clock::now() >= limit)
      return lose("expected process 0 to answer within " + patience() + ", found nothing");
    pollfd waits = {first.socket, POLLIN, 0};
    if (poll(&waits, 1, millisecondsTo(limit)) > 0)
      receive(first);
  }
  return {};
}

} // namespace mtrun
