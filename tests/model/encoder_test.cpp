#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf_bytes.h"
#include "kernels/rows/move_rows.h"
#include "model/config/config.h"
#include "model/files/containers/json_file.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"
#include "model/forward_harness.h"
#include "model/heads/judge_head.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

// Models whose rows see the whole text, against transformers (tests/golden/encoders).

namespace foretoken {
namespace {

using Floats = std::vector<float>;
using Ids = std::vector<int32_t>;

constexpr int32_t kEncoderRows = 128;
const std::string kEncoders = std::string(foretoken::kSourceFolder) + "/tests/golden/encoders/";

// Names with an ending are files that llama.cpp's converter made of the folder without it.
std::string model_of(const std::string& name) {
  return name.ends_with(".gguf") ? test::golden_gguf("encoders/" + name) : kEncoders + name;
}
std::string golden_of(const std::string& name) {
  return kEncoders + name.substr(0, name.find('.'));
}

// What leaves the last norm of some texts that are computed in one step, row after row.
Floats states_of(Model& model, const std::vector<Ids>& texts) {
  Device& device = test::model_device();
  const int32_t hidden = model.config().hidden_size, max_rows = kEncoderRows;
  test::ForwardHarness harness(device, model, max_rows, 8);
  std::vector<test::SpanWish> wishes;
  for (const Ids& text : texts) {
    const auto slot = static_cast<int32_t>(wishes.size());
    harness.start(slot, text);
    wishes.push_back({slot, static_cast<int32_t>(text.size())});
  }
  const size_t rows = harness.step(wishes).size(), count = rows * static_cast<size_t>(hidden);
  Arena pinned(device, MemoryKind::kPinned);
  auto* out = pinned.take_array<float>(static_cast<size_t>(max_rows * hidden), "states").value();
  Queue& queue = harness.queue();
  move_rows(queue, {.counts = harness.tensors().counts,
                    .in = model.hidden_states(queue, harness.tensors(), max_rows),
                    .out = out,
                    .from = nullptr,
                    .to = nullptr,
                    .row_kind = RowKind::kToken,
                    .max_rows = max_rows,
                    .width = hidden,
                    .out_stride = hidden,
                    .out_offset = 0,
                    .in_dtype = model.config().dtype,
                    .out_dtype = DType::kF32});
  EXPECT_TRUE(queue.drain().ok());
  return {out, out + count};
}

double error_of_states(const Floats& a, const Floats& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

struct EncoderPrompts {
  std::vector<Ids> ids;
  std::vector<Floats> states;
  std::vector<Floats> labels;  // of models that judge
};

EncoderPrompts prompts_of(const std::string& folder) {
  EncoderPrompts prompts;
  const auto file = SafetensorsFile::open(folder + "/golden.safetensors").value();
  const auto golden = read_json_file(folder + "/golden.json").value();
  for (const auto& prompt : golden.at("prompts")) {
    const std::string name = "prompt" + std::to_string(prompts.ids.size()) + ".states";
    const TensorView& view = file->tensors().at(name);
    Floats states(static_cast<size_t>(view.num_elements()));
    FT_CHECK(convert_tensor(view, DType::kF32, states.data()).ok());
    prompts.ids.push_back(prompt.at("ids").get<Ids>());
    prompts.states.push_back(std::move(states));
    prompts.labels.push_back(prompt.value("labels", Floats()));
  }
  return prompts;
}

class Encoder : public testing::TestWithParam<const char*> {
 protected:
  void expect_states(const std::string& dtype, double limit) {
    const auto model = test::load_test_model(model_of(GetParam()), {dtype, ""}, kEncoderRows);
    EXPECT_TRUE(model->config().bidirectional);
    const EncoderPrompts prompts = prompts_of(golden_of(GetParam()));
    for (size_t i = 0; i < prompts.ids.size(); ++i) {
      const Floats states = states_of(*model, {prompts.ids[i]});
      ASSERT_EQ(states.size(), prompts.states[i].size());
      EXPECT_LT(error_of_states(states, prompts.states[i]), limit) << "prompt " << i;
    }
  }
};

TEST_P(Encoder, Float32StatesMatchTheReference) { expect_states("float32", 1e-5); }

TEST_P(Encoder, Bfloat16StatesMatchTheReference) { expect_states("bfloat16", 2e-2); }

// Rows see their own text, whatever else a step computes.
TEST_P(Encoder, TextsOfAStepAreAsAlone) {
  const auto model = test::load_test_model(model_of(GetParam()), {"float32", ""}, kEncoderRows);
  const EncoderPrompts prompts = prompts_of(golden_of(GetParam()));
  const Floats together = states_of(*model, prompts.ids);
  Floats alone;
  for (const Ids& ids : prompts.ids) {
    const Floats states = states_of(*model, {ids});
    alone.insert(alone.end(), states.begin(), states.end());
  }
  EXPECT_EQ(together, alone);
}

// By the state of their first token.
TEST_P(Encoder, LabelsMatchTheReference) {
  const EncoderPrompts prompts = prompts_of(golden_of(GetParam()));
  const auto head = JudgeHead::load(ModelFiles(model_of(GetParam())), 32).value();
  ASSERT_EQ(head.has_value(), !prompts.labels[0].empty());
  for (size_t i = 0; head && i < prompts.ids.size(); ++i) {
    const Floats labels = head->judge(std::span(prompts.states[i]).first(32));
    ASSERT_EQ(labels.size(), prompts.labels[i].size());
    EXPECT_NEAR(labels[0], prompts.labels[i][0], 1e-4) << "prompt " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Encoder,
                         testing::Values("albert_judge", "bert", "bert_judge", "deberta",
                                         "deberta_judge", "distilbert", "electra", "electra_judge",
                                         "embedding_gemma", "ernie", "eurobert", "gte", "gte_judge",
                                         "jina_bert", "jina3", "modern_bert", "modern_bert_judge",
                                         "mpnet", "nomic_bert", "nomic_moe", "xlm_roberta_judge",
                                         "xlm_roberta"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(OfFiles, Encoder,
                         testing::Values("bert.gguf", "eurobert.gguf", "jina_bert.gguf",
                                         "modern_bert.gguf", "modern_bert_judge.gguf",
                                         "nomic_bert.gguf", "xlm_roberta.gguf",
                                         "xlm_roberta_judge.gguf"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find('.'));
                         });

// Scores without what distances add to them would be others.
TEST(Encoders, MpnetsDistancesMustBeThere) {
  const test::ScratchFolder folder;
  std::filesystem::copy(kEncoders + "mpnet/config.json", folder.file("config.json"));
  std::ifstream file(kEncoders + "mpnet/model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t at = bytes.find("relative_attention_bias");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 8, "otherway");
  folder.write("model.safetensors", bytes);
  LoadOptions options;
  options.max_rows = options.max_logits_rows = 4;
  const auto model = load_model(test::model_device(), folder.path(), options);
  EXPECT_NE(model.status().message().find("model.relative_attention_bias.weight"),
            std::string::npos)
      << model.status().message();
}

// As Nomic published it.
TEST(Encoders, PartsOfNomicThatAreNotBuiltAreRefused) {
  const nlohmann::json published = {{"architectures", {"NomicBertModel"}},
                                    {"activation_function", "swiglu"},
                                    {"n_embd", 32},
                                    {"n_layer", 2},
                                    {"n_head", 4},
                                    {"n_inner", 48},
                                    {"n_positions", 8192},
                                    {"prenorm", false},
                                    {"rotary_emb_fraction", 1.0},
                                    {"rotary_scaling_factor", nullptr},
                                    {"vocab_size", 64}};
  const auto read = [&](const nlohmann::json& changes) {
    nlohmann::json config = published;
    config.update(changes);
    return parse_model_config(config, nlohmann::json::object(), {}, "c");
  };
  const auto whole = read(nlohmann::json::object());
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole.value().max_position_embeddings, 8192);
  EXPECT_EQ(read({{"rotary_scaling_factor", 2}}).value().max_position_embeddings, 2048);
  for (const nlohmann::json& changes : std::initializer_list<nlohmann::json>{
           {{"prenorm", true}}, {{"use_rms_norm", true}}, {{"rotary_emb_fraction", 0.5}}}) {
    EXPECT_FALSE(read(changes).ok()) << changes;
  }
  EXPECT_EQ(read({{"moe_every_n_layers", 2}}).status().message(),
            "c: moe_every_n_layers 2 is not supported; use a model with MLPs, or with gelu beside "
            "experts");
  const auto mixture = read({{"activation_function", "gelu"},
                             {"moe_every_n_layers", 2},
                             {"num_experts", 8},
                             {"moe_top_k", 2},
                             {"n_layer", 5},
                             {"qkv_proj_bias", true},
                             {"mlp_fc1_bias", true},
                             {"mlp_fc2_bias", true}});
  ASSERT_TRUE(mixture.ok()) << mixture.status().message();
  std::vector<bool> with_experts;
  for (const LayerConfig& layer : mixture.value().layers) with_experts.push_back(layer.experts);
  EXPECT_EQ(with_experts, (std::vector<bool>{false, true, false, true, false}));
}

Result<ModelConfig> parsed(nlohmann::json config, const nlohmann::json& changes) {
  config.update(changes);
  return parse_model_config(config, nlohmann::json::object(), {}, "c");
}

const nlohmann::json kSizes = {{"hidden_size", 32},      {"intermediate_size", 48},
                               {"num_hidden_layers", 4}, {"num_attention_heads", 4},
                               {"vocab_size", 64},       {"num_key_value_heads", 2},
                               {"head_dim", 8},          {"max_position_embeddings", 2048}};

// As published: with names of its own for what newer files have by layer type.
TEST(Encoders, FieldsOfModernBert) {
  nlohmann::json published = kSizes;
  published.update({{"architectures", {"ModernBertForMaskedLM"}},
                    {"num_key_value_heads", nullptr},
                    {"global_rope_theta", 160000.0},
                    {"local_rope_theta", 10000.0},
                    {"local_attention", 128},
                    {"global_attn_every_n_layers", 3},
                    {"norm_bias", false}});
  const auto whole = parsed(published, nlohmann::json::object());
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const ModelConfig& config = whole.value();
  EXPECT_TRUE(config.bidirectional);
  std::vector<int32_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  EXPECT_EQ(windows, (std::vector<int32_t>{0, 65, 65, 0}));
  EXPECT_EQ(config.rope.full.theta, 160000);
  EXPECT_EQ(config.rope.windowed.value().theta, 10000);
  const auto message = [&](const nlohmann::json& changes) {
    return parsed(published, changes).status().message();
  };
  EXPECT_NE(message({{"norm_bias", true}}).find("norm_bias true is not"), std::string::npos);
  EXPECT_NE(message({{"local_attention", "128"}}).find("'local_attention'"), std::string::npos);
  EXPECT_NE(message({{"global_attn_every_n_layers", 0}}).find("'global_attn_every_n_layers'"),
            std::string::npos);
}

TEST(Encoders, WindowsOfEmbeddingGemmaCountBothSides) {
  nlohmann::json published = kSizes;
  published.update({{"architectures", {"Gemma3ForCausalLM"}},
                    {"use_bidirectional_attention", true},
                    {"sliding_window", 512}});
  const auto both = parsed(published, nlohmann::json::object());
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_TRUE(both.value().bidirectional);
  EXPECT_EQ(both.value().layers.front().window, 257);
  const auto one = parsed(published, {{"use_bidirectional_attention", false}});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_FALSE(one.value().bidirectional);
  EXPECT_EQ(one.value().layers.front().window, 512);
  EXPECT_FALSE(parsed(published, {{"use_bidirectional_attention", 3}}).ok());
}

// GTE's own scaling: frequencies of a larger base, over factor^(2 / head_dim).
TEST(Encoders, FieldsOfGte) {
  nlohmann::json published = kSizes;
  published.update({{"architectures", {"NewModel"}},
                    {"num_key_value_heads", nullptr},
                    {"position_embedding_type", "rope"},
                    {"rope_theta", 20000},
                    {"rope_scaling", {{"type", "ntk"}, {"factor", 8.0}}},
                    {"pack_qkv", true}});
  const auto whole = parsed(published, nlohmann::json::object());
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole.value().rope.full.theta, 160000);
  EXPECT_NEAR(whole.value().rope.full.factor, std::pow(8.0, 2.0 / 8), 1e-9);
  EXPECT_EQ(whole.value().max_context, 2048);
  for (const nlohmann::json& changes : std::initializer_list<nlohmann::json>{
           {{"position_embedding_type", "absolute"}},
           {{"layer_norm_type", "rms_norm"}},
           {{"logn_attention_scale", true}},
           {{"pack_qkv", false}},
           {{"rope_scaling", {{"type", "ntk"}, {"factor", "8"}}}},
           {{"rope_scaling", {{"type", "ntk"}, {"factor", 8.0}, {"mixed_b", 0.6}}}}}) {
    EXPECT_FALSE(parsed(published, changes).ok()) << changes;
  }
}

// Published numbers of the third version, as Microsoft writes them.
TEST(Encoders, FieldsOfDeberta) {
  nlohmann::json published = kSizes;
  published.update({{"architectures", {"DebertaV2ForSequenceClassification"}},
                    {"num_key_value_heads", nullptr},
                    {"max_position_embeddings", 512},
                    {"relative_attention", true},
                    {"share_att_key", true},
                    {"position_biased_input", false},
                    {"pos_att_type", "p2c|c2p"},
                    {"norm_rel_ebd", "layer_norm"},
                    {"max_relative_positions", -1},
                    {"position_buckets", 256},
                    {"type_vocab_size", 0}});
  const auto whole = parsed(published, nlohmann::json::object());
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_TRUE(whole.value().bidirectional);
  EXPECT_EQ(whole.value().distances.places(), 512);
  EXPECT_EQ(whole.value().distances.reach, 512);
  EXPECT_NEAR(whole.value().attention_scale, 1 / std::sqrt(24.0), 1e-7);
  const auto plain = parsed(published, {{"position_buckets", -1}});
  EXPECT_EQ(plain.value().distances.places(), 1024);
  const auto message = [&](const nlohmann::json& changes) {
    return parsed(published, changes).status().message();
  };
  EXPECT_NE(message({{"conv_kernel_size", 3}}).find("conv_kernel_size 3 is not"),
            std::string::npos);
  EXPECT_NE(message({{"pos_att_type", "c2p"}}).find("pos_att_type"), std::string::npos);
  EXPECT_NE(message({{"position_buckets", 1024}}).find("position_buckets"), std::string::npos);
  EXPECT_NE(message({{"head_dim", 24}}).find("num_attention_heads"), std::string::npos);
  EXPECT_NE(message({{"max_relative_positions", 1 << 20}}).find("at most 2^16"), std::string::npos);
  for (const char* part :
       {"relative_attention", "share_att_key", "position_biased_input", "pos_att_type"}) {
    EXPECT_NE(message({{part, nullptr}}).find(part), std::string::npos) << part;
  }
}

TEST(Encoders, PartsOfOthersThatAreNotBuiltAreRefused) {
  const auto message = [](const char* name, const nlohmann::json& changes) {
    nlohmann::json published = kSizes;
    published.update({{"architectures", {name}}, {"num_key_value_heads", nullptr}});
    return parsed(published, changes).status().message();
  };
  EXPECT_EQ(message("MPNetForMaskedLM", {{"relative_attention_num_buckets", 32}}), "");
  EXPECT_NE(message("MPNetModel", {{"relative_attention_num_buckets", 64}}).find("num_buckets"),
            std::string::npos);
  EXPECT_NE(message("ElectraModel", {{"embedding_size", 64}}).find("embedding_size"),
            std::string::npos);
  EXPECT_NE(message("AlbertModel", {{"num_hidden_groups", 2}}).find("num_hidden_groups 2 is not"),
            std::string::npos);
  EXPECT_EQ(message("JinaBertForMaskedLM", {{"position_embedding_type", "alibi"}}), "");
  EXPECT_NE(message("JinaBertModel", {{"position_embedding_type", "rope"}}).find("alibi"),
            std::string::npos);
  EXPECT_NE(message("JinaBertModel", {{"feed_forward_type", "reglu"}}).find("geglu"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
