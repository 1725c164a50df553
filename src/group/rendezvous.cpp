#include "group/rendezvous.h"

#include <fmt/format.h>
#include <sys/random.h>

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
constexpr uint64_t kProtocol = 3;

struct Hello {
  int rank = 0;
  int num_ranks = 0;
  int pid = 0;
  std::vector<int> own_ranks;
  RankAddress address;
  AgreedParts parts;
};

// A rank that a process says it has.
struct Claim {
  int rank = 0;
  int pid = 0;
  std::string host_identity;

  bool is_of_process(const Claim& other) const {
    return pid == other.pid && host_identity == other.host_identity;
  }
};

Message write_hello(const Hello& hello) {
  Message message(MessageKind::kHello);
  message.put(kProtocol);
  message.put(static_cast<uint64_t>(hello.rank));
  message.put(static_cast<uint64_t>(hello.num_ranks));
  message.put(static_cast<uint64_t>(hello.pid));
  message.put(static_cast<uint64_t>(hello.own_ranks.size()));
  for (const int rank : hello.own_ranks) message.put(static_cast<uint64_t>(rank));
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
  FT_ASSIGN_OR_RETURN(const int num_own, read_int(reader));
  for (int i = 0; i < num_own; ++i) {
    FT_ASSIGN_OR_RETURN(const int rank, read_int(reader));
    hello.own_ranks.push_back(rank);
  }
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

// Collects the ranks at their leader.
class Gathering {
 public:
  Gathering(const RendezvousOptions& options, const Socket& listener)
      : options_(options), listener_(listener), size_(options.layout.num_ranks()) {
    const bool is_rank = options.rank != bare_front(options.layout);
    const auto members = static_cast<std::size_t>(is_rank ? size_ : size_ + 1);
    found_.leader = options.rank;
    found_.control.resize(members);
    found_.addresses.resize(members);
    found_.token = random_name();
    for (const int rank : options.own_ranks) {
      claims_.push_back({rank, options.pid, host_identity()});
      if (rank != options.rank) to_come_.push_back(claims_.back());
    }
  }

  Result<Rendezvous> run() {
    own_address_of(found_) = {.host_identity = host_identity(),
                              .local_name = {},
                              .host = options_.master_host,
                              .port = port_of(listener_)};
    for (std::size_t missing = found_.control.size() - 1; missing > 0;) {
      Result<Socket> socket = accept_next(listener_, options_.stop_descriptor, options_.deadline);
      if (!socket.ok()) return refuse(missing_error(socket.status()));
      FT_ASSIGN_OR_RETURN(const bool came, greet(std::move(socket).value()));
      missing -= came ? 1 : 0;
    }
    return welcome();
  }

  void set_local_name(std::string name) { local_name_ = std::move(name); }

 private:
  static RankAddress& own_address_of(Rendezvous& found) {
    return found.addresses[static_cast<std::size_t>(found.leader)];
  }
  // "rank 0" or "the front end".
  std::string leader_name() const {
    return found_.leader == 0 ? "rank 0" : describe(options_.layout, found_.leader);
  }

  Result<Message> hear(const Socket& socket) const {
    set_rank_options(socket);
    const auto deadline = std::min(options_.deadline, Clock::now() + kHelloTime);
    return expect_message(socket, MessageKind::kHello, options_.stop_descriptor, deadline);
  }

  // True: a rank of the group; false: a stranger, gone again.
  Result<bool> greet(Socket socket) {
    const Result<Message> message = hear(socket);
    Result<Hello> hello = message.ok() ? read_hello(message.value()) : message.status();
    if (!hello.ok()) {
      if (message.ok()) return refuse(hello.status(), std::move(socket));
      FT_LOG(warn, "a connection to {} was closed: {}", leader_name(), hello.status().message());
      return false;
    }
    const Status fits = check(hello.value());
    note(hello.value());
    if (!fits.ok()) return refuse(fits, std::move(socket));
    const auto at = static_cast<std::size_t>(hello.value().rank);
    found_.addresses[at] = std::move(hello.value().address);
    found_.control[at] = std::move(socket);
    return true;
  }

  // What a process has, once the first of its ranks comes, and that this one has come.
  void note(const Hello& hello) {
    const auto add = [&](int rank) {
      const Claim claim{rank, hello.pid, hello.address.host_identity};
      const bool known = std::ranges::any_of(
          claims_, [&](const Claim& one) { return one.rank == rank && one.is_of_process(claim); });
      if (known) return;
      claims_.push_back(claim);
      to_come_.push_back(claim);
    };
    add(hello.rank);
    for (const int rank : hello.own_ranks) add(rank);
    const Claim came{hello.rank, hello.pid, hello.address.host_identity};
    const auto found = std::ranges::find_if(to_come_, [&](const Claim& one) {
      return one.rank == came.rank && one.is_of_process(came);
    });
    if (found != to_come_.end()) to_come_.erase(found);
  }

  // The claim of another process to a rank that the one of `hello` says it has.
  const Claim* doubled_claim(const Hello& hello) const {
    const Claim own{hello.rank, hello.pid, hello.address.host_identity};
    for (const Claim& one : claims_) {
      const bool is_meant = one.rank == hello.rank ||
                            std::ranges::find(hello.own_ranks, one.rank) != hello.own_ranks.end();
      if (is_meant && !one.is_of_process(own)) return &one;
    }
    return nullptr;
  }

  Status check(const Hello& hello) const {
    if (hello.num_ranks != size_) {
      return invalid_argument(
          fmt::format("rank {} counts {} ranks, {} counts {}; give all the same parallel sizes",
                      hello.rank, hello.num_ranks, leader_name(), size_));
    }
    if (hello.rank >= size_) {
      return invalid_argument(
          fmt::format("rank {} does not exist among {} ranks", hello.rank, size_));
    }
    const auto at = static_cast<std::size_t>(hello.rank);
    const Claim* other = doubled_claim(hello);
    const bool came_before = hello.rank == found_.leader || found_.control[at].open();
    if (other != nullptr || came_before) {
      return invalid_argument(fmt::format(
          "two processes say that they are rank {} (process {} and process {}); give each its own "
          "--node-rank, --data-parallel-start-rank or rank variable",
          other != nullptr ? other->rank : hello.rank, other != nullptr ? other->pid : hello.pid,
          hello.pid));
    }
    const auto difference = first_difference(options_.parts, hello.parts,
                                             describe(options_.layout, hello.rank), leader_name());
    return difference ? invalid_argument(*difference) : Status();
  }

  Status missing_error(const Status& why) const {
    if (why.message() != "no answer in time") return why;
    std::string names;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank) {
      const bool is_own = rank == static_cast<std::size_t>(found_.leader);
      if (!is_own && !found_.control[rank].open())
        names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    }
    return aborted(
        fmt::format("of {} ranks these did not come to {}:{} in time: {}; look at their messages, "
                    "and that they "
                    "can reach this address",
                    size_, options_.master_host, options_.master_port, names));
  }

  // Waits shortly for those whose process has other ranks that came, so that none of them takes a
  // connection that closes for the reason.
  void await_known() {
    const auto deadline = std::min(options_.deadline, Clock::now() + kHelloTime);
    while (!to_come_.empty()) {
      Result<Socket> socket = accept_next(listener_, options_.stop_descriptor, deadline);
      if (!socket.ok()) return;
      const Result<Message> message = hear(socket.value());
      const Result<Hello> hello = message.ok() ? read_hello(message.value()) : message.status();
      if (hello.ok()) note(hello.value());
      if (message.ok()) found_.control.push_back(std::move(socket).value());
    }
  }

  // Tells all who came, and `last`.
  Status refuse(const Status& why, Socket last = {}) {
    Message message(MessageKind::kRefuse);
    put_status(why, &message);
    found_.control.push_back(std::move(last));
    await_known();
    for (const Socket& socket : found_.control) {
      if (!socket.open()) continue;
      const Status sent = send_message(socket, message, -1, Clock::now() + kHelloTime);
      if (!sent.ok()) FT_LOG(debug, "a rank left before it was told: {}", sent.message());
    }
    return why;
  }

  Result<Rendezvous> welcome() {
    own_address_of(found_).local_name = local_name_;
    Message message(MessageKind::kWelcome);
    message.put(found_.token);
    message.put(static_cast<uint64_t>(found_.leader));
    for (const RankAddress& address : found_.addresses) {
      message.put(address.host_identity);
      message.put(address.local_name);
      message.put(address.host);
      message.put(static_cast<uint64_t>(address.port));
    }
    for (std::size_t rank = 0; rank < found_.control.size(); ++rank) {
      if (rank == static_cast<std::size_t>(found_.leader)) continue;
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
  const Socket& listener_;
  int size_;
  Rendezvous found_;
  std::vector<Claim> claims_;
  std::vector<Claim> to_come_;  // those of them whose ranks have not come
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
  Gathering gathering(options, listeners.tcp);
  gathering.set_local_name(local_name);
  return gathering.run();
}

Result<Rendezvous> meet_leader(const RendezvousOptions& options, const RankListeners& listeners,
                               const std::string& local_name) {
  FT_ASSIGN_OR_RETURN(Socket control, connect_tcp(options.master_host, options.master_port,
                                                  options.stop_descriptor, options.deadline));
  set_rank_options(control);
  Hello hello{.rank = options.rank,
              .num_ranks = options.layout.num_ranks(),
              .pid = options.pid,
              .own_ranks = options.own_ranks,
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
  FT_ASSIGN_OR_RETURN(found.leader, read_int(reader));
  const int num_ranks = options.layout.num_ranks();
  if (found.leader != 0 && found.leader != num_ranks) {
    return internal_error(fmt::format("the ranks met at {}, which is none of them", found.leader));
  }
  for (int rank = 0; rank < std::max(num_ranks, found.leader + 1); ++rank) {
    FT_ASSIGN_OR_RETURN(RankAddress address, read_address(reader));
    found.addresses.push_back(std::move(address));
  }
  RankAddress& leader = found.addresses[static_cast<std::size_t>(found.leader)];
  leader.host = options.master_host;
  leader.port = options.master_port;
  found.control.push_back(std::move(control));
  return found;
}

}  // namespace foretoken::group
