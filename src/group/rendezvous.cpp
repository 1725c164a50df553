#include "group/rendezvous.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "group/wire/address.h"
#include "group/wire/message.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
// A stranger's connection that says nothing must not hold the others up for long.
constexpr auto kHelloTime = 3s;
constexpr uint64_t kProtocol = 1;

struct Hello {
  int rank = 0;
  int num_ranks = 0;
  int pid = 0;
  RankAddress address;
  AgreedParts parts;
};

Message write_hello(const Hello& hello) {
  Message message(MessageKind::kHello);
  message.put(kProtocol);
  message.put(static_cast<uint64_t>(hello.rank));
  message.put(static_cast<uint64_t>(hello.num_ranks));
  message.put(static_cast<uint64_t>(hello.pid));
  message.put(hello.address.host_identity);
  message.put(hello.address.local_name);
  message.put(hello.address.host);
  message.put(static_cast<uint64_t>(hello.address.port));
  message.put(static_cast<uint64_t>(hello.parts.size()));
  for (const AgreedPart& part : hello.parts) {
    message.put(part.name);
    message.put(part.value);
  }
  return message;
}

Result<int> read_int(MessageReader& reader) {
  FT_ASSIGN_OR_RETURN(const uint64_t number, reader.number());
  if (number > 1u << 30) return invalid_argument("a number of a rank's greeting is too large");
  return static_cast<int>(number);
}

Result<RankAddress> read_address(MessageReader& reader) {
  RankAddress address;
  FT_ASSIGN_OR_RETURN(address.host_identity, reader.text());
  FT_ASSIGN_OR_RETURN(address.local_name, reader.text());
  FT_ASSIGN_OR_RETURN(address.host, reader.text());
  FT_ASSIGN_OR_RETURN(address.port, read_int(reader));
  return address;
}

Result<Hello> read_hello(const Message& message) {
  MessageReader reader(message);
  FT_ASSIGN_OR_RETURN(const uint64_t protocol, reader.number());
  if (protocol != kProtocol) {
    return invalid_argument(
        "a rank runs another version of foretoken; install the same one everywhere");
  }
  Hello hello;
  FT_ASSIGN_OR_RETURN(hello.rank, read_int(reader));
  FT_ASSIGN_OR_RETURN(hello.num_ranks, read_int(reader));
  FT_ASSIGN_OR_RETURN(hello.pid, read_int(reader));
  FT_ASSIGN_OR_RETURN(hello.address, read_address(reader));
  FT_ASSIGN_OR_RETURN(const int num_parts, read_int(reader));
  for (int i = 0; i < num_parts; ++i) {
    AgreedPart part;
    FT_ASSIGN_OR_RETURN(part.name, reader.text());
    FT_ASSIGN_OR_RETURN(part.value, reader.text());
    hello.parts.push_back(std::move(part));
  }
  return hello;
}

// Collects the ranks at rank 0.
class Gathering {
 public:
  explicit Gathering(const RendezvousOptions& options)
      : options_(options), size_(options.layout.num_ranks()) {
    found_.control.resize(static_cast<std::size_t>(size_));
    found_.addresses.resize(static_cast<std::size_t>(size_));
    found_.token = random_name();
    pids_.resize(static_cast<std::size_t>(size_));
  }

  Result<Rendezvous> run(const Socket& listener) {
    found_.addresses[0] = {.host_identity = host_identity(),
                           .local_name = {},
                           .host = options_.master_host,
                           .port = port_of(listener)};
    for (int missing = size_ - 1; missing > 0;) {
      Result<Socket> socket = accept_next(listener, options_.stop_descriptor, options_.deadline);
      if (!socket.ok()) return refuse(missing_error(socket.status()));
      FT_ASSIGN_OR_RETURN(const bool came, greet(std::move(socket).value()));
      missing -= came ? 1 : 0;
    }
    return welcome();
  }

  void set_local_name(std::string name) { local_name_ = std::move(name); }

 private:
  // True: a rank of the group; false: a stranger, gone again.
  Result<bool> greet(Socket socket) {
    set_rank_options(socket);
    const auto deadline = std::min(options_.deadline, Clock::now() + kHelloTime);
    Result<Message> message =
        expect_message(socket, MessageKind::kHello, options_.stop_descriptor, deadline);
    Result<Hello> hello = message.ok() ? read_hello(message.value()) : message.status();
    if (!hello.ok()) {
      if (message.ok()) return refuse(hello.status(), std::move(socket));
      FT_LOG(warn, "a connection to rank 0 was closed: {}", hello.status().message());
      return false;
    }
    const Status fits = check(hello.value());
    if (!fits.ok()) return refuse(fits, std::move(socket));
    const auto at = static_cast<std::size_t>(hello.value().rank);
    found_.addresses[at] = std::move(hello.value().address);
    found_.control[at] = std::move(socket);
    pids_[at] = hello.value().pid;
    return true;
  }

  Status check(const Hello& hello) const {
    if (hello.num_ranks != size_) {
      return invalid_argument(
          fmt::format("rank {} counts {} ranks, rank 0 counts {}; give all the same parallel sizes",
                      hello.rank, hello.num_ranks, size_));
    }
    if (hello.rank >= size_) {
      return invalid_argument(
          fmt::format("rank {} does not exist among {} ranks", hello.rank, size_));
    }
    const auto at = static_cast<std::size_t>(hello.rank);
    if (hello.rank == 0 || found_.control[at].open()) {
      return invalid_argument(fmt::format(
          "two processes say that they are rank {} (process {} and process {}); give each its own "
          "--node-rank or rank variable",
          hello.rank, hello.rank == 0 ? getpid() : pids_[at], hello.pid));
    }
    const auto difference =
        first_difference(options_.parts, hello.parts, describe(options_.layout, hello.rank));
    return difference ? invalid_argument(*difference) : Status();
  }

  Status missing_error(const Status& why) const {
    if (why.message() != "no answer in time") return why;
    std::string names;
    for (std::size_t rank = 1; rank < found_.control.size(); ++rank) {
      if (!found_.control[rank].open())
        names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    }
    return aborted(
        fmt::format("of {} ranks these did not come to {}:{} in time: {}; look at their messages, "
                    "and that they "
                    "can reach this address",
                    size_, options_.master_host, options_.master_port, names));
  }

  // Tells all who came, and `last`.
  Status refuse(const Status& why, Socket last = {}) {
    Message message(MessageKind::kRefuse);
    put_status(why, &message);
    found_.control.push_back(std::move(last));
    for (const Socket& socket : found_.control) {
      if (!socket.open()) continue;
      const Status sent = send_message(socket, message, -1, Clock::now() + kHelloTime);
      if (!sent.ok()) FT_LOG(debug, "a rank left before it was told: {}", sent.message());
    }
    return why;
  }

  Result<Rendezvous> welcome() {
    found_.addresses[0].local_name = local_name_;
    Message message(MessageKind::kWelcome);
    message.put(found_.token);
    for (const RankAddress& address : found_.addresses) {
      message.put(address.host_identity);
      message.put(address.local_name);
      message.put(address.host);
      message.put(static_cast<uint64_t>(address.port));
    }
    for (std::size_t rank = 1; rank < found_.control.size(); ++rank) {
      const Status sent =
          send_message(found_.control[rank], message, options_.stop_descriptor, options_.deadline);
      if (!sent.ok()) {
        return refuse(
            aborted(fmt::format("rank {} left while the ranks met: {}", rank, sent.message())));
      }
    }
    return std::move(found_);
  }

  const RendezvousOptions& options_;
  int size_;
  Rendezvous found_;
  std::vector<int> pids_;
  std::string local_name_;
};

}  // namespace

std::string random_name() {
  uint64_t numbers[2] = {};
  FT_CHECK(getrandom(numbers, sizeof numbers, 0) == sizeof numbers);
  return fmt::format("foretoken-{:016x}{:016x}", numbers[0], numbers[1]);
}

Result<Rendezvous> gather_ranks(const RendezvousOptions& options, const RankListeners& listeners,
                                const std::string& local_name) {
  Gathering gathering(options);
  gathering.set_local_name(local_name);
  return gathering.run(listeners.tcp);
}

Result<Rendezvous> meet_rank_0(const RendezvousOptions& options, const RankListeners& listeners,
                               const std::string& local_name) {
  FT_ASSIGN_OR_RETURN(Socket control, connect_tcp(options.master_host, options.master_port,
                                                  options.stop_descriptor, options.deadline));
  set_rank_options(control);
  Hello hello{.rank = options.rank,
              .num_ranks = options.layout.num_ranks(),
              .pid = getpid(),
              .address = {.host_identity = host_identity(),
                          .local_name = local_name,
                          .host = own_address(control),
                          .port = port_of(listeners.tcp)},
              .parts = options.parts};
  FT_RETURN_IF_ERROR(
      send_message(control, write_hello(hello), options.stop_descriptor, options.deadline));
  FT_ASSIGN_OR_RETURN(
      const Message message,
      expect_message(control, MessageKind::kWelcome, options.stop_descriptor, options.deadline));
  MessageReader reader(message);
  Rendezvous found;
  FT_ASSIGN_OR_RETURN(found.token, reader.text());
  for (int rank = 0; rank < options.layout.num_ranks(); ++rank) {
    FT_ASSIGN_OR_RETURN(RankAddress address, read_address(reader));
    found.addresses.push_back(std::move(address));
  }
  found.addresses[0].host = options.master_host;
  found.addresses[0].port = options.master_port;
  found.control.push_back(std::move(control));
  return found;
}

}  // namespace foretoken::group
