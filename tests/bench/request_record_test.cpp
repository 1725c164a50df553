#include "bench/request_record.h"

#include <gtest/gtest.h>

namespace foretoken::bench {
namespace {

TEST(RequestRecord, TimePerOutputTokenIsForTokensAfterTheFirst) {
  RequestRecord record;
  record.ttft = 0.1;
  record.latency = 0.5;
  record.output_tokens = 5;
  EXPECT_DOUBLE_EQ(record.tpot(), 0.1);
  record.output_tokens = 1;
  EXPECT_EQ(record.tpot(), 0);
}

TEST(RequestRecord, Chunks) {
  RequestRecord record;
  EXPECT_EQ(record.num_chunks(), 0u);
  record.ttft = 0.1;
  record.itls = {0.1, 0.2};
  EXPECT_EQ(record.num_chunks(), 3u);
}

}  // namespace
}  // namespace foretoken::bench
