#include "group/wire/message.h"

#include <array>
#include <cstring>

namespace foretoken::group {
namespace {

constexpr uint32_t kMagic = 0x4b4e5246;  // "FRNK"

Status cut_short() { return invalid_argument("a message between ranks is cut short"); }

}  // namespace

void Message::put(uint64_t number) {
  for (int i = 0; i < 8; ++i) body_ += static_cast<char>(number >> (8 * i) & 255);
}

void Message::put(std::string_view text) {
  put(static_cast<uint64_t>(text.size()));
  body_ += text;
}

Result<uint64_t> MessageReader::number() {
  if (rest_.size() < 8) return cut_short();
  uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(8);
  return number;
}

Result<std::string> MessageReader::text() {
  FT_ASSIGN_OR_RETURN(const uint64_t size, number());
  if (size > rest_.size()) return cut_short();
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

Status send_message(const Socket& socket, const Message& message, int stop_descriptor,
                    Clock::time_point deadline) {
  const std::array<uint32_t, 3> head = {kMagic, static_cast<uint32_t>(message.kind()),
                                        static_cast<uint32_t>(message.body().size())};
  static_assert(sizeof head == kMessageHeadBytes);
  // One write, so that a heartbeat never waits between its two parts.
  std::string bytes(reinterpret_cast<const char*>(head.data()), sizeof head);
  bytes += message.body();
  return send_all(socket, std::as_bytes(std::span(bytes)), stop_descriptor, deadline);
}

Result<Message> receive_message(const Socket& socket, int stop_descriptor,
                                Clock::time_point deadline) {
  std::array<uint32_t, 3> head{};
  FT_RETURN_IF_ERROR(
      receive_all(socket, std::as_writable_bytes(std::span(head)), stop_descriptor, deadline));
  if (head[0] != kMagic || head[2] > kMaxMessageBytes) {
    return invalid_argument("the other side is no rank of a foretoken group");
  }
  std::string body(head[2], '\0');
  FT_RETURN_IF_ERROR(
      receive_all(socket, std::as_writable_bytes(std::span(body)), stop_descriptor, deadline));
  return Message(static_cast<MessageKind>(head[1]), std::move(body));
}

Result<Message> expect_message(const Socket& socket, MessageKind kind, int stop_descriptor,
                               Clock::time_point deadline) {
  FT_ASSIGN_OR_RETURN(Message message, receive_message(socket, stop_descriptor, deadline));
  if (message.kind() == kind) return message;
  if (message.kind() == MessageKind::kRefuse || message.kind() == MessageKind::kEnd) {
    MessageReader reader(message);
    return read_status(reader);
  }
  return internal_error("a rank sent a message of kind " +
                        std::to_string(static_cast<uint32_t>(message.kind())) + " instead of " +
                        std::to_string(static_cast<uint32_t>(kind)));
}

void put_status(const Status& status, Message* message) {
  message->put(static_cast<uint64_t>(status.code()));
  message->put(status.message());
}

Status read_status(MessageReader& reader) {
  FT_ASSIGN_OR_RETURN(const uint64_t code, reader.number());
  FT_ASSIGN_OR_RETURN(std::string text, reader.text());
  if (code == 0 || code > static_cast<uint64_t>(StatusCode::kInternal)) return cut_short();
  return Status(static_cast<StatusCode>(code), std::move(text));
}

}  // namespace foretoken::group
