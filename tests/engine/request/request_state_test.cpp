#include "engine/request/request_state.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace foretoken {
namespace {

// Both threads hold its address: a record never moves.
static_assert(!std::is_copy_constructible_v<RequestState>);
static_assert(!std::is_move_constructible_v<RequestState>);

TEST(RequestState, StartsWaitingAndUnfinished) {
  const RequestState state;
  EXPECT_EQ(state.sequence.state, SequenceState::kWaiting);
  EXPECT_FALSE(state.end_requested.load());
  EXPECT_FALSE(state.finished);
  EXPECT_EQ(state.next_submitted, nullptr);
  EXPECT_TRUE(state.output.token_ids.empty());
  EXPECT_EQ(state.stats.num_output_tokens, 0);
}

}  // namespace
}  // namespace foretoken
