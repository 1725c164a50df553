#include "config/engine_names.h"

#include <gtest/gtest.h>

#include <set>

#include "config/engine_fields.h"

namespace foretoken {
namespace {

TEST(EngineNames, ANameHasOneMeaningAtADoor) {
  for (const FieldDoor door : {kCommandLine, kPython}) {
    std::set<std::string> names;
    for (const VllmName& row : vllm_names()) {
      if ((row.doors & door) == 0) continue;
      EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands there twice";
      const EngineField* field = find_engine_field(row.name);
      const bool is_real = field != nullptr && (field->doors & door) != 0;
      EXPECT_FALSE(is_real) << row.name << " is a field, and has an effect";
    }
  }
}

TEST(EngineNames, EverySentenceNamesWhatIsThere) {
  for (const VllmName& row : vllm_names()) {
    EXPECT_GT(std::string_view(row.why).size(), 8u) << row.name;
    EXPECT_EQ(std::string_view(row.why).find("remove it"), std::string_view::npos) << row.name;
  }
}

NameVerdict judged(const char* name, const char* value, FieldDoor door = kCommandLine) {
  const VllmName* row = find_vllm_name(name, door);
  EXPECT_NE(row, nullptr) << name;
  return judge_vllm_name(*row, value, "org/model");
}

TEST(EngineNames, ValuesAreJudged) {
  EXPECT_EQ(judged("tokenizer", "org/model"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("tokenizer", "org/other"), NameVerdict::kRefused);
  EXPECT_EQ(judged("trust_remote_code", "true"), NameVerdict::kWithoutEffect);
  EXPECT_EQ(judged("trust_remote_code", "false"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("enable_chunked_prefill", "true"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("enable_chunked_prefill", "false"), NameVerdict::kWithoutEffect);
  EXPECT_EQ(judged("enable_eplb", "true"), NameVerdict::kRefused);
  EXPECT_EQ(judged("enable_eplb", "false"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("config_format", "HF"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("config_format", "mistral"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("runner", "pooling"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("moe_backend", "deep_gemm"), NameVerdict::kWithoutEffect);
  EXPECT_EQ(judged("swap_space", "9", kPython), NameVerdict::kWithoutEffect);
  EXPECT_EQ(find_vllm_name("middleware", kPython), nullptr);
}

TEST(EngineNames, ObjectsThatAskForNothingPass) {
  for (const char* value : {"", "None", "null", "{}", "{\"publisher\": \"zmq\"}",
                            "{\"enable_kv_cache_events\": false, \"publisher\": \"zmq\"}"}) {
    EXPECT_EQ(judged("kv_events_config", value), NameVerdict::kHarmless) << value;
  }
  for (const char* value : {"{\"enable_kv_cache_events\": true}", "zmq", "{"}) {
    EXPECT_EQ(judged("kv_events_config", value), NameVerdict::kRefused) << value;
  }
  EXPECT_EQ(judged("ec_transfer_config", "{ }"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("ec_transfer_config", "{\"ec_connector\": \"ECCPUConnector\"}"),
            NameVerdict::kRefused);
  EXPECT_EQ(judged("eplb_config", "{}"), NameVerdict::kHarmless);
  EXPECT_EQ(judged("attention_config", "{\"use_fp4_indexer_cache\": \"True\"}"),
            NameVerdict::kWithoutEffect);
  EXPECT_EQ(judged("attention_config", "{\"backend\": \"FLASH_ATTN\"}"), NameVerdict::kRefused);
}

TEST(EngineNames, FlagsBecomeFields) {
  EXPECT_EQ(with_field_names("use --max-num-seqs, or --k2x: --"), "use max_num_seqs, or k2x: --");
  EXPECT_EQ(with_field_names("a--b"), "a--b");
}

}  // namespace
}  // namespace foretoken
