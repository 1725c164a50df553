#include "http/server/server_state.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken::http {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<ServerState> made_state() {
  return std::make_unique<ServerState>(ServerConfig(), std::move(Router::make({}).value()));
}

TEST(HttpServerState, WaitsForTheLastOne) {
  const auto state = made_state();
  EXPECT_TRUE(state->wait_idle(Clock::now()));
  state->add_connection(1);
  state->add_busy(1);
  EXPECT_FALSE(state->wait_idle(Clock::now()));
  std::thread other([&] {
    state->add_busy(-1);
    state->add_connection(-1);
  });
  EXPECT_TRUE(state->wait_idle(Clock::now() + std::chrono::seconds(120)));
  EXPECT_TRUE(state->wait_closed(Clock::now() + std::chrono::seconds(120)));
  other.join();
  EXPECT_EQ(state->num_connections(), 0U);
}

TEST(HttpServerState, ErrorsHaveABodyByDefault) {
  EXPECT_EQ(made_state()->config.error_body(404, "no \"x\"", "/y"),
            R"({"error":{"code":404,"message":"no \"x\""}})");
  EXPECT_FALSE(made_state()->config.error_body(400, "\xff", "").empty());
}

}  // namespace
}  // namespace foretoken::http
