#include "model/weights/stages.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Stages, EachLayerHasOneOwner) {
  for (const int32_t count : {1, 2, 3, 4}) {
    for (const int32_t num_layers : {4, 5, 10, 32}) {
      int32_t next = 0;
      for (int32_t rank = 0; rank < count; ++rank) {
        const Stages stages{rank, count};
        const ShardRange own = stages.layers(num_layers);
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.count, 1);
        for (int32_t layer = 0; layer < num_layers; ++layer) {
          EXPECT_EQ(stages.owns(layer, num_layers),
                    layer >= own.begin && layer < own.begin + own.count);
        }
        next = static_cast<int32_t>(own.begin + own.count);
      }
      EXPECT_EQ(next, num_layers);
    }
  }
}

TEST(Stages, MoreStagesThanLayersAreRefused) {
  EXPECT_TRUE(check_stages({0, 4}, 4).ok());
  const Status status = check_stages({0, 5}, 4);
  EXPECT_NE(status.message().find("--pipeline-parallel-size 5"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
