#include "config/engine_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/config_members.h"

namespace foretoken {
namespace {

TEST(EngineFields, EveryMemberHasARow) {
  // What is no value, and has readers of its own.
  const std::set<std::string> others = {"parallel",         "lora_modules",         "speculative",
                                        "on_load_progress", "on_download_progress", "cancel_load"};
  size_t count = 0;
  for (const char* name : {"EngineConfig", "ParallelConfig"}) {
    for (const std::string& member : test::config_members(name)) {
      if (others.count(member) != 0) continue;
      ++count;
      EXPECT_NE(find_engine_field(member), nullptr) << member << ": give it a row of the table";
    }
  }
  // vLLM's names of the first host's address and port set members that have rows.
  EXPECT_EQ(count + 2, engine_fields().size());
}

TEST(EngineFields, GroupsStandTogetherAndNamesOnce) {
  std::set<std::string> names;
  std::vector<std::string> groups;
  for (const EngineField& field : engine_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    if (groups.empty() || groups.back() != field.group) groups.emplace_back(field.group);
  }
  EXPECT_EQ(std::set<std::string>(groups.begin(), groups.end()).size(), groups.size());
}

TEST(EngineFields, DefaultsAreInRange) {
  const Status status = check_engine_fields(EngineConfig());
  EXPECT_TRUE(status.ok()) << status.message();
  for (const EngineField& field : engine_fields()) {
    const std::vector<std::string> choices = field_choices(field.choices);
    const std::string text = engine_field_text(field, EngineConfig());
    const bool listed = choices.empty() || field.automatic != nullptr ||
                        std::find(choices.begin(), choices.end(), text) != choices.end();
    EXPECT_TRUE(listed) << field.name;
  }
}

TEST(EngineFields, WhatIsOutOfRangeIsNamed) {
  const auto message = [](auto change) {
    EngineConfig config;
    change(config);
    return check_engine_fields(config).message();
  };
  EXPECT_EQ(message([](EngineConfig& c) { c.steps_in_flight = 9; }),
            "--steps-in-flight 9 is out of range; use 1 to 3");
  EXPECT_EQ(message([](EngineConfig& c) { c.max_num_seqs = -2; }),
            "--max-num-seqs -2 is out of range; use at least 1");
  EXPECT_EQ(message([](EngineConfig& c) { c.kv_cache_memory_bytes = -5; }),
            "--kv-cache-memory-bytes -5 is out of range; use at least 1");
  EXPECT_EQ(message([](EngineConfig& c) { c.scheduling_policy = "lottery"; }),
            "--scheduling-policy 'lottery' is unknown; use fcfs or priority");
  EXPECT_EQ(message([](EngineConfig& c) { c.block_size = 0; }),
            "--block-size 0 is out of range; use at least 1");
  EXPECT_EQ(message([](EngineConfig& c) { c.gpu_memory_utilization = 1.5; }),
            "--gpu-memory-utilization must lie in (0, 1]");
  EXPECT_EQ(message([](EngineConfig& c) { c.max_model_len = -1; }), "");
}

TEST(EngineFields, WhatIsNearestIsUsed) {
  const auto block_of = [](int given) {
    EngineConfig config;
    config.block_size = given;
    EXPECT_TRUE(check_engine_fields(config).ok());
    const std::vector<std::string> changes = take_nearest(&config);
    EXPECT_EQ(changes.size(), config.block_size == given ? 0u : 1u);
    return config.block_size;
  };
  EXPECT_EQ(block_of(1), 16);
  EXPECT_EQ(block_of(16), 16);
  EXPECT_EQ(block_of(24), 16) << "the smaller of two: prefixes are found to more of their end";
  EXPECT_EQ(block_of(25), 32);
  EXPECT_EQ(block_of(128), 64);
  EXPECT_EQ(block_of(256), 64);

  EngineConfig config;
  config.max_num_seqs = 10240;
  config.max_num_batched_tokens = 262144;
  EXPECT_TRUE(check_engine_fields(config).ok());
  EXPECT_EQ(take_nearest(&config),
            (std::vector<std::string>{
                "--max-num-seqs 10240: 4096 is used, the nearest that there is",
                "--max-num-batched-tokens 262144: 65536 is used, the nearest that there is"}));
  EXPECT_EQ(config.max_num_seqs, 4096);
  EXPECT_EQ(take_nearest(&config), std::vector<std::string>());

  EngineConfig automatic;
  EXPECT_EQ(take_nearest(&automatic), std::vector<std::string>());
  EXPECT_EQ(automatic.max_num_seqs, 0) << "chosen by the device";
}

TEST(EngineFields, TextsOfValues) {
  EngineConfig config;
  config.cudagraph_capture_sizes = {1, 4};
  config.seed = UINT64_MAX;
  const auto text = [&](const char* name) {
    return engine_field_text(*find_engine_field(name), config);
  };
  EXPECT_EQ(text("cudagraph_capture_sizes"), "1,4");
  EXPECT_EQ(text("seed"), "18446744073709551615");
  EXPECT_EQ(text("enable_prefix_caching"), "1");
  EXPECT_EQ(engine_flag(*find_engine_field("max_num_seqs")), "--max-num-seqs");
  EXPECT_TRUE(is_automatic(*find_engine_field("max_num_seqs"), config));
  EXPECT_FALSE(is_automatic(*find_engine_field("steps_in_flight"), config));
}

}  // namespace
}  // namespace foretoken
