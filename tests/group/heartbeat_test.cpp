#include "group/heartbeat.h"

#include <gtest/gtest.h>

#include "group/wire/message.h"
#include "socket_pairs.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

// Longer than any machine stands still.
constexpr auto kPatient = 600'000ms;

bool ends(LinkShared& shared) {
  return wait_for(shared.end.descriptor(), 1, -1, Clock::now() + 120s) == Waited::kReady;
}

std::vector<Socket> control_of(Socket socket, bool of_rank_0) {
  std::vector<Socket> control;
  if (of_rank_0) control.emplace_back();
  control.push_back(std::move(socket));
  return control;
}

TEST(Heartbeat, ASilentRankEndsTheGroupAndIsNamed) {
  auto [here, there] = socket_pair();
  auto shared = share(0, 2);
  shared->activity.note("all_reduce of step 12");
  Message beat(MessageKind::kBeat);
  beat.put("all_reduce of step 11");
  ASSERT_TRUE(send_message(there, beat, -1, Clock::now() + 120s).ok());
  Heartbeat heartbeat(shared, control_of(std::move(here), true), {1000ms, 200ms});
  ASSERT_TRUE(ends(*shared));
  const std::string why = shared->end.why().message();
  EXPECT_EQ(why.find("rank 1 (tp 1) has not answered rank 0 (tp 0) for "), 0u) << why;
  EXPECT_NE(why.find("last in all_reduce of step 11, this rank in all_reduce of step 12"),
            std::string::npos)
      << why;
}

TEST(Heartbeat, ADeadRankEndsTheGroupAndIsNamed) {
  auto [here, there] = socket_pair();
  auto shared = share(1, 2);
  there.close();
  Heartbeat heartbeat(shared, control_of(std::move(here), false), {1000ms, kPatient});
  ASSERT_TRUE(ends(*shared));
  EXPECT_EQ(shared->end.why().message().find("rank 0 (tp 0) ended without a word"), 0u)
      << shared->end.why().message();
}

TEST(Heartbeat, BeatsKeepAGroupAlive) {
  auto [here, there] = socket_pair();
  auto shared = share(0, 2);
  shared->activity.note("all_reduce of step 12");
  Heartbeat heartbeat(shared, control_of(std::move(here), true), {1ms, kPatient});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(send_message(there, Message(MessageKind::kBeat), -1, Clock::now() + 120s).ok());
    const Result<Message> beat = receive_message(there, -1, Clock::now() + 120s);
    ASSERT_TRUE(beat.ok()) << beat.status().message();
    EXPECT_EQ(beat.value().kind(), MessageKind::kBeat);
    EXPECT_EQ(MessageReader(beat.value()).text().value(), "all_reduce of step 12");
  }
  EXPECT_FALSE(shared->end.ended());
}

TEST(Heartbeat, OneEndIsTheEndOfAll) {
  auto [a, b] = socket_pair();
  auto first = share(0, 2);
  auto second = share(1, 2);
  Heartbeat of_first(first, control_of(std::move(a), true), {1000ms, kPatient});
  Heartbeat of_second(second, control_of(std::move(b), false), {1000ms, kPatient});
  second->end.end(internal_error("the kettle boiled over"));
  ASSERT_TRUE(ends(*first));
  EXPECT_EQ(first->end.why().message(), "the kettle boiled over");
}

}  // namespace
}  // namespace foretoken::group
