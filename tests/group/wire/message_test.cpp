#include "group/wire/message.h"

#include <gtest/gtest.h>

#include "group/socket_pairs.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

TEST(Message, FieldsComeBackInOrder) {
  Message message(MessageKind::kHello);
  message.put(uint64_t{0x123456789abcdef0});
  message.put("a text with \0 in it");
  message.put("");
  MessageReader reader(message);
  EXPECT_EQ(reader.number().value(), 0x123456789abcdef0u);
  EXPECT_EQ(reader.text().value(), "a text with ");
  EXPECT_EQ(reader.text().value(), "");
  EXPECT_FALSE(reader.number().ok());
}

TEST(Message, CutBodiesAreErrors) {
  Message whole(MessageKind::kHello);
  whole.put("twelve bytes");
  for (std::size_t size = 0; size < whole.body().size(); ++size) {
    const Message cut(MessageKind::kHello, whole.body().substr(0, size));
    MessageReader reader(cut);
    EXPECT_FALSE(reader.text().ok()) << size;
  }
}

TEST(Message, TravelsAndStrangersAreRefused) {
  auto [a, b] = socket_pair();
  const auto soon = Clock::now() + 120s;
  Message message(MessageKind::kBeat);
  message.put("all_gather of step 3");
  ASSERT_TRUE(send_message(a, message, -1, soon).ok());
  Result<Message> got = expect_message(b, MessageKind::kBeat, -1, soon);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().body(), message.body());

  const std::string http = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(send_all(a, std::as_bytes(std::span(http)), -1, soon).ok());
  EXPECT_EQ(receive_message(b, -1, soon).status().message(),
            "the other side is no rank of a foretoken group");
}

TEST(Message, ARefusalIsTheErrorThatItTells) {
  auto [a, b] = socket_pair();
  const auto soon = Clock::now() + 120s;
  Message message(MessageKind::kRefuse);
  put_status(invalid_argument("two ranks are 3"), &message);
  ASSERT_TRUE(send_message(a, message, -1, soon).ok());
  const Status told = expect_message(b, MessageKind::kWelcome, -1, soon).status();
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(told.message(), "two ranks are 3");
  ASSERT_TRUE(send_message(a, Message(MessageKind::kBeat), -1, soon).ok());
  EXPECT_EQ(expect_message(b, MessageKind::kWelcome, -1, soon).status().code(),
            StatusCode::kInternal);
}

}  // namespace
}  // namespace foretoken::group
