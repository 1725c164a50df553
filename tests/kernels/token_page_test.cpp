#include "kernels/cpu/token_page.h"

#include <gtest/gtest.h>

namespace foretoken::cpu {
namespace {

TEST(TokenPage, FollowsTheBlockTable) {
  int32_t tables[] = {3, 1, 2, 0};
  int32_t pages[16] = {};
  PageHeader headers[4] = {};
  BatchState batch{};
  batch.block_tables = tables;
  batch.token_pages = pages;
  batch.page_headers = headers;
  batch.max_blocks = 2;
  batch.block_size = 4;
  batch.num_slots = 2;
  EXPECT_EQ(block_of(batch, 0, 5), 1);
  EXPECT_EQ(block_of(batch, 1, 0), 2);
  write_token(batch, 0, 6, 42);
  EXPECT_EQ(token_at(batch, 0, 6), 42);
  EXPECT_EQ(pages[4 + 2], 42);
  EXPECT_EQ(headers[1].count, 3);
  write_token(batch, 0, 4, 41);
  EXPECT_EQ(headers[1].count, 3) << "the count only grows";
}

}  // namespace
}  // namespace foretoken::cpu
