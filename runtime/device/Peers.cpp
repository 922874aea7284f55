// SPDX-License-Identifier: Apache-2.0
//
// Messages are a kind, four bytes of size, and the bytes: 'h' a process' number, number of processes, name and
// agreement; 's' shared bytes; 'e' the end in order, after so much work; 'x' the end of all: a digit, the error's code,
// and its text.
#include "runtime/device/Peers.h"

#include "runtime/device/Socket.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace mtrun {
namespace {

constexpr char greeting[] = "mtrun processes 1";
constexpr size_t headBytes = 5, mostBytes = size_t{1} << 20;
constexpr auto between = std::chrono::milliseconds(20);

std::string hello(const PeersOptions &options) {
  return std::string(greeting) + "\n" + std::to_string(options.process) + "\n" + options.name + "\n" +
         "processes: " + std::to_string(options.processes) + "\n" + options.agreement;
}

// The text up to the next line's end, which is taken from it.
std::string_view line(std::string_view &text) {
  size_t end = std::min(text.find('\n'), text.size());
  std::string_view first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

// The first line that differs; "" if none does.
std::string difference(std::string_view mine, std::string_view theirs) {
  while (!mine.empty() || !theirs.empty()) {
    std::string_view a = line(mine), b = line(theirs);
    if (a != b)
      return "expected " + std::string(a) + ", found " + std::string(b);
  }
  return "";
}

int millisecondsTo(std::chrono::steady_clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 100));
}

std::string seconds(double count) {
  char text[40];
  std::snprintf(text, sizeof text, "%g seconds", count);
  return text;
}

} // namespace

Status Peers::open(const PeersOptions &options, std::unique_ptr<Peers> &peers) {
  std::unique_ptr<Peers> made(new Peers(options));
  if (Status status = made->meet(); !status.ok())
    return status;
  peers = std::move(made);
  return {};
}

Peers::~Peers() {
  for (Connection &connection : connections_) {
    if (lost_.ok())
      (void)send(connection, 'e', std::to_string(done_));
    if (connection.socket >= 0)
      ::close(connection.socket);
  }
}

std::string Peers::title(int process) const {
  for (const Connection &connection : connections_)
    if (connection.process == process && !connection.name.empty())
      return "process " + std::to_string(process) + " (" + connection.name + ")";
  return "process " + std::to_string(process);
}

Status Peers::meet() {
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(options_.timeout, 1e6)));
  if (options_.process != 0)
    return connect(deadline);
  int listening = -1;
  if (Status status = listen(listening); !status.ok())
    return status;
  Status status = accept(listening, deadline);
  ::close(listening);
  return status;
}

Status Peers::listen(int &socket) {
  if (!options_.meeting.starts_with("fd:"))
    return listenAt(options_.meeting, socket);
  const char *end = options_.meeting.data() + options_.meeting.size();
  auto [stop, error] = std::from_chars(options_.meeting.data() + 3, end, socket);
  if (error != std::errc() || stop != end || socket < 0)
    return {MT_INVALID, "expected the number of a socket as fd:N, found " + options_.meeting};
  return {};
}

Status Peers::missing() const {
  std::string names;
  for (int process = 1; process < options_.processes; ++process)
    if (std::none_of(connections_.begin(), connections_.end(),
                     [&](const Connection &c) { return c.process == process; }))
      names += (names.empty() ? "" : ", ") + std::to_string(process);
  return {MT_LOST, "expected " + std::to_string(options_.processes) + " processes at " + options_.meeting + " within " +
                       seconds(options_.timeout) + ", found " + std::to_string(connections_.size() + 1) +
                       "; those that are missing: " + names};
}

// Of process 0. A connection that does not greet is none of ours.
Status Peers::accept(int listening, Clock::time_point deadline) {
  while (static_cast<int>(connections_.size()) + 1 < options_.processes) {
    pollfd waits = {listening, POLLIN, 0};
    if (poll(&waits, 1, millisecondsTo(deadline)) > 0) {
      int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      bool known = false;
      if (socket >= 0 && isOfThisUser(socket))
        if (Status status = greet(socket, std::min(deadline, Clock::now() + std::chrono::seconds(5)), known);
            !status.ok())
          return lose(status.message(), status.code());
      if (socket >= 0 && !known)
        ::close(socket);
    }
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

Status Peers::greet(int socket, Clock::time_point deadline, bool &known) {
  Connection made;
  made.socket = socket;
  while (made.shared.empty() && made.socket >= 0 && Clock::now() < deadline)
    receive(made, millisecondsTo(deadline));
  if (made.shared.empty() || made.socket < 0)
    return {};
  std::string greeted = std::move(made.shared[0]);
  std::string_view text = greeted;
  made.shared.clear(); // nothing follows before an answer
  if (line(text) != greeting)
    return {};
  std::string_view number = line(text);
  made.name = line(text);
  std::from_chars(number.data(), number.data() + number.size(), made.process);
  known = true;
  std::string who = "process " + std::to_string(made.process) + " (" + made.name + ")";
  bool twice =
      made.process < 1 || made.process >= options_.processes ||
      std::any_of(
          connections_.begin(), connections_.end(), [&](const Connection &c) { return c.process == made.process; });
  std::string own = hello(options_);
  std::string_view mine = own;
  for (int skipped = 0; skipped < 3; ++skipped)
    line(mine);
  std::string differs = difference(mine, text);
  if (twice && differs.empty())
    differs = "expected each of processes 1 to " + std::to_string(options_.processes - 1) + " once, found it " +
              (made.process < options_.processes ? "again" : "too");
  connections_.push_back(std::move(made));
  return differs.empty() ? Status() : Status(MT_INVALID, who + ": " + differs);
}

Status Peers::connect(Clock::time_point deadline) {
  Connection made;
  Clock::time_point limit = deadline + std::chrono::seconds(1); // what process 0 says is better than what we know
  while (made.socket < 0) {
    if (Status status = connectTo(options_.meeting, made.socket); !status.ok())
      return status;
    if (made.socket >= 0 && !isOfThisUser(made.socket)) {
      ::close(made.socket);
      return {MT_INVALID, "expected process 0 at " + options_.meeting + ", found another user's"};
    }
    if (made.socket < 0 && Clock::now() >= deadline)
      return {MT_LOST,
              "expected process 0 at " + options_.meeting + " within " + seconds(options_.timeout) + ", found nobody"};
    if (made.socket < 0)
      std::this_thread::sleep_for(between);
  }
  connections_.push_back(std::move(made));
  Connection &first = connections_[0];
  if (Status status = send(first, 'h', hello(options_)); !status.ok())
    return status;
  while (first.shared.empty()) {
    if (Status status = check(); !status.ok())
      return status;
    if (Clock::now() >= limit)
      return lose("expected process 0 to answer within " + seconds(options_.timeout) + ", found nothing");
    receive(first, millisecondsTo(limit));
  }
  first.name = first.shared[0];
  first.shared.erase(first.shared.begin());
  return {};
}

Status Peers::send(Connection &to, char kind, std::string_view bytes) {
  std::string message(1, kind);
  auto size = static_cast<uint32_t>(bytes.size());
  message.append(reinterpret_cast<const char *>(&size), sizeof size).append(bytes);
  // Messages are few and small: the system takes each at once.
  for (size_t sent = 0; sent < message.size();) {
    ssize_t count = ::send(to.socket, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return {MT_LOST, title(to.process) + " was lost: " + std::strerror(errno)};
    sent += static_cast<size_t>(count);
  }
  return {};
}

void Peers::receive(Connection &from, int milliseconds) {
  pollfd waits = {from.socket, POLLIN, 0};
  char room[4096];
  while (from.socket >= 0 && poll(&waits, 1, milliseconds) > 0) {
    ssize_t count = recv(from.socket, room, sizeof room, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    if (count <= 0) {
      ::close(from.socket);
      from.socket = -1;
      break;
    }
    from.received.append(room, static_cast<size_t>(count));
    milliseconds = 0;
  }
  while (from.received.size() >= headBytes) {
    uint32_t size = 0;
    std::memcpy(&size, from.received.data() + 1, sizeof size);
    if (size > mostBytes) { // none of our messages
      if (from.socket >= 0)
        ::close(from.socket);
      from.socket = -1;
      from.received.clear();
    }
    if (from.received.size() < headBytes + size)
      break;
    std::string bytes = from.received.substr(headBytes, size);
    switch (from.received[0]) {
    case 'e':
      from.ended = true;
      std::from_chars(bytes.data(), bytes.data() + bytes.size(), from.after);
      break;
    case 'x':
      if (lost_.ok() && !bytes.empty())
        lost_ = {static_cast<mt_code>(bytes[0] - '0'), bytes.substr(1)};
      break;
    default:
      from.shared.push_back(std::move(bytes));
    }
    from.received.erase(0, headBytes + size);
  }
}

// Process 0 tells all others.
Status Peers::lose(std::string message, mt_code code) {
  if (!lost_.ok())
    return lost_;
  lost_ = {code, std::move(message)};
  for (Connection &connection : connections_)
    if (options_.process == 0 && connection.socket >= 0)
      (void)send(connection, 'x', static_cast<char>('0' + code) + lost_.message());
  return lost_;
}

Status Peers::check() {
  for (Connection &connection : connections_) {
    if (!lost_.ok())
      return lost_;
    receive(connection, 0);
    if (lost_.ok() && connection.ended && connection.after < begun_)
      return lose(title(connection.process) + " ended while the others went on");
    if (lost_.ok() && connection.socket < 0 && !connection.ended)
      return lose(title(connection.process) + " was lost");
  }
  return lost_;
}

Status Peers::share(std::string &bytes) {
  begin();
  if (Status status = check(); !status.ok())
    return status;
  if (options_.process == 0) {
    for (Connection &connection : connections_)
      if (Status status = send(connection, 's', bytes); !status.ok())
        return lose(status.message());
    end();
    return {};
  }
  Connection &first = connections_[0];
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(options_.timeout, 1e6)));
  while (first.shared.empty()) {
    receive(first, millisecondsTo(deadline));
    if (!first.shared.empty())
      break;
    if (Status status = check(); !status.ok())
      return status;
    if (Clock::now() >= deadline)
      return lose(title(0) + " said nothing for " + seconds(options_.timeout));
  }
  bytes = first.shared.front();
  first.shared.erase(first.shared.begin());
  end();
  return {};
}

} // namespace mtrun
