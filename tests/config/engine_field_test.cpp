#include "config/engine_field.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "config/engine_fields.h"

namespace foretoken {
namespace {

TEST(EngineField, MembersOfBothStructsAreVisited) {
  EngineConfig config;
  config.max_num_seqs = 7;
  config.parallel.nnodes = 3;
  int64_t seen = 0;
  const auto add = [&](auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int>) seen += value++;
  };
  visit_engine_member(*find_engine_field("max_num_seqs"), config, add);
  visit_engine_member(*find_engine_field("nnodes"), config, add);
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(config.max_num_seqs, 8);
  EXPECT_EQ(config.parallel.nnodes, 4);
}

}  // namespace
}  // namespace foretoken
