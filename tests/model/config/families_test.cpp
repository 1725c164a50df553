#include "model/config/families.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/config/missing_parts.h"
#include "model/config/text_part.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

const std::string kSource = foretoken::kSourceFolder;
const std::string kPage = kSource + "/docs/models.md";

Json configs_of(const char* file) {
  return read_json_file(kSource + "/tests/golden/configs/" + file).value();
}

// What becomes of a config.json, as the page of models says it.
std::string outcome_of(const Json& config) {
  const auto parsed = parse_model_config(config, Json::object(), {}, "config.json");
  if (parsed.ok()) return "loads";
  const std::string& message = parsed.status().message();
  const size_t begin = std::string("config.json: ").size();
  return message.substr(begin, message.find(';') - begin);
}

// The lines of the page that are made of the tables in the code.
std::vector<std::string> made_lines() {
  std::vector<std::string> lines;
  for (const Architecture& entry : architectures()) {
    lines.push_back("| " + std::string(entry.description) + " | `" + entry.name + "` | loads |");
  }
  for (const WrappedFamily& entry : wrapped_families()) {
    lines.push_back("| " + std::string(entry.description) + " | `" + entry.architecture +
                    "` | loads |");
  }
  for (const RefusedFamily& family : refused_families()) {
    lines.push_back("| " + std::string(family.description) + " | `" + family.architecture +
                    "` | needs " + missing_parts_text(family.lacks) + " |");
  }
  for (const char* file : {"published.json", "defaults.json"}) {
    const Json configs = configs_of(file);
    for (const auto& [name, config] : configs.items()) {
      lines.push_back("| " + name + " | " + outcome_of(config) + " |");
    }
  }
  return lines;
}

std::string page() {
  std::ifstream file(kPage);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Families, RefusedOnesHaveNamesOfTheirOwnAndLackSomething) {
  std::set<std::string> names;
  for (const RefusedFamily& family : refused_families()) {
    EXPECT_TRUE(names.insert(family.architecture).second) << family.architecture;
    EXPECT_EQ(find_architecture(family.architecture), nullptr) << family.architecture;
    EXPECT_EQ(find_refused_family(family.architecture), &family);
    EXPECT_NE(missing_parts_text(family.lacks), "") << family.architecture;
  }
  EXPECT_EQ(find_refused_family("LlamaForCausalLM"), nullptr);
}

TEST(Families, ARefusalNamesWhatFamilyAndFieldsNeed) {
  const Status known = refuse_architecture("JetMoeForCausalLM", {{"index_topk", 128}}, "f");
  EXPECT_EQ(known.code(), StatusCode::kUnsupported);
  EXPECT_EQ(known.message(),
            "f: architecture 'JetMoeForCausalLM' (JetMoE) is not supported: it needs sparse "
            "attention and experts of attention; foretoken inspect --families lists what loads");
  EXPECT_EQ(refuse_architecture("NewForCausalLM", {{"index_topk", 512}}, "f").message(),
            "f: architecture 'NewForCausalLM' is not supported: it needs sparse attention; "
            "foretoken inspect --families lists what loads");
  EXPECT_EQ(
      refuse_architecture("?", {{"model_type", "t5gemma"}, {"is_encoder_decoder", true}}, "f")
          .message(),
      "f: model_type 't5gemma' is not supported: it needs an encoder; foretoken inspect --families "
      "lists what loads");
  EXPECT_EQ(refuse_architecture("?", {{"model_type", 3}}, "f").message(),
            "f: architecture '?' is not supported; foretoken inspect --families lists what loads");
  EXPECT_EQ(refuse_architecture("NewForCausalLM", Json::object(), "f").message(),
            "f: architecture 'NewForCausalLM' is not supported; foretoken inspect --families lists "
            "what loads");
}

TEST(Families, ARefusalNamesTheQuantisationToo) {
  const Json config = {{"quantization_config", {{"quant_method", "aqlm"}}}};
  const std::string text = refuse_architecture("JetMoeForCausalLM", config, "f").message();
  EXPECT_NE(text.find("experts of attention and matrices of quant_method \"aqlm\";"),
            std::string::npos)
      << text;
}

// The smallest config.json of a class, with what it must not have.
Json small_config(const char* name, const Json& more) {
  Json config = {{"architectures", {name}},       {"vocab_size", 64},
                 {"padded_vocab_size", 64},       {"hidden_size", 32},
                 {"num_hidden_layers", 2},        {"num_layers", 2},
                 {"num_attention_heads", 4},      {"intermediate_size", 64},
                 {"ffn_hidden_size", 64},         {"max_position_embeddings", 64},
                 {"multi_query_attention", false}};
  config.update(more);
  return config;
}

// As published, where lists go on with the layers of draft modules.
Json step_config() {
  return small_config(
      "Step3p5ForCausalLM",
      {{"num_attention_groups", 2},
       {"head_dim", 16},
       {"layer_types", {"full_attention", "sliding_attention", "full_attention"}},
       {"sliding_window", 8},
       {"rope_theta", {5e6, 1e4, 5e6}},
       {"partial_rotary_factors", {0.5, 1.0, 0.5}},
       {"rope_scaling",
        {{"rope_type", "llama3"},
         {"factor", 2.0},
         {"low_freq_factor", 1.0},
         {"high_freq_factor", 32.0},
         {"original_max_position_embeddings", 32}}},
       {"attention_other_setting", {{"num_attention_heads", 6}, {"num_attention_groups", 2}}},
       {"moe_layers_enum", "1"},
       {"moe_num_experts", 4},
       {"moe_top_k", 2},
       {"moe_intermediate_size", 32},
       {"share_expert_dim", 32},
       {"moe_router_scaling_factor", 3.0},
       {"swiglu_limits", {0.0, 7.0, 0.0}},
       {"swiglu_limits_shared", {nullptr, 16, 0}}});
}

// LFM 2 as first published: layers with attention by number, and two thirds of block_ff_dim.
TEST(Families, Lfm2ListsItsLayersAndAdjustsItsWidth) {
  const Json json = small_config("Lfm2ForCausalLM", {{"full_attn_idxs", {1}},
                                                     {"block_ff_dim", 100},
                                                     {"block_multiple_of", 16},
                                                     {"num_key_value_heads", 2},
                                                     {"conv_L_cache", 3},
                                                     {"tie_embedding", false}});
  const auto parsed = parse_model_config(json, Json::object(), {}, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_TRUE(config.layers[0].recurrent);
  EXPECT_FALSE(config.layers[1].recurrent);
  EXPECT_EQ(config.intermediate_size, 80) << "66 rounded up to a multiple of 16";
  EXPECT_EQ(config.recurrent.channels, 32);
  EXPECT_FALSE(config.tie_word_embeddings);
  Json wrong = json;
  wrong["full_attn_idxs"] = {2};
  EXPECT_NE(
      parse_model_config(wrong, Json::object(), {}, "f").status().message().find("full_attn_idxs"),
      std::string::npos);
}

// Layers of one part each, by letters or by names.
TEST(Families, NemotronHsLayersAreOnePartEach) {
  const Json sizes = {{"mamba_num_heads", 4}, {"mamba_head_dim", 16}, {"n_groups", 2}};
  Json json = small_config("NemotronHForCausalLM", sizes);
  json["num_key_value_heads"] = 2;
  json["hybrid_override_pattern"] = "M-*E";
  const auto parsed = parse_model_config(json, Json::object(), {}, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& layers = parsed.value().layers;
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_TRUE(layers[0].recurrent && layers[0].attention && !layers[0].feed_forward);
  EXPECT_TRUE(layers[1].feed_forward && !layers[1].attention && !layers[1].experts);
  EXPECT_TRUE(layers[2].attention && !layers[2].recurrent && !layers[2].rope);
  EXPECT_TRUE(layers[3].experts);
  json["ssm_state_size"] = 512;
  EXPECT_NE(
      parse_model_config(json, Json::object(), {}, "f").status().message().find("the most is 256"),
      std::string::npos);
  json.erase("ssm_state_size");
  json["hybrid_override_pattern"] = "MX";
  EXPECT_NE(parse_model_config(json, Json::object(), {}, "f")
                .status()
                .message()
                .find("hybrid_override_pattern"),
            std::string::npos);
}

// As MiniMax publishes M1: types of layers as numbers, factors by long names.
TEST(Families, MinimaxNumbersTheKindsOfItsLayers) {
  Json json = small_config("MiniMaxM1ForCausalLM", {{"attn_type_list", {0, 1}},
                                                    {"num_key_value_heads", 2},
                                                    {"head_dim", 8},
                                                    {"rotary_dim", 4},
                                                    {"num_local_experts", 4},
                                                    {"shared_intermediate_size", 0},
                                                    {"postnorm", true},
                                                    {"layernorm_linear_attention_alpha", 3.5},
                                                    {"layernorm_mlp_beta", 0.5}});
  const auto parsed = parse_model_config(json, Json::object(), {}, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_TRUE(config.layers[0].recurrent && !config.layers[1].recurrent);
  EXPECT_TRUE(config.norms_residual);
  EXPECT_EQ(config.rope.full.rotary_dim, 4);
  EXPECT_EQ(std::pair(config.linear_residual_scale, config.attention_residual_scale),
            std::pair(3.5f, 1.0f));
  EXPECT_EQ(config.experts.scale, 0.5f);
  json["shared_intermediate_size"] = {0, 16};
  EXPECT_NE(parse_model_config(json, Json::object(), {}, "f")
                .status()
                .message()
                .find("shared_intermediate_size"),
            std::string::npos);
}

// Attention, and experts, in every so many layers.
TEST(Families, JambaCountsItsLayersByPeriods) {
  Json json = small_config("JambaForCausalLM", {{"num_key_value_heads", 2},
                                                {"attn_layer_period", 2},
                                                {"attn_layer_offset", 0},
                                                {"expert_layer_offset", 1},
                                                {"num_experts", 4},
                                                {"mamba_dt_rank", "auto"}});
  const auto parsed = parse_model_config(json, Json::object(), {}, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  EXPECT_TRUE(!config.layers[0].recurrent && config.layers[1].recurrent);
  EXPECT_TRUE(!config.layers[0].experts && config.layers[1].experts);
  EXPECT_EQ(std::pair(config.recurrent.channels, config.recurrent.step_rank), std::pair(64, 2));
  json["num_experts"] = 1;
  const auto dense = parse_model_config(json, Json::object(), {}, "f");
  ASSERT_TRUE(dense.ok()) << dense.status().message();
  EXPECT_FALSE(dense.value().layers[1].experts);
  json["hidden_act"] = "gelu";
  const auto refused = parse_model_config(json, Json::object(), {}, "f");
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("hidden_act"), std::string::npos);
}

TEST(Families, GraniteScalesTheAnglesOfEachBase) {
  const Json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 16},
                     {"rope_theta", 3e4}};
  for (const char* name : {"GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM"}) {
    for (const char* field : {"rope_parameters", "rope_scaling"}) {
      Json json = small_config(name, {{"layer_rope_theta", {1e4, 2e4}}, {field, yarn}});
      json["num_key_value_heads"] = 2;
      const auto parsed = parse_model_config(json, Json::object(), {}, "f");
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      const RopeConfigs& rope = parsed.value().rope;
      ASSERT_TRUE(rope.windowed);
      EXPECT_EQ(std::pair(rope.full.theta, rope.windowed->theta), std::pair(1e4, 2e4)) << field;
      for (const RopeConfig& each : {rope.full, *rope.windowed}) {
        EXPECT_EQ(each.type, RopeType::kYarn);
        EXPECT_EQ(std::pair(each.factor, each.original_context), std::pair(4.0, 16));
        EXPECT_GT(each.attention_factor, 1.1);
      }
      json[field] = {{"full_attention", yarn}};
      EXPECT_EQ(parse_model_config(json, Json::object(), {}, "f").status().code(),
                StatusCode::kInvalidArgument);
    }
  }
}

TEST(Families, StepSaysMuchByLayer) {
  const auto parsed = parse_model_config(step_config(), Json::object(), {}, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ModelConfig& config = parsed.value();
  ASSERT_EQ(config.layers.size(), 2u);
  EXPECT_FALSE(config.layers[0].experts);
  const LayerConfig& second = config.layers[1];
  EXPECT_TRUE(second.experts);
  EXPECT_EQ(std::tuple(second.window, second.num_heads, second.num_kv_heads), std::tuple(8, 6, 2));
  EXPECT_EQ(std::pair(second.expert_limit, second.shared_limit), std::pair(7.0f, 16.0f));
  EXPECT_EQ(config.layers[0].shared_limit, 0);
  EXPECT_EQ(std::pair(config.rope.full.theta, config.rope.full.rotary_dim), std::pair(5e6, 8));
  EXPECT_EQ(config.rope.full.type, RopeType::kLlama3);
  ASSERT_TRUE(config.rope.windowed.has_value());
  EXPECT_EQ(std::pair(config.rope.windowed->theta, config.rope.windowed->rotary_dim),
            std::pair(1e4, 16));
  EXPECT_EQ(config.rope.windowed->type, RopeType::kDefault);
  EXPECT_EQ(std::pair(config.experts.shared_inner, config.experts.scale), std::pair(32, 3.0f));
}

TEST(Families, ListsByLayerThatDoNotFit) {
  Json laguna = small_config("LagunaForCausalLM", {{"num_key_value_heads", 2}, {"head_dim", 16}});
  for (const auto& [base, field, value] :
       {std::tuple(step_config(), "moe_layers_enum", Json("1;2")),
        std::tuple(step_config(), "swiglu_limits", Json{0.5}),
        std::tuple(step_config(), "swiglu_limits_shared", Json{-1, 0}),
        std::tuple(step_config(), "rope_theta", Json{1e4}),
        std::tuple(step_config(), "attention_other_setting", Json(6)),
        std::tuple(laguna, "gating", Json("per-row")),
        std::tuple(laguna, "num_attention_heads_per_layer", Json{4})}) {
    ASSERT_TRUE(parse_model_config(base, Json::object(), {}, "f").ok());
    Json config = base;
    config[field] = value;
    const Status status = parse_model_config(config, Json::object(), {}, "f").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_NE(status.message().find(field), std::string::npos) << status.message();
  }
  laguna["moe_router_logit_softcapping"] = 30.0;
  EXPECT_EQ(parse_model_config(laguna, Json::object(), {}, "f").status().code(),
            StatusCode::kUnsupported);
}

// Layers that run twice, each time with keys and values of their own, have weights once.
TEST(Families, LayersThatRunSeveralTimes) {
  const Json once = small_config("NanbeigeForCausalLM", Json::object());
  const ModelConfig single = parse_model_config(once, Json::object(), {}, "f").value();
  Json twice = once;
  twice["num_loops"] = 2;
  ModelConfig config = parse_model_config(twice, Json::object(), {}, "f").value();
  EXPECT_EQ(config.num_layers, 2 * single.num_layers);
  EXPECT_EQ(config.layers.size(), 2 * single.layers.size());
  EXPECT_EQ(config.num_stored_layers(), single.num_layers);
  EXPECT_TRUE(config.begins_loop(single.num_layers));
  EXPECT_FALSE(config.begins_loop(0));
  twice["skip_loop_final_norm"] = true;
  config = parse_model_config(twice, Json::object(), {}, "f").value();
  EXPECT_FALSE(config.begins_loop(single.num_layers));
  for (const auto& [field, value] : {std::pair("num_loops", 17), std::pair("num_loops", 0)}) {
    Json wrong = once;
    wrong[field] = value;
    EXPECT_EQ(parse_model_config(wrong, Json::object(), {}, "f").status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(Families, FieldsThatAFamilyHasNot) {
  for (const auto& [name, more, field] :
       {std::tuple("PhiForCausalLM", Json{{"qk_layernorm", true}}, "qk_layernorm"),
        std::tuple("MiniCPMForCausalLM", Json{{"sparse_config", {{"dense_len", 8192}}}},
                   "--hf-overrides '{\"sparse_config\": null}'"),
        std::tuple("ChatGLMModel", Json{{"original_rope", false}}, "original_rope false"),
        std::tuple("NanbeigeForCausalLM", Json{{"loop_share_kv", true}}, "loop_share_kv"),
        std::tuple("Spark2_5ForCausalLM", Json{{"gate_attn_act_mode", "silu"}},
                   "gate_attn_act_mode other than sigmoid"),
        std::tuple("OPTForCausalLM", Json{{"layer_norm_elementwise_affine", false}},
                   "layer_norm_elementwise_affine false"),
        std::tuple("DbrxForCausalLM", Json{{"ffn_config", {{"moe_normalize_expert_weights", 2.0}}}},
                   "moe_normalize_expert_weights 2.0"),
        std::tuple(
            "MiMoV2FlashForCausalLM",
            Json{{"v_head_dim", 512}, {"hybrid_layer_pattern", {0, 1}}, {"sliding_window", 8}},
            "v_head_dim above"),
        std::tuple("MiMoV2ForCausalLM", Json{{"attention_projection_layout", "fused_qkv"}},
                   "projections fused by shards")}) {
    const auto refused = parse_model_config(small_config(name, more), Json::object(), {}, "f");
    EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported) << name;
    EXPECT_NE(refused.status().message().find(field), std::string::npos)
        << refused.status().message();
    if (std::string(name).find("MiMo") != std::string::npos) continue;
    const auto plain =
        parse_model_config(small_config(name, Json::object()), Json::object(), {}, "f");
    EXPECT_TRUE(plain.ok()) << plain.status().message();
  }
}

TEST(Families, ClassesOfOtherNamesAreRead) {
  for (const auto& [name, own] :
       {std::pair("TeleChat3ForCausalLM", "LlamaForCausalLM"),
        std::pair("LFM2ForCausalLM", "Lfm2ForCausalLM"), std::pair("GritLM", "MistralForCausalLM"),
        std::pair("StableLMEpochForCausalLM", "StableLmForCausalLM")}) {
    const auto read = parse_model_config(small_config(name, {{"num_key_value_heads", 4}}),
                                         Json::object(), {}, "f");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value().architecture, own);
  }
}

// Falcon's first exports have BLOOM's names.
TEST(Families, FalconsFirstNames) {
  const Json config = {{"architectures", {"RWForCausalLM"}},
                       {"vocab_size", 64},
                       {"hidden_size", 32},
                       {"n_layer", 3},
                       {"n_head", 4},
                       {"n_head_kv", 2},
                       {"bias", false}};
  const auto read = parse_model_config(config, Json::object(), {}, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().architecture, "FalconForCausalLM");
  EXPECT_EQ(read.value().num_layers, 3);
  EXPECT_EQ(read.value().num_kv_heads, 2);
  EXPECT_TRUE(read.value().parallel_norms);
}

// Texts of Qwen 1 are no longer than those that it was trained with.
TEST(Families, QwensLengthAndWidth) {
  Json more = {{"seq_length", 48}, {"use_dynamic_ntk", true}, {"kv_channels", 16}};
  const auto read =
      parse_model_config(small_config("QWenLMHeadModel", more), Json::object(), {}, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().max_position_embeddings, 48);
  EXPECT_EQ(read.value().intermediate_size, 32);
  EXPECT_EQ(read.value().head_dim, 16);
  EXPECT_TRUE(read.value().attention_bias && !read.value().attention_out_bias);
  more["use_dynamic_ntk"] = false;
  const auto whole =
      parse_model_config(small_config("QWenLMHeadModel", more), Json::object(), {}, "f");
  EXPECT_EQ(whole.value().max_position_embeddings, 64);
}

TEST(Families, QwensFirstNames) {
  const Json config = {{"architectures", {"QWenLMHeadModel"}},
                       {"vocab_size", 64},
                       {"n_embd", 32},
                       {"n_layer", 3},
                       {"n_head", 4},
                       {"ffn_hidden_size", 64}};
  const auto read = parse_model_config(config, Json::object(), {}, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().num_layers, 3);
  EXPECT_EQ(read.value().intermediate_size, 32);
}

TEST(Families, LayersOfOpenElmGrow) {
  Json config = {{"architectures", {"OpenELMForCausalLM"}},
                 {"model_dim", 64},
                 {"num_transformer_layers", 2},
                 {"num_query_heads", {2, 4}},
                 {"num_kv_heads", {1, 2}},
                 {"ffn_multipliers", {0.5, 4.0}},
                 {"ffn_dim_divisor", 48}};
  const auto read = parse_model_config(config, Json::object(), {}, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().num_heads, 4);
  EXPECT_EQ(read.value().layers.at(0).num_kv_heads, 1);
  EXPECT_EQ(read.value().layers.at(0).intermediate_size, 48);
  EXPECT_EQ(read.value().layers.at(1).intermediate_size, 240);
  for (const char* field : {"num_query_heads", "num_kv_heads", "ffn_multipliers"}) {
    Json wrong = config;
    wrong[field] = {1};
    const Status status = parse_model_config(wrong, Json::object(), {}, "f").status();
    EXPECT_NE(status.message().find(field), std::string::npos) << status.message();
  }
  config["ffn_with_glu"] = false;
  EXPECT_EQ(parse_model_config(config, Json::object(), {}, "f").status().code(),
            StatusCode::kUnsupported);
}

TEST(Families, LayersThatReadImagesLeaveTextsAlone) {
  const auto parsed = [](const Json& layers) {
    const Json text =
        small_config("", {{"cross_attention_layers", layers}, {"num_key_value_heads", 4}});
    const Json config = {{"architectures", {"MllamaForConditionalGeneration"}},
                         {"text_config", text}};
    return parse_model_config(config, Json::object(), {}, "f");
  };
  const auto read = parsed({1});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read.value().layers.at(0).attention);
  EXPECT_FALSE(read.value().layers.at(1).attention || read.value().layers.at(1).feed_forward);
  EXPECT_EQ(read.value().embedding_rows, 64 + 8);
  for (const Json& wrong : {Json{2}, Json{-1}, Json{"1"}, Json(1)}) {
    EXPECT_EQ(parsed(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

// Published and default configurations of current families: each loads or is refused for what the
// page says, and no sentence is about a field that a reader ought to know.
TEST(Families, ThePageOfModelsIsTrue) {
  const std::string text = page();
  for (const std::string& line : made_lines()) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << "docs/models.md lacks: " << line;
  }
}

TEST(Families, EveryRefusalIsForAMissingPart) {
  for (const char* file : {"published.json", "defaults.json"}) {
    const Json configs = configs_of(file);
    for (const auto& [name, config] : configs.items()) {
      const auto parsed = parse_model_config(config, Json::object(), {}, "config.json");
      if (parsed.ok()) continue;
      EXPECT_EQ(parsed.status().code(), StatusCode::kUnsupported)
          << name << ": " << parsed.status().message();
    }
  }
}

// Writes the made lines, for docs/models.md.
TEST(Families, DISABLED_PrintThePage) {
  for (const std::string& line : made_lines()) std::printf("%s\n", line.c_str());
}

}  // namespace
}  // namespace foretoken
