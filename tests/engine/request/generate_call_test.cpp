#include "engine/request/generate_call.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

RequestOutput output(int32_t id, int index, bool finished) {
  RequestOutput made;
  made.index = index;
  made.token_ids = {id};
  made.request_finished = finished;
  return made;
}

TEST(GenerateCall, WaitsForAllAndKeepsTheirOrder) {
  std::vector<Request> requests(3);
  requests[1].sampling.n = 2;
  GenerateCall call(requests);
  std::thread others([&, third = call.callback(2), second = call.callback(1)] {
    third(output(7, 0, true));
    second(output(4, 1, false));
    second(output(3, 0, true));
  });
  const OutputCallback first = call.callback(0);
  first(output(1, 0, false));
  first(output(2, 0, true));
  const std::vector<RequestOutput> outputs = call.take();
  others.join();
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(outputs[0].token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(outputs[1].token_ids, std::vector<int32_t>{3});
  EXPECT_EQ(outputs[2].token_ids, std::vector<int32_t>{4});
  EXPECT_EQ(outputs[3].token_ids, std::vector<int32_t>{7});
}

TEST(GenerateCall, AFailureIsEveryChoicesError) {
  std::vector<Request> requests(2);
  requests[0].sampling.n = 2;
  GenerateCall call(requests);
  call.fail(0, invalid_argument("no"));
  call.callback(1)(output(5, 0, true));
  const std::vector<RequestOutput> outputs = call.take();
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0].status.message(), "no");
  EXPECT_EQ(outputs[1].status.message(), "no");
  EXPECT_TRUE(outputs[2].status.ok());
}

TEST(GenerateCall, OfNothingReturnsAtOnce) { EXPECT_TRUE(GenerateCall({}).take().empty()); }

}  // namespace
}  // namespace foretoken
