#include "model/config/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "dialled/safetensors_writer.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"rms_norm_eps", 1e-5},
          {"max_position_embeddings", 4096},
          {"rope_theta", 500000.0},
          {"hidden_act", "silu"},
          {"torch_dtype", "bfloat16"},
          {"eos_token_id", 2}};
}

Result<ModelConfig> parse(const Json& json, const std::string& dtype = "auto",
                          const Json& generation = Json::object()) {
  return parse_model_config(json, generation, {dtype, ""}, "config.json");
}

TEST(Config, ReadsEveryField) {
  const auto parsed = parse(llama());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.vocab_size, 1000);
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 128);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.num_heads, 8);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.max_position_embeddings, 4096);
  EXPECT_EQ(config.rms_norm_eps, 1e-5f);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config.eos_token_ids, std::vector<int32_t>{2});
}

TEST(Config, LingsHeadsAreReadAsTransformersSavesThem) {
  Json json = llama();
  json.update({{"architectures", {"BailingHybridForCausalLM"}},
               {"model_type", "bailing_hybrid"},
               {"num_key_value_heads", 8},
               {"head_dim", 8},
               {"qk_rope_head_dim", 8},
               {"qk_nope_head_dim", 16},
               {"v_head_dim", 16},
               {"kv_lora_rank", 16},
               {"num_experts", 4},
               {"num_experts_per_tok", 2},
               {"n_group", 2},
               {"topk_group", 1},
               {"moe_intermediate_size", 32}});
  for (const int dim : {8, 16}) {
    if (dim != 8) json["linear_head_dim"] = dim;
    const auto parsed = parse(json);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed.value().recurrent.key_dim, dim);
    EXPECT_EQ(parsed.value().recurrent.value_dim, dim);
  }
}

TEST(Config, OverridesTakeTheNumbersThatJsonHasNoWordsFor) {
  for (const char* number : {R"({"__float__": "Infinity"})", "Infinity"}) {
    const std::string overrides = R"({"rms_norm_eps": )" + std::string(number) + "}";
    const Status refused =
        parse_model_config(llama(), Json::object(), {"auto", overrides}, "config.json").status();
    EXPECT_NE(refused.message().find("'rms_norm_eps' is Infinity"), std::string::npos)
        << refused.message();
  }
}

TEST(Config, OptionalFieldsAndOtherNames) {
  Json json = llama();
  json.erase("num_key_value_heads");
  json.erase("torch_dtype");
  json.erase("rope_theta");
  json["dtype"] = "float16";
  json["head_dim"] = 32;
  json["eos_token_id"] = {5, 6};
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 77.0}};
  const auto parsed = parse(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().num_kv_heads, 8);
  EXPECT_EQ(parsed.value().head_dim, 32);
  EXPECT_EQ(parsed.value().dtype, DType::kF32);
  EXPECT_EQ(parsed.value().eos_token_ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(parse(json, "auto", {{"eos_token_id", 9}}).value().eos_token_ids,
            std::vector<int32_t>{9});
  EXPECT_EQ(
      parse(json, "auto", {{"eos_token_id", {1000, 6, -1, 4294967295}}}).value().eos_token_ids,
      std::vector<int32_t>{6})
      << "ids outside the vocabulary end nothing";
  EXPECT_EQ(parse(json, "auto", {{"eos_token_id", {7.0, nullptr}}}).value().eos_token_ids,
            std::vector<int32_t>{7})
      << "as some tools write ids";
  EXPECT_FALSE(parse(json, "auto", {{"eos_token_id", 7.5}}).ok());
  EXPECT_EQ(parse(json, "bfloat16").value().dtype, DType::kBF16);
  for (const char* name : {"auto", "half", "float", "torch.float16"}) {
    json["dtype"] = name;
    EXPECT_EQ(parse(json).value().dtype, DType::kF32) << name;
  }
  EXPECT_EQ(parse(llama(), "float32").value().dtype, DType::kF32);
}

struct BadConfig {
  const char* name;
  std::function<void(Json&)> change;
  StatusCode code;
  std::vector<std::string> said;
};

std::vector<BadConfig> bad_configs() {
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  constexpr StatusCode kUnsupported = StatusCode::kUnsupported;
  return {
      {"UnknownArchitecture",
       [](Json& j) { j = {{"architectures", {"JetMoeForCausalLM"}}}; },
       kUnsupported,
       {"'JetMoeForCausalLM'", "experts of attention"}},
      {"NoArchitecture",
       [](Json& j) { j.erase("architectures"); },
       kInvalid,
       {"'architectures'", "foretoken inspect --families"}},
      {"MissingField",
       [](Json& j) { j.erase("hidden_size"); },
       kInvalid,
       {"'hidden_size' is missing"}},
      {"TextForNumber",
       [](Json& j) { j["vocab_size"] = "1000"; },
       kInvalid,
       {"'vocab_size' is \"1000\"", "an integer"}},
      {"Zero", [](Json& j) { j["num_hidden_layers"] = 0; }, kInvalid, {"'num_hidden_layers' is 0"}},
      {"Negative", [](Json& j) { j["intermediate_size"] = -4; }, kInvalid, {"is -4"}},
      {"Fraction", [](Json& j) { j["hidden_size"] = 64.5; }, kInvalid, {"is 64.5"}},
      {"Huge", [](Json& j) { j["vocab_size"] = 18446744073709551615ull; }, kInvalid, {"2^24"}},
      {"HeadsDoNotDivide",
       [](Json& j) { j["num_key_value_heads"] = 3; },
       kInvalid,
       {"num_attention_heads 8", "num_key_value_heads 3"}},
      {"NoHeadDim", [](Json& j) { j["hidden_size"] = 65; }, kInvalid, {"set 'head_dim'"}},
      {"OddHeadDim", [](Json& j) { j["head_dim"] = 7; }, kInvalid, {"head_dim 7 is odd"}},
      {"WideHead", [](Json& j) { j["head_dim"] = 4096; }, kUnsupported, {"head_dim 4096"}},
      {"RopeType",
       [](Json& j) { j["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 8.0}}; },
       kUnsupported,
       {"rope type \"spiral\"", "supported: default, linear, dynamic, llama3, yarn"}},
      {"OldRopeType",
       [](Json& j) { j["rope_scaling"] = {{"type", "xpos"}}; },
       kUnsupported,
       {"\"xpos\""}},
      {"RopeParametersType",
       [](Json& j) { j["rope_parameters"] = {{"rope_type", "helix"}}; },
       kUnsupported,
       {"\"helix\""}},
      {"RopeNotAnObject",
       [](Json& j) { j["rope_scaling"] = 2; },
       kInvalid,
       {"'rope_scaling' is 2"}},
      {"RopeTheta", [](Json& j) { j["rope_theta"] = 0; }, kInvalid, {"'rope_theta' is 0"}},
      {"PartialRotary",
       [](Json& j) { j["partial_rotary_factor"] = 0.4; },
       kInvalid,
       {"partial_rotary_factor 0.4", "head_dim 8", "even"}},
      {"WindowZero",
       [](Json& j) {
         j["architectures"] = {"MistralForCausalLM"};
         j["sliding_window"] = 0;
       },
       kInvalid,
       {"'sliding_window' is 0"}},
      {"WindowNegative",
       [](Json& j) {
         j["architectures"] = {"Phi3ForCausalLM"};
         j["sliding_window"] = -5;
       },
       kInvalid,
       {"'sliding_window' is -5"}},
      {"LayerTypes",
       [](Json& j) { j["layer_types"] = {"full_attention"}; },
       kInvalid,
       {"'layer_types' has 1 entries for 3 layers"}},
      {"SoftCap",
       [](Json& j) {
         j["architectures"] = {"Gemma2ForCausalLM"};
         j["attn_logit_softcapping"] = -50;
       },
       kInvalid,
       {"'attn_logit_softcapping' is -50"}},
      {"QueryScalar",
       [](Json& j) { j["query_pre_attn_scalar"] = "256"; },
       kInvalid,
       {"'query_pre_attn_scalar' is \"256\""}},
      {"Bidirectional",
       [](Json& j) {
         j["architectures"] = {"Gemma2ForCausalLM"};
         j["use_bidirectional_attention"] = true;
       },
       kUnsupported,
       {"attention to later tokens", "windows"}},
      {"NoTextConfig",
       [](Json& j) { j = {{"architectures", {"Gemma3ForConditionalGeneration"}}}; },
       kInvalid,
       {"'text_config' is missing"}},
      {"Flag",
       [](Json& j) { j["tie_word_embeddings"] = 1; },
       kInvalid,
       {"'tie_word_embeddings' is 1", "true or false"}},
      {"EosType", [](Json& j) { j["eos_token_id"] = "</s>"; }, kInvalid, {"'eos_token_id'"}},
      {"Activation",
       [](Json& j) { j["hidden_act"] = "mish"; },
       kUnsupported,
       {"\"mish\"", "supported: silu, gelu, gelu_pytorch_tanh"}},
      {"Quantised",
       [](Json& j) { j["quantization_config"] = {{"quant_method", "aqlm"}}; },
       kUnsupported,
       {"quantization_config"}},
      {"Type",
       [](Json& j) { j["torch_dtype"] = "float8"; },
       kUnsupported,
       {"\"float8\"", "--dtype float32"}},
  };
}

class ConfigBad : public testing::TestWithParam<BadConfig> {};

TEST_P(ConfigBad, IsRefusedWithItsName) {
  Json json = llama();
  GetParam().change(json);
  const auto config = parse(json);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), GetParam().code);
  EXPECT_EQ(config.status().message().rfind("config.json: ", 0), 0u);
  for (const std::string& part : GetParam().said) {
    EXPECT_NE(config.status().message().find(part), std::string::npos)
        << config.status().message() << "\nlacks: " << part;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ConfigBad, testing::ValuesIn(bad_configs()),
                         [](const auto& test) { return std::string(test.param.name); });

// transformers 5 saves EXAONE 3 as a Llama whose tensors have EXAONE's names.
TEST(Config, ExaoneIsExaoneWhateverItsClass) {
  Json json = llama();
  json["architectures"] = {"LlamaForCausalLM"};
  EXPECT_EQ(parse(json).value().architecture, "LlamaForCausalLM");
  json["model_type"] = "exaone";
  EXPECT_EQ(parse(json).value().architecture, "ExaoneForCausalLM");
}

// As transformers writes some, and as model cards cut others down.
TEST(Config, TheTypeStandsForMissingArchitectures) {
  Json json = llama();
  json.erase("architectures");
  json["model_type"] = "qwen3";
  const auto qwen = parse(json);
  ASSERT_TRUE(qwen.ok()) << qwen.status().message();
  EXPECT_EQ(qwen.value().architecture, "Qwen3ForCausalLM");
  json["architectures"] = Json::array();
  EXPECT_EQ(parse(json).value().architecture, "Qwen3ForCausalLM") << "a list of none";
  json["architectures"] = {"MyOwnForSomething", "Qwen2ForCausalLM", "LlamaForCausalLM"};
  EXPECT_EQ(parse(json).value().architecture, "Qwen2ForCausalLM") << "the first that loads";
  json["architectures"] = {"JetMoeForCausalLM"};
  EXPECT_NE(parse(json).status().message().find("'JetMoeForCausalLM' (JetMoE) is not supported"),
            std::string::npos);
  json["architectures"] = Json::array();
  json["model_type"] = "t5";
  EXPECT_NE(parse(json).status().message().find("model_type \"t5\" is not known"),
            std::string::npos);
}

TEST(Config, UnknownDtypeOption) {
  const auto config = parse(llama(), "fp8");
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.status().message().find("--dtype fp8 is not supported; use auto"),
            std::string::npos);
  for (const std::string name : {"float16", "half"}) {
    EXPECT_EQ(parse(llama(), name).value().dtype, parse(llama(), "auto").value().dtype);
  }
  EXPECT_EQ(parse(llama(), "float").value().dtype, DType::kF32);
}

Result<ModelConfig> parse_over(const Json& json, const std::string& overrides) {
  return parse_model_config(json, Json::object(), {"auto", overrides}, "config.json");
}

TEST(Config, OverridesAreMergedInsideObjects) {
  Json json = llama();
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  const auto changed =
      parse_over(json, R"({"rope_scaling": {"factor": 4.0}, "num_key_value_heads": 4})").value();
  EXPECT_EQ(changed.rope.full.type, RopeType::kLinear);
  EXPECT_EQ(changed.rope.full.factor, 4);
  EXPECT_EQ(changed.max_context, 4 * 4096);
  EXPECT_EQ(changed.num_kv_heads, 4);
  // null takes a field away, and an architecture is a field like others.
  const auto plain =
      parse_over(json, R"({"rope_scaling": null, "architectures": ["Qwen3ForCausalLM"]})").value();
  EXPECT_EQ(plain.rope.full.type, RopeType::kDefault);
  EXPECT_EQ(plain.head_dim, 128);
  // The older name works on a file of the newer form.
  json.erase("rope_scaling");
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  const auto newer =
      parse_over(json, R"({"rope_scaling": {"rope_type": "linear", "factor": 3.0}})").value();
  EXPECT_EQ(newer.rope.full.factor, 3);
  EXPECT_EQ(newer.rope.full.theta, 5e5);
}

TEST(Config, BadOverridesAreNamed) {
  for (const char* text : {"{", "[]", "3", R"({"a": 1, "a": 2})"}) {
    const auto config = parse_over(llama(), text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(config.status().message().rfind("--hf-overrides: ", 0), 0u)
        << config.status().message();
    EXPECT_NE(config.status().message().find("'{\"rope_theta\""), std::string::npos);
  }
  const auto wrong = parse_over(llama(), R"({"sliding_window": "big", "layer_types": 3})");
  EXPECT_NE(wrong.status().message().find("'layer_types' is 3"), std::string::npos);
}

TEST(Config, Folders) {
  const auto missing = read_model_config("/nonexistent/model", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/nonexistent/model"), std::string::npos);

  const test::ScratchFolder folder;
  const auto empty = read_model_config(folder.path(), {});
  EXPECT_EQ(empty.status().code(), StatusCode::kNotFound);
  folder.write("config.json", llama().dump());
  EXPECT_EQ(read_model_config(folder.path(), {}).value().eos_token_ids, std::vector<int32_t>{2});
  Json both_ways = llama();
  both_ways["is_causal"] = false;
  folder.write("config.json", both_ways.dump());
  const auto sees_later = [&](const char* overrides) {
    return read_model_config(folder.path(), {"auto", overrides}).value().bidirectional;
  };
  EXPECT_TRUE(sees_later(""));
  EXPECT_FALSE(sees_later(R"({"is_causal": true})"));
  folder.write("config.json", llama().dump());
  EXPECT_TRUE(sees_later(R"({"is_causal": false})"));
  folder.write("generation_config.json", R"({"eos_token_id":[2,3]})");
  EXPECT_EQ(read_model_config(folder.path(), {}).value().eos_token_ids,
            (std::vector<int32_t>{2, 3}));
  folder.write("generation_config.json", "{");
  const auto broken = read_model_config(folder.path(), {});
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.status().message().find("generation_config.json: not valid JSON"),
            std::string::npos);
}

// transformers 5 says both where a model with vision has no output matrix of its own.
TEST(Config, FilesTellWhetherTheHeadIsTheEmbedding) {
  Json text = llama();
  text.erase("architectures");
  text["model_type"] = "llama";
  text["tie_word_embeddings"] = false;
  const Json file = {{"architectures", {"InternVLForConditionalGeneration"}},
                     {"tie_word_embeddings", true},
                     {"text_config", text}};
  for (const bool has_head : {false, true}) {
    const test::ScratchFolder folder;
    folder.write("config.json", file.dump());
    const std::string name = has_head ? "lm_head.weight" : "model.language_model.norm.weight";
    const std::vector<TensorToWrite> tensors = {
        {name, FileDType::kF32, {1}, [](std::byte* out) { out[0] = std::byte{0}; }}};
    ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
    const auto config = read_model_config(folder.path(), {});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().tie_word_embeddings, !has_head);
  }
}

}  // namespace
}  // namespace foretoken
