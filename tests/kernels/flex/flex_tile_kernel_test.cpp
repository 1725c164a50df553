#include "kernels/flex/flex_tile_kernel.h"

#include <gtest/gtest.h>

#include "kernels/flex/flex_program.h"
#include "kernels/flex/flex_source.h"

// The kernel itself runs on GPUs alone: tests/kernels/attention/flex_attention_test.cpp.

namespace foretoken {
namespace {

TEST(FlexTileKernel, TilesAreOfHeadsThatTheirKernelTakes) {
  FlexProgram program = parse_flex("kv <= q and q - kv < 77", "score * 0.5").value();
  const int32_t sizes[] = {80, 128, 64, 128};
  add_tile_sources(program, sizes);
  ASSERT_EQ(program.tiles.size(), 2u);
  EXPECT_EQ(program.tile_of(80), nullptr);
  for (const int32_t size : {64, 128}) {
    const FlexTileSource* tile = program.tile_of(size);
    ASSERT_NE(tile, nullptr);
    EXPECT_EQ(tile->plain, flex_tile_source(program, false, size));
    EXPECT_NE(tile->plain, tile->codes);
    for (const std::string* source : {&tile->plain, &tile->codes}) {
      EXPECT_NE(source->find("#define TILE_DIM " + std::to_string(size)), std::string::npos);
      EXPECT_NE(source->find("77"), std::string::npos);
      EXPECT_NE(source->find(kFlexTileKernel), std::string::npos);
    }
  }
}

// Where all heads have one, no other kernel need be compiled.
TEST(FlexTileKernel, OtherHeadsAreThoseThatNoTileTakes) {
  FlexProgram program = parse_flex("kv <= q", "").value();
  EXPECT_TRUE(program.has_other_heads);
  const int32_t taken[] = {128, 64}, one_is_not[] = {128, 80};
  add_tile_sources(program, taken, true);
  EXPECT_FALSE(program.has_other_heads);
  add_tile_sources(program, taken);
  EXPECT_TRUE(program.has_other_heads);
  add_tile_sources(program, one_is_not, true);
  EXPECT_TRUE(program.has_other_heads);
  add_tile_sources(program, {}, true);
  EXPECT_TRUE(program.has_other_heads);
}

}  // namespace
}  // namespace foretoken
