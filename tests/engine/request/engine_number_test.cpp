#include "engine/request/engine_number.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(EngineNumber, IsOneOfThoseThereAre) {
  Request request;
  EXPECT_TRUE(check_engine_number(request, 1).ok());
  request.data_parallel_rank = 3;
  EXPECT_TRUE(check_engine_number(request, 4).ok());
  EXPECT_EQ(check_engine_number(request, 3).message(),
            "data_parallel_rank 3 is out of range; a request may name the engines 0 to 2");
  EXPECT_EQ(check_engine_number(request, 1).message(),
            "data_parallel_rank 3 is out of range; a request may name engine 0 alone");
  request.data_parallel_rank = -1;
  EXPECT_FALSE(check_engine_number(request, 4).ok());
}

}  // namespace
}  // namespace foretoken
