#include "engine/parallel/front_message.h"

#include <span>

namespace foretoken {
namespace {

struct Head {
  uint64_t kind;
  uint64_t number;
  uint64_t step;
  uint64_t bytes;
};

constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 34;

}  // namespace

Status send_message(group::RankLink& link, const FrontMessage& message, std::string_view what) {
  const Head head{static_cast<uint64_t>(message.kind), message.number, message.step,
                  message.body.size()};
  const int other = other_side(link);
  FT_RETURN_IF_ERROR(link.send(other, std::as_bytes(std::span(&head, 1)), what));
  if (message.body.empty()) return {};
  return link.send(other, std::as_bytes(std::span(message.body)), what);
}

Result<FrontMessage> receive_message(group::RankLink& link, std::string_view what) {
  Head head{};
  const int other = other_side(link);
  FT_RETURN_IF_ERROR(link.receive(other, std::as_writable_bytes(std::span(&head, 1)), what));
  if (head.bytes > kMaxBodyBytes) return internal_error("a message between engines is too long");
  FrontMessage message{static_cast<FrontKind>(head.kind), head.number, head.step, {}};
  message.body.resize(head.bytes);
  if (head.bytes > 0) {
    FT_RETURN_IF_ERROR(link.receive(other, std::as_writable_bytes(std::span(message.body)), what));
  }
  return message;
}

}  // namespace foretoken
