// SPDX-License-Identifier: Apache-2.0
//
// Messages between connected processes: 's': broadcast bytes; 'e': normal end, with the number of completed pieces of
// work; 'a': all processes have ended normally; 'x': the run ends with an error: a digit for its code, and its text.
// Rendezvous.cpp connects the processes.
#include "runtime/device/ProcessGroup.h"

#include "runtime/device/Socket.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mtrun {
Status ProcessGroup::open(const ProcessGroupOptions &options, std::unique_ptr<ProcessGroup> &processGroup) {
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(options));
  if (Status status = group->connectAll(); !status.ok())
    return status;
  processGroup = std::move(group);
  return {};
}

ProcessGroup::~ProcessGroup() {
  for (Connection &connection : connections_) {
    if (lost_.ok() && !left_)
      (void)send(connection, 'e', std::to_string(done_));
    if (connection.socket >= 0)
      ::close(connection.socket);
  }
}

std::string ProcessGroup::patience() const {
  char text[40];
  std::snprintf(text, sizeof text, "%g seconds", options_.timeout);
  return text;
}

std::string ProcessGroup::title(int process) const {
  for (const Connection &connection : connections_)
    if (connection.process == process && !connection.name.empty())
      return "process " + std::to_string(process) + " (" + connection.name + ")";
  return "process " + std::to_string(process);
}

Status ProcessGroup::send(Connection &to, char kind, std::string_view bytes) {
  std::string message = messageBytes(kind, bytes);
  // messages are few and small, so the system accepts each at once
  auto deadline = Clock::now() + std::chrono::seconds(10);
  for (size_t sent = 0; sent < message.size();) {
    ssize_t count = ::send(to.socket, message.data() + sent, message.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    int reason = errno;
    pollfd waits = {to.socket, POLLOUT, 0};
    bool again = reason == EINTR || (reason == EAGAIN && Clock::now() < deadline);
    if (!again)
      return {MT_LOST, title(to.process) + " was lost: " + std::strerror(reason)};
    (void)poll(&waits, 1, millisecondsTo(deadline));
  }
  return {};
}

void ProcessGroup::take(Connection &from, const Message &message) {
  const std::string &bytes = message.bytes;
  switch (message.kind) {
  case 'h': // from process 0: all processes are connected
    if (options_.process != 0 && !from.answered)
      from.name = printable(bytes);
    from.answered = true;
    break;
  case 'e':
    from.ended = true;
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), from.after);
    break;
  case 'a':
    from.allEnded = true;
    break;
  case 'x':
    if (lost_.ok() && !bytes.empty()) {
      bool known = bytes[0] > '0' + MT_OK && bytes[0] <= '0' + MT_LOST;
      mt_code code = known ? static_cast<mt_code>(bytes[0] - '0') : MT_LOST;
      std::string text = printable(std::string_view(bytes).substr(1));
      if (options_.process == 0)
        (void)lose(title(from.process) + ": " + text, code);
      else
        lost_ = {code, text};
    }
    break;
  case 's':
    from.shared.push_back(bytes);
    break;
  }
}

void ProcessGroup::receive(Connection &from, int milliseconds) {
  pollfd waits = {from.socket, POLLIN, 0};
  char room[4096];
  constexpr int most = 64; // limit per call, so that other connections and deadlines are handled too
  for (int turn = 0; turn < most && from.socket >= 0 && poll(&waits, 1, milliseconds) > 0; ++turn) {
    ssize_t count = recv(from.socket, room, sizeof room, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    std::vector<Message> messages;
    bool good = count > 0 && from.reader.take({room, static_cast<size_t>(count)}, messages);
    for (const Message &message : messages)
      take(from, message);
    if (!good) { // the connection is closed, or the bytes are not a valid message
      ::close(from.socket);
      from.socket = -1;
    }
    milliseconds = 0;
  }
}

Status ProcessGroup::lose(std::string message, mt_code code) {
  if (!lost_.ok())
    return lost_;
  lost_ = {code, std::move(message)};
  for (Connection &connection : connections_)
    if (connection.socket >= 0)
      (void)send(connection, 'x', static_cast<char>('0' + code) + lost_.message());
  return lost_;
}

Status ProcessGroup::check() {
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

// Waits for the next broadcast message of a process.
Status ProcessGroup::waitForBroadcast(Connection &from, std::string &bytes) {
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(options_.timeout, 1e6)));
  while (from.shared.empty()) {
    receive(from, millisecondsTo(deadline));
    if (!from.shared.empty())
      break;
    if (Status status = check(); !status.ok())
      return status;
    if (Clock::now() >= deadline)
      return lose(title(from.process) + " sent nothing for " + patience());
  }
  bytes = from.shared.front();
  from.shared.erase(from.shared.begin());
  return {};
}

Status ProcessGroup::broadcast(std::string &bytes) {
  begin();
  if (Status status = check(); !status.ok())
    return status;
  if (options_.process == 0) {
    for (Connection &connection : connections_)
      if (Status status = send(connection, 's', bytes); !status.ok())
        return lose(status.message());
  } else if (Status status = waitForBroadcast(connections_[0], bytes); !status.ok()) {
    return status;
  }
  end();
  return {};
}

Status ProcessGroup::gather(const std::string &own, std::vector<std::string> &all) {
  begin();
  if (Status status = check(); !status.ok())
    return status;
  all.clear();
  if (options_.process != 0) {
    if (Status status = send(connections_[0], 's', own); !status.ok())
      return lose(status.message());
    end();
    return {};
  }
  all.resize(static_cast<size_t>(options_.processes));
  all[0] = own;
  for (Connection &connection : connections_)
    if (Status status = waitForBroadcast(connection, all[static_cast<size_t>(connection.process)]); !status.ok())
      return status;
  end();
  return {};
}

bool ProcessGroup::waitFor(Connection &from, const bool &happened) {
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(options_.timeout, 1e6)));
  while (!happened && lost_.ok() && from.socket >= 0 && Clock::now() < deadline)
    receive(from, millisecondsTo(deadline));
  return happened && lost_.ok();
}

bool ProcessGroup::leave() {
  if (!lost_.ok() || left_)
    return false;
  left_ = true;
  bool all = true;
  for (Connection &connection : connections_)
    all = send(connection, 'e', std::to_string(done_)).ok() && all;
  if (options_.process != 0)
    return all && waitFor(connections_[0], connections_[0].allEnded);
  for (Connection &connection : connections_)
    all = all && waitFor(connection, connection.ended) && connection.after == done_;
  for (Connection &connection : connections_)
    if (connection.socket >= 0) {
      bool sent = all ? send(connection, 'a', "").ok()
                      : send(connection, 'x', std::to_string(MT_LOST) + "another process was lost").ok();
      all = all && sent;
    }
  return all;
}

Status ProcessGroup::agree(const std::string &lines, bool force, const std::function<void(const std::string &)> &warn) {
  return compare(lines, force ? &warn : nullptr, "; --force ignores the difference");
}

Status ProcessGroup::compare(const std::string &lines, const std::function<void(const std::string &)> *warn,
                             const char *hint) {
  begin();
  for (Connection &connection : connections_) {
    if (options_.process != 0) {
      if (Status status = send(connection, 's', lines); !status.ok())
        return lose(status.message());
      continue;
    }
    std::string theirs;
    if (Status status = waitForBroadcast(connection, theirs); !status.ok())
      return status;
    std::string differs = difference(lines, theirs);
    if (differs.empty())
      continue;
    differs = title(connection.process) + " would compute other bits than process 0: " + differs;
    if (!warn)
      return lose(differs + hint, MT_INVALID);
    (*warn)(differs);
  }
  end();
  std::string agreed;
  return broadcast(agreed);
}

} // namespace mtrun
