#include "config/engine_rank_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "config/engine_fields.h"

namespace foretoken {
namespace {

TEST(EngineRankFields, AreRowsOfTheTableSideBySide) {
  const std::span<const EngineField> all = engine_fields(), own = engine_rank_fields();
  const auto first = std::find_if(all.begin(), all.end(), [&](const EngineField& field) {
    return std::string(field.name) == own.front().name;
  });
  ASSERT_GE(all.end() - first, static_cast<std::ptrdiff_t>(own.size()));
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_STREQ((first + static_cast<std::ptrdiff_t>(i))->name, own[i].name);
    EXPECT_STREQ(own[i].group, "Ranks");
  }
}

// vLLM's names of a host's address and port are those of the same members.
TEST(EngineRankFields, TwoNamesSetOneMember) {
  EngineConfig config;
  config.parallel.master_addr = "host0";
  config.parallel.master_port = 7;
  EXPECT_EQ(engine_field_text(*find_engine_field("data_parallel_address"), config), "host0");
  EXPECT_EQ(engine_field_text(*find_engine_field("data_parallel_rpc_port"), config), "7");
}

// Nought engines are a number that a host may have; not to say how many is another thing.
TEST(EngineRankFields, AHostMayHaveNoEngine) {
  EngineConfig config;
  const EngineField& local = *find_engine_field("data_parallel_size_local");
  EXPECT_TRUE(is_automatic(local, config));
  config.parallel.data_parallel_size_local = 0;
  EXPECT_FALSE(is_automatic(local, config));
  EXPECT_TRUE(check_engine_field(local, config).ok());
  config.parallel.data_parallel_rank = -2;
  EXPECT_NE(check_engine_fields(config).message().find("--data-parallel-rank -2"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
