// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace mtrun {
namespace {

constexpr int backlog = 1024;

// A socket address of any family.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  int family() const { return storage.ss_family; }
  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
  template <typename Kind> static Address of(const Kind &kind, size_t size = sizeof(Kind)) {
    Address address;
    std::memcpy(&address.storage, &kind, sizeof kind);
    address.size = static_cast<socklen_t>(size);
    return address;
  }
};

Status failed(const std::string &what, const std::string &place) {
  return {MT_IO, "cannot " + what + " " + place + ": " + std::strerror(errno)};
}

Status unixAddress(const std::string &place, std::vector<Address> &addresses) {
  std::string name = place.substr(5);
  sockaddr_un local = {};
  local.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof local.sun_path)
    return {MT_INVALID, "expected a name of 1 to " + std::to_string(sizeof local.sun_path - 1) +
                            " bytes as unix:NAME, found " + place};
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  addresses = {Address::of(local, offsetof(sockaddr_un, sun_path) + 1 + name.size())};
  return {};
}

// `numeric`: accept only numeric addresses.
int lookUp(const std::string &host, const std::string &port, bool numeric, std::vector<Address> &addresses) {
  addrinfo hints = {}, *entries = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  if (int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &entries))
    return error;
  for (addrinfo *each = entries; each; each = each->ai_next) {
    addresses.emplace_back().size = each->ai_addrlen;
    std::memcpy(&addresses.back().storage, each->ai_addr, each->ai_addrlen);
  }
  freeaddrinfo(entries);
  return 0;
}

Status tcpAddresses(const std::string &place, std::string &host, std::vector<Address> &addresses) {
  std::string rest = place.substr(4);
  size_t colon = rest.rfind(':');
  host = rest.substr(0, colon);
  std::string port = colon == std::string::npos ? "" : rest.substr(colon + 1);
  if (host.empty() || port.empty())
    return {MT_INVALID, "expected tcp:HOST:PORT, found " + place};
  if (host.starts_with('[') && host.ends_with(']')) // an IPv6 address
    host = host.substr(1, host.size() - 2);
  if (int error = lookUp(host, port, false, addresses))
    return {MT_INVALID, "expected the address of a host as tcp:HOST:PORT, found " + place + ": " + gai_strerror(error)};
  return {};
}

Status find(const std::string &place, std::string &host, std::vector<Address> &addresses) {
  if (place.starts_with("unix:"))
    return unixAddress(place, addresses);
  if (place.starts_with("tcp:"))
    return tcpAddresses(place, host, addresses);
  return {MT_INVALID, "expected an address as unix:NAME or tcp:HOST:PORT, found " + place};
}

bool isOfTheLoop(Address &address) {
  if (address.family() == AF_INET)
    return ntohl(reinterpret_cast<sockaddr_in *>(address.get())->sin_addr.s_addr) >> 24 == 127;
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6 *>(address.get())->sin6_addr);
}

// Returns the wildcard addresses of this host, with the port of `other`.
std::vector<Address> everyAddress(Address &other) {
  sockaddr_in6 six = {};
  sockaddr_in four = {};
  six.sin6_family = AF_INET6;
  four.sin_family = AF_INET;
  six.sin6_addr = in6addr_any;
  six.sin6_port = four.sin_port = other.family() == AF_INET6 ? reinterpret_cast<sockaddr_in6 *>(other.get())->sin6_port
                                                             : reinterpret_cast<sockaddr_in *>(other.get())->sin_port;
  return {Address::of(six), Address::of(four)};
}

int makeSocket(Address &address, int more) {
  int descriptor = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | more, 0);
  int yes = 1;
  if (descriptor >= 0 && address.family() != AF_UNIX)
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return descriptor;
}

// Returns a listening socket, or -1 and errno.
int listenAtAddress(Address &address) {
  int descriptor = makeSocket(address, 0), yes = 1, no = 0;
  if (descriptor < 0)
    return -1;
  if (address.family() != AF_UNIX)
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6) // the wildcard address accepts IPv4 and IPv6
    (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(descriptor, address.get(), address.size) == 0 && listen(descriptor, backlog) == 0)
    return descriptor;
  int reason = errno;
  close(descriptor);
  errno = reason;
  return -1;
}

int listenAtFirst(std::vector<Address> &addresses) {
  int descriptor = -1;
  for (size_t i = 0; i < addresses.size() && descriptor < 0; ++i) {
    descriptor = listenAtAddress(addresses[i]);
    if (descriptor < 0 && errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)
      break;
  }
  return descriptor;
}

// Returns true if a socket is connected to itself. This can happen if nothing listens at an ephemeral port and the
// kernel assigns that port to the connecting socket.
bool isItsOwnPeer(int socket) {
  sockaddr_storage self = {}, peer = {};
  socklen_t selfSize = sizeof self, peerSize = sizeof peer;
  return getsockname(socket, reinterpret_cast<sockaddr *>(&self), &selfSize) == 0 && self.ss_family != AF_UNIX &&
         getpeername(socket, reinterpret_cast<sockaddr *>(&peer), &peerSize) == 0 && selfSize == peerSize &&
         std::memcmp(&self, &peer, selfSize) == 0;
}

// Returns a connected socket, or -1 and errno.
int connectToAddress(Address &address, int milliseconds) {
  int descriptor = makeSocket(address, SOCK_NONBLOCK);
  if (descriptor < 0)
    return -1;
  int error = connect(descriptor, address.get(), address.size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waits = {descriptor, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (poll(&waits, 1, milliseconds) <= 0)
      error = ETIMEDOUT;
    else if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
  }
  if (error == 0 && isItsOwnPeer(descriptor))
    error = ECONNREFUSED;
  if (error == 0)
    return descriptor;
  close(descriptor);
  errno = error;
  return -1;
}

} // namespace

Status listenAt(const std::string &place, int &socket) {
  std::vector<Address> addresses, numeric;
  std::string host;
  if (Status status = find(place, host, addresses); !status.ok())
    return status;
  bool named = place.starts_with("tcp:") && host != "localhost" && lookUp(host, "0", true, numeric) != 0;
  auto reachable = std::find_if(addresses.begin(), addresses.end(), [](Address &each) { return !isOfTheLoop(each); });
  if (reachable != addresses.end())
    std::iter_swap(addresses.begin(), reachable);
  if (named && isOfTheLoop(addresses[0]))
    addresses = everyAddress(addresses[0]);
  socket = listenAtFirst(addresses);
  if (named && socket < 0 && errno == EADDRNOTAVAIL) { // for example the address of a router
    addresses = everyAddress(addresses[0]);
    socket = listenAtFirst(addresses);
  }
  return socket >= 0 ? Status() : failed("listen at", place);
}

Status connectTo(const std::string &place, int milliseconds, int &socket) {
  std::vector<Address> addresses;
  std::string host;
  if (Status status = find(place, host, addresses); !status.ok())
    return status;
  socket = -1;
  for (size_t i = 0; i < addresses.size() && socket < 0; ++i)
    socket = connectToAddress(addresses[i], milliseconds);
  if (socket >= 0)
    return {};
  for (int notYet : {ECONNREFUSED, ENOENT, EAGAIN, ETIMEDOUT, ECONNRESET, EHOSTUNREACH, ENETUNREACH, EINTR,
                     EADDRNOTAVAIL, EAFNOSUPPORT})
    if (errno == notYet)
      return {};
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

std::vector<std::string> hostAddresses() {
  std::vector<std::string> addresses;
  ifaddrs *interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0)
    return addresses;
  for (ifaddrs *each = interfaces; each; each = each->ifa_next) {
    int family = each->ifa_addr ? each->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6)
      continue;
    const auto *six = reinterpret_cast<const sockaddr_in6 *>(each->ifa_addr);
    const auto *four = reinterpret_cast<const sockaddr_in *>(each->ifa_addr);
    if (family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)
                           : ntohl(four->sin_addr.s_addr) >> 24 == 127)
      continue;
    char name[NI_MAXHOST];
    if (getnameinfo(each->ifa_addr, family == AF_INET ? sizeof *four : sizeof *six, name, sizeof name, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      addresses.push_back(family == AF_INET ? name : "[" + std::string(name) + "]");
  }
  freeifaddrs(interfaces);
  return addresses;
}

int portOf(int socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (getsockname(socket, reinterpret_cast<sockaddr *>(&storage), &size) != 0)
    return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 *>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in *>(&storage)->sin_port);
}

void neverWait(int socket) { (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK); }

} // namespace mtrun
