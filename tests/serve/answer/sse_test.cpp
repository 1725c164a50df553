#include "serve/answer/sse.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Sse, EventsAreOneLineEach) {
  EXPECT_EQ(sse_data({{"a", "x\ny"}}), "data: {\"a\":\"x\\ny\"}\n\n");
  EXPECT_EQ(sse_event("ping", nlohmann::ordered_json::object()), "event: ping\ndata: {}\n\n");
  EXPECT_EQ(sse_done(), "data: [DONE]\n\n");
}

}  // namespace
}  // namespace foretoken
