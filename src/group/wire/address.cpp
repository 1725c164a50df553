#include "group/wire/address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
constexpr int kBacklog = 1024;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, int port, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                                &hints, &list);
  if (error != 0) return invalid_argument(fmt::format("{}: {}", host, gai_strerror(error)));
  return Addresses(list);
}

Socket make_socket(int family) { return Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

void set_option(const Socket& socket, int level, int name, int value) {
  setsockopt(socket.descriptor(), level, name, &value, sizeof value);
}

void set_blocking(const Socket& socket, bool blocking) {
  const int flags = fcntl(socket.descriptor(), F_GETFL);
  fcntl(socket.descriptor(), F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

// One try; errno tells what went wrong.
bool connect_once(const Socket& socket, const addrinfo& address, int stop_descriptor,
                  Clock::time_point deadline) {
  set_blocking(socket, false);
  if (connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return false;
    if (wait_for(socket.descriptor(), POLLOUT, stop_descriptor, deadline) != Waited::kReady) {
      errno = ETIMEDOUT;
      return false;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return false;
  }
  set_blocking(socket, true);
  return true;
}

socklen_t fill_local(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  // An abstract name starts with a zero byte.
  std::strncpy(address->sun_path + 1, name.c_str(), sizeof address->sun_path - 2);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

Result<Socket> listen_tcp(const std::string& host, int port) {
  FT_ASSIGN_OR_RETURN(const Addresses list, resolve(host, port, true));
  int error = 0;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Socket socket = make_socket(at->ai_family);
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (at->ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(socket.descriptor(), at->ai_addr, at->ai_addrlen) == 0 &&
        listen(socket.descriptor(), kBacklog) == 0) {
      return socket;
    }
    error = errno;
  }
  return invalid_argument(
      fmt::format("cannot listen at {}:{} for the other ranks: {}; choose another --master-port",
                  host.empty() ? "*" : host, port, std::strerror(error)));
}

Result<Socket> connect_tcp(const std::string& host, int port, int stop_descriptor,
                           Clock::time_point deadline) {
  std::string last = "no address";
  for (auto pause = 5ms;; pause = std::min(pause * 2, 200ms)) {
    Result<Addresses> list = resolve(host, port, false);
    if (!list.ok()) last = list.status().message();
    for (const addrinfo* at = list.ok() ? list.value().get() : nullptr; at != nullptr;
         at = at->ai_next) {
      Socket socket = make_socket(at->ai_family);
      if (connect_once(socket, *at, stop_descriptor, deadline)) return socket;
      last = std::strerror(errno);
    }
    if (wait_for(-1, 0, stop_descriptor, std::min(deadline, Clock::now() + pause)) ==
        Waited::kStopped) {
      return aborted("stopped");
    }
    if (Clock::now() >= deadline) break;
  }
  return aborted(fmt::format("cannot reach {}:{}: {}", host, port, last));
}

Result<Socket> listen_local(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = fill_local(name, &address);
  Socket socket = make_socket(AF_UNIX);
  if (bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(socket.descriptor(), kBacklog) != 0) {
    return internal_error(
        fmt::format("cannot listen at the local socket {}: {}", name, std::strerror(errno)));
  }
  return socket;
}

Result<Socket> connect_local(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = fill_local(name, &address);
  Socket socket = make_socket(AF_UNIX);
  if (connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return aborted(fmt::format("cannot reach the local socket {}: {}", name, std::strerror(errno)));
  }
  return socket;
}

Result<Socket> accept_next(const Socket& listener, int stop_descriptor,
                           Clock::time_point deadline) {
  for (;;) {
    const Waited waited = wait_for(listener.descriptor(), POLLIN, stop_descriptor, deadline);
    if (waited == Waited::kStopped) return aborted("stopped");
    if (waited == Waited::kLate) return aborted("no answer in time");
    const int descriptor = accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor >= 0) return Socket(descriptor);
    if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
      return internal_error(fmt::format("cannot accept a connection: {}", std::strerror(errno)));
    }
  }
}

int port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  // The port lies at the same place of both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string own_address(const Socket& connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "";
  if (getsockname(connection.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  }
  return host;
}

void set_rank_options(const Socket& connection) {
  set_option(connection, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(connection, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(connection, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(connection, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
}

std::string host_identity() {
  char space[PATH_MAX] = "";
  if (readlink("/proc/self/ns/net", space, sizeof space - 1) < 0) space[0] = '\0';
  return first_line("/proc/sys/kernel/random/boot_id") + " " + space;
}

}  // namespace foretoken::group
