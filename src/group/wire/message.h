#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "group/wire/socket.h"

namespace foretoken::group {

// What ranks tell each other beside the links.
enum class MessageKind : uint32_t {
  kHello = 1,    // a rank to rank 0: who it is
  kWelcome = 2,  // rank 0 to a rank: the others' addresses
  kRefuse = 3,   // rank 0 to a rank: why the group cannot be
  kLane = 4,     // the first message of a link's connection
  kBeat = 5,     // alive; what its last call was
  kEnd = 6,      // the group ends, and why
  kLeave = 7,    // this rank ends as meant
};

// A kind and its fields, in the order in which they were put.
class Message {
 public:
  explicit Message(MessageKind kind) : kind_(kind) {}
  Message(MessageKind kind, std::string body) : kind_(kind), body_(std::move(body)) {}

  MessageKind kind() const { return kind_; }
  const std::string& body() const { return body_; }

  void put(uint64_t number);
  void put(std::string_view text);

 private:
  MessageKind kind_;
  std::string body_;
};

// Reads fields back; what is missing or too long is an error that says so, never a crash.
class MessageReader {
 public:
  explicit MessageReader(const Message& message) : rest_(message.body()) {}
  Result<uint64_t> number();
  Result<std::string> text();

 private:
  std::string_view rest_;
};

// As bytes on a connection: magic, kind, size of the body (three little-endian uint32), body.
inline constexpr std::size_t kMessageHeadBytes = 12;
inline constexpr uint32_t kMaxMessageBytes = 16u << 20;

Status send_message(const Socket& socket, const Message& message, int stop_descriptor,
                    Clock::time_point deadline);
// InvalidArgument when the other side does not speak this protocol.
Result<Message> receive_message(const Socket& socket, int stop_descriptor,
                                Clock::time_point deadline);
// The message if it is of this kind; a kRefuse or kEnd becomes the error that it tells.
Result<Message> expect_message(const Socket& socket, MessageKind kind, int stop_descriptor,
                               Clock::time_point deadline);

// A Status as the fields of kRefuse and kEnd, and back; never ok.
void put_status(const Status& status, Message* message);
Status read_status(MessageReader& reader);

}  // namespace foretoken::group
