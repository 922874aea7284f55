// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace mtrun {
namespace {

constexpr int backlog = 1024;

// An address of any kind.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  int family = AF_UNSPEC;
  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
};

Status failed(const std::string &what, const std::string &place) {
  return {MT_IO, "cannot " + what + " " + place + ": " + std::strerror(errno)};
}

Status unixAddress(const std::string &place, const std::string &name, Address &address) {
  sockaddr_un local = {};
  local.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof local.sun_path)
    return {MT_INVALID, "expected a name of 1 to " + std::to_string(sizeof local.sun_path - 1) +
                            " bytes as unix:NAME, found " + place};
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  address.family = AF_UNIX;
  std::memcpy(&address.storage, &local, sizeof local);
  return {};
}

Status tcpAddress(const std::string &place, const std::string &rest, bool listens, Address &address) {
  size_t colon = rest.rfind(':');
  std::string host = rest.substr(0, colon), port = colon == std::string::npos ? "" : rest.substr(colon + 1);
  if (host.empty() || port.empty())
    return {MT_INVALID, "expected tcp:HOST:PORT, found " + place};
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
  // Process 0 may know itself by another name than the others do: it listens at all of its addresses.
  if (int error = getaddrinfo(listens ? nullptr : host.c_str(), port.c_str(), &hints, &found))
    return {MT_INVALID, "expected the address of a host as tcp:HOST:PORT, found " + place + ": " + gai_strerror(error)};
  addrinfo *chosen = found;
  for (addrinfo *each = found; listens && each; each = each->ai_next)
    if (each->ai_family == AF_INET6) // takes both kinds of address
      chosen = each;
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.size = chosen->ai_addrlen;
  address.family = chosen->ai_family;
  freeaddrinfo(found);
  return {};
}

Status makeSocket(const std::string &place, bool listens, Address &address, int &made) {
  Status status = {MT_INVALID, "expected a place as unix:NAME or tcp:HOST:PORT, found " + place};
  if (place.starts_with("unix:"))
    status = unixAddress(place, place.substr(5), address);
  else if (place.starts_with("tcp:"))
    status = tcpAddress(place, place.substr(4), listens, address);
  if (!status.ok())
    return status;
  made = socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0)
    return failed("make a socket for", place);
  int yes = 1, no = 0;
  if (address.family != AF_UNIX)
    (void)setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (address.family != AF_UNIX && listens)
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family == AF_INET6 && listens)
    (void)setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  return {};
}

} // namespace

Status listenAt(const std::string &place, int &socket) {
  Address address;
  if (Status status = makeSocket(place, true, address, socket); !status.ok())
    return status;
  if (bind(socket, address.get(), address.size) == 0 && ::listen(socket, backlog) == 0)
    return {};
  Status status = failed("listen at", place);
  close(socket);
  socket = -1;
  return status;
}

Status connectTo(const std::string &place, int &socket) {
  Address address;
  if (Status status = makeSocket(place, false, address, socket); !status.ok())
    return status;
  if (connect(socket, address.get(), address.size) == 0)
    return {};
  int error = errno;
  close(socket);
  socket = -1;
  for (int notYet : {ECONNREFUSED, ENOENT, EAGAIN, ETIMEDOUT, ECONNRESET, EHOSTUNREACH, ENETUNREACH, EINTR})
    if (error == notYet)
      return {};
  errno = error;
  return failed("connect to", place);
}

bool isOfThisUser(int socket) {
  ucred other = {};
  socklen_t size = sizeof other;
  sockaddr_storage self = {};
  socklen_t selfSize = sizeof self;
  if (getsockname(socket, reinterpret_cast<sockaddr *>(&self), &selfSize) != 0 || self.ss_family != AF_UNIX)
    return true;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

} // namespace mtrun
