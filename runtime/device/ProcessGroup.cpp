// SPDX-License-Identifier: Apache-2.0
//
// Messages between connected processes: 's': broadcast bytes; 'e': normal end, with the number of completed pieces of
// work; 'a': all processes have ended normally; 'b': heartbeat, with the work that the process has begun, done, and
// begun in parts; 'x': the run ends with an error: a digit for its code, and its text.
// Rendezvous.cpp connects the processes, and Heartbeat.cpp reads the connections from then on.
#include "runtime/device/ProcessGroup.h"

#include "runtime/support/seconds_text.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace mtrun {
Status ProcessGroup::open(const ProcessGroupOptions &options, std::unique_ptr<ProcessGroup> &processGroup) {
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(options));
  if (Status status = group->connectAll(); !status.ok())
    return status;
  if (Status status = group->startHeart(); !status.ok())
    return status;
  processGroup = std::move(group);
  return {};
}

ProcessGroup::~ProcessGroup() {
  stopHeart();
  for (Connection &connection : connections_) {
    if (lost_.ok() && !left_)
      (void)send(connection, 'e', std::to_string(own_.done));
    if (connection.socket >= 0)
      ::close(connection.socket);
  }
}

std::string ProcessGroup::patience() const { return secondsText(options_.timeout); }

ProcessGroup::Clock::time_point ProcessGroup::limit() const {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(options_.timeout, 1e6)));
}

std::string ProcessGroup::title(int process) const {
  if (process == options_.process && !options_.name.empty())
    return "process " + std::to_string(process) + " (" + options_.name + ")";
  for (const Connection &connection : connections_)
    if (connection.process == process && !connection.name.empty())
      return "process " + std::to_string(process) + " (" + connection.name + ")";
  return "process " + std::to_string(process);
}

bool ProcessGroup::flush(Connection &to) {
  while (!to.outgoing.empty() && to.socket >= 0) {
    ssize_t count = ::send(to.socket, to.outgoing.data(), to.outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EINTR)
      return errno == EAGAIN;
    to.outgoing.erase(0, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return to.socket >= 0;
}

// Messages are few and small, so the system accepts each at once; the thread sends what it does not accept.
Status ProcessGroup::send(Connection &to, char kind, std::string_view bytes) {
  to.outgoing += messageBytes(kind, bytes);
  errno = 0;
  if (flush(to))
    return {};
  return {MT_LOST, title(to.process) + " was lost" + (errno ? std::string(": ") + std::strerror(errno) : "")};
}

// Reads three numbers "A B C". Returns false if `text` has another form.
static bool readNumbers(std::string_view text, std::array<uint64_t, 3> &numbers) {
  const char *at = text.data(), *end = at + text.size();
  for (uint64_t &number : numbers) {
    auto [stop, error] = std::from_chars(at, end, number);
    bool last = &number == &numbers.back();
    if (error != std::errc() || (last ? stop != end : stop == end || *stop != ' '))
      return false;
    at = last ? stop : stop + 1;
  }
  return true;
}

void ProcessGroup::take(Connection &from, const Message &message) {
  const std::string &bytes = message.bytes;
  switch (message.kind) {
  case 'h': // from process 0: all processes are connected
    if (options_.process != 0 && !from.answered)
      from.name = printable(bytes);
    from.answered = true;
    break;
  case 'b':
    if (std::array<uint64_t, 3> numbers; readNumbers(bytes, numbers))
      from.work = {numbers[0], numbers[1], numbers[2]};
    break;
  case 'e':
    from.ended = true;
    suspicious_ = true;
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
        (void)fail(title(from.process) + ": " + text, code);
      else
        lost_ = {code, text};
      suspicious_ = true;
    }
    break;
  case 's':
    from.shared.push_back(bytes);
    break;
  }
}

void ProcessGroup::receive(Connection &from) {
  char room[4096];
  constexpr int most = 64; // limit per call, so that other connections and deadlines are handled too
  for (int turn = 0; turn < most && from.socket >= 0; ++turn) {
    ssize_t count = recv(from.socket, room, sizeof room, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    std::vector<Message> messages;
    bool good = count > 0 && from.reader.take({room, static_cast<size_t>(count)}, messages);
    from.heard = Clock::now();
    for (const Message &message : messages)
      take(from, message);
    if (!good) { // the connection is closed, or the bytes are not a valid message
      ::close(from.socket);
      from.socket = -1;
      suspicious_ = true;
    }
  }
}

Status ProcessGroup::fail(std::string message, mt_code code) {
  if (!lost_.ok())
    return lost_;
  lost_ = {code, std::move(message)};
  suspicious_ = true;
  changed_.notify_all();
  for (Connection &connection : connections_)
    if (connection.socket >= 0)
      (void)send(connection, 'x', static_cast<char>('0' + code) + lost_.message());
  return lost_;
}

Status ProcessGroup::lose(std::string message, mt_code code) {
  std::lock_guard lock(mutex_);
  return fail(std::move(message), code);
}

Status ProcessGroup::inspect() {
  for (Connection &connection : connections_) {
    if (!lost_.ok())
      return lost_;
    if (connection.ended && connection.after < own_.begun)
      return fail(title(connection.process) + " ended while the others went on");
    if (connection.socket < 0 && !connection.ended)
      return fail(title(connection.process) + " was lost");
  }
  return lost_;
}

Status ProcessGroup::check() {
  if (!suspicious_.load(std::memory_order_acquire))
    return {};
  std::lock_guard lock(mutex_);
  return inspect();
}

Status ProcessGroup::waitForBroadcast(std::unique_lock<std::mutex> &lock, Connection &from, std::string &bytes) {
  changed_.wait_until(lock, limit(), [&] { return !from.shared.empty() || !inspect().ok(); });
  if (from.shared.empty())
    return lost_.ok() ? fail(title(from.process) + " was lost: it sent nothing for " + patience()) : lost_;
  bytes = from.shared.front();
  from.shared.erase(from.shared.begin());
  return {};
}

Status ProcessGroup::broadcast(std::string &bytes) {
  begin();
  std::unique_lock lock(mutex_);
  if (Status status = inspect(); !status.ok())
    return status;
  if (options_.process == 0) {
    for (Connection &connection : connections_)
      if (Status status = send(connection, 's', bytes); !status.ok())
        return fail(status.message());
  } else if (Status status = waitForBroadcast(lock, connections_[0], bytes); !status.ok()) {
    return status;
  }
  end();
  return {};
}

Status ProcessGroup::gather(const std::string &own, std::vector<std::string> &all) {
  begin();
  std::unique_lock lock(mutex_);
  if (Status status = inspect(); !status.ok())
    return status;
  all.clear();
  if (options_.process != 0) {
    if (Status status = send(connections_[0], 's', own); !status.ok())
      return fail(status.message());
    end();
    return {};
  }
  all.resize(static_cast<size_t>(options_.processes));
  all[0] = own;
  for (Connection &connection : connections_)
    if (Status status = waitForBroadcast(lock, connection, all[static_cast<size_t>(connection.process)]); !status.ok())
      return status;
  end();
  return {};
}

bool ProcessGroup::waitFor(std::unique_lock<std::mutex> &lock, const Connection &from, const bool &happened) {
  changed_.wait_until(lock, limit(), [&] { return happened || !lost_.ok() || from.socket < 0; });
  return happened && lost_.ok();
}

bool ProcessGroup::leave() {
  std::unique_lock lock(mutex_);
  if (!lost_.ok() || left_)
    return false;
  left_ = true;
  bool all = true;
  for (Connection &connection : connections_)
    all = send(connection, 'e', std::to_string(own_.done)).ok() && all;
  if (options_.process != 0)
    return all && waitFor(lock, connections_[0], connections_[0].allEnded);
  for (Connection &connection : connections_)
    all = all && waitFor(lock, connection, connection.ended) && connection.after == own_.done;
  for (Connection &connection : connections_)
    if (connection.socket >= 0) {
      bool sent = all ? send(connection, 'a', "").ok()
                      : send(connection, 'x', std::to_string(MT_LOST) + "another process was lost").ok();
      all = all && sent;
    }
  return all;
}

Status ProcessGroup::agree(const std::string &lines, const char *hint, bool force,
                           const std::function<void(const std::string &)> &warn) {
  return compare(lines, force ? &warn : nullptr, hint, MT_DEVICE);
}

Status ProcessGroup::compare(const std::string &lines, const std::function<void(const std::string &)> *warn,
                             const char *hint, mt_code code) {
  begin();
  for (Connection &connection : connections_) {
    std::unique_lock lock(mutex_);
    if (options_.process != 0) {
      if (Status status = send(connection, 's', lines); !status.ok())
        return fail(status.message());
      continue;
    }
    std::string theirs;
    if (Status status = waitForBroadcast(lock, connection, theirs); !status.ok())
      return status;
    std::string differs = difference(lines, theirs);
    if (differs.empty())
      continue;
    differs = title(connection.process) + " would compute other bits than process 0: " + differs;
    if (!warn)
      return fail(differs + hint, code);
    lock.unlock();
    (*warn)(differs);
  }
  end();
  std::string agreed;
  return broadcast(agreed);
}

} // namespace mtrun
