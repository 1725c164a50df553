#pragma once
#include <string>

#include "base/result.h"
#include "group/wire/socket.h"

namespace foretoken::group {

// Listens on TCP; host empty: all addresses; port 0: any free one. The error names both.
Result<Socket> listen_tcp(const std::string& host, int port);
// Connects to host:port, again and again until it works or the deadline is over; the error names
// the address and what went wrong last. stop_descriptor as in wait_for.
Result<Socket> connect_tcp(const std::string& host, int port, int stop_descriptor,
                           Clock::time_point deadline);

// Sockets of one host, in Linux's abstract names: no file stays behind.
Result<Socket> listen_local(const std::string& name);
Result<Socket> connect_local(const std::string& name);

// The next connection; Aborted "stopped" or "no answer in time".
Result<Socket> accept_next(const Socket& listener, int stop_descriptor, Clock::time_point deadline);

int port_of(const Socket& listener);
// This end's address of a TCP connection, as text without the port.
std::string own_address(const Socket& connection);

// Small messages leave at once, and a cut network is noticed within about five seconds: by
// TCP_USER_TIMEOUT while bytes are on their way, by probes while none are.
void set_rank_options(const Socket& connection);

// Equal on two processes that can meet through abstract socket names: same boot, same network
// namespace.
std::string host_identity();

}  // namespace foretoken::group
