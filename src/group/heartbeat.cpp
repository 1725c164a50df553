#include "group/heartbeat.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/thread_role.h"
#include "group/wire/message.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
// A message is small; who does not take or finish it in this time is judged by his silence.
constexpr auto kMessageTime = 500ms;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Heartbeat::Heartbeat(std::shared_ptr<LinkShared> shared, std::vector<Socket> control,
                     HeartbeatTimes times)
    : shared_(std::move(shared)), times_(times) {
  for (std::size_t i = 0; i < control.size(); ++i) {
    if (!control[i].open()) continue;
    Peer peer;
    peer.rank = shared_->rank == shared_->leader ? static_cast<int>(i) : shared_->leader;
    peer.socket = std::move(control[i]);
    peer.heard = Clock::now();
    peers_.push_back(std::move(peer));
  }
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  leaving_.end(aborted("leaving"));
  thread_.join();
}

void Heartbeat::run() {
  set_thread_role(ThreadRole::kOther, "ft-heartbeat");
  Clock::time_point next = Clock::now();
  while (wait(next)) {
    const Clock::time_point now = Clock::now();
    if (now < next) continue;
    // This thread itself stood still: silence in that time says nothing of the others.
    if (now - next > times_.between) {
      for (Peer& peer : peers_) peer.heard = now;
    }
    beat();
    judge(now);
    next = now + times_.between;
  }
  if (shared_->end.ended()) {
    tell_end();
  } else {
    tell(Message(MessageKind::kLeave));
  }
}

bool Heartbeat::wait(Clock::time_point until) {
  std::vector<pollfd> polled = {{shared_->end.descriptor(), POLLIN, 0},
                                {leaving_.descriptor(), POLLIN, 0}};
  for (const Peer& peer : peers_) {
    polled.push_back({peer.left ? -1 : peer.socket.descriptor(), POLLIN, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  poll(polled.data(), polled.size(), static_cast<int>(std::max<long long>(left, 0)));
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (polled[i + 2].revents != 0 && !shared_->end.ended()) hear(peers_[i]);
  }
  return !shared_->end.ended() && !leaving_.ended();
}

void Heartbeat::hear(Peer& peer) {
  Result<Message> message =
      receive_message(peer.socket, shared_->end.descriptor(), Clock::now() + kMessageTime);
  if (message.ok()) {
    take(peer, message.value());
  } else if (!shared_->end.ended()) {
    shared_->end.end(internal_error(
        fmt::format("{} ended without a word ({}); it was last in {}. Its own messages say more",
                    name(peer.rank), message.status().message(),
                    peer.doing.empty() ? "its start" : peer.doing)));
  }
}

void Heartbeat::take(Peer& peer, const Message& message) {
  peer.heard = Clock::now();
  MessageReader reader(message);
  if (message.kind() == MessageKind::kBeat) {
    Result<std::string> doing = reader.text();
    if (doing.ok()) peer.doing = std::move(doing).value();
  } else if (message.kind() == MessageKind::kEnd) {
    shared_->end.end(read_status(reader));
  } else if (message.kind() == MessageKind::kLeave) {
    peer.left = true;
    if (peer.rank != shared_->leader) return;
    const std::string leader = peer.rank == 0 ? "rank 0" : name(peer.rank);
    shared_->end.end(aborted(leader + " has ended the group"));
  }
}

void Heartbeat::beat() {
  Message message(MessageKind::kBeat);
  message.put(shared_->activity.last());
  tell(message);
}

void Heartbeat::judge(Clock::time_point now) {
  for (const Peer& peer : peers_) {
    if (peer.left || now - peer.heard < times_.patience) continue;
    shared_->end.end(internal_error(fmt::format(
        "{} has not answered {} for {:.1f} s: its process is stopped or the network is cut; it was "
        "last in {}, this rank in {}",
        name(peer.rank), name(shared_->rank), seconds(now - peer.heard),
        peer.doing.empty() ? "its start" : peer.doing,
        shared_->activity.last().empty() ? "its start" : shared_->activity.last())));
    return;
  }
}

void Heartbeat::tell_end() {
  Message message(MessageKind::kEnd);
  put_status(shared_->end.why(), &message);
  tell(message);
}

void Heartbeat::tell(const Message& message) {
  for (const Peer& peer : peers_) {
    if (peer.left) continue;
    // Who cannot be told is found by its silence or by the end of its connection.
    const Status sent = send_message(peer.socket, message, -1, Clock::now() + kMessageTime);
    (void)sent;
  }
}

std::string Heartbeat::name(int rank) const { return describe(shared_->layout, rank); }

}  // namespace foretoken::group
