#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "gguf/gguf_bytes.h"
#include "gguf/hf_names.h"
#include "model/draft_head_config.h"
#include "model/files/checkpoint.h"
#include "model/files/convert.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// Families whose tensors converters put in another order than Hugging Face: the tiny models of
// tests/golden/architectures as llama.cpp's converter would write them.

struct Matrix {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Matrices = std::map<std::string, Matrix>;

Matrices matrices_of(const std::string& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder).value();
  Matrices all;
  for (const auto& [name, view] : checkpoint.tensors()) {
    Matrix matrix{view->shape, std::vector<float>(static_cast<size_t>(view->num_elements()))};
    std::vector<std::byte> raw;
    EXPECT_TRUE(
        read_elements(*view, 0, view->num_elements(), DType::kF32, matrix.values.data(), raw).ok());
    all[name] = std::move(matrix);
  }
  return all;
}

Matrix transposed(const Matrix& from) {
  Matrix to{{from.shape[1], from.shape[0]}, std::vector<float>(from.values.size())};
  for (int64_t r = 0; r < from.shape[0]; ++r) {
    for (int64_t c = 0; c < from.shape[1]; ++c) {
      to.values[size_t(c * from.shape[0] + r)] = from.values[size_t(r * from.shape[1] + c)];
    }
  }
  return to;
}

// From the queries of a key head, it and its value head, and so on, to all queries, keys, values.
Matrix by_kind(const Matrix& from, const ModelConfig& config) {
  const int64_t queries = config.num_heads / config.num_kv_heads;
  const int64_t width = from.shape.size() > 1 ? from.shape[1] : 1, head = config.head_dim * width;
  Matrix to{from.shape, {}};
  const auto take = [&](int64_t group, int64_t index) {
    const auto begin = from.values.begin() + (group * (queries + 2) + index) * head;
    to.values.insert(to.values.end(), begin, begin + head);
  };
  for (int64_t h = 0; h < config.num_heads; ++h) take(h / queries, h % queries);
  for (int64_t g = 0; g < config.num_kv_heads; ++g) take(g, queries);
  for (int64_t g = 0; g < config.num_kv_heads; ++g) take(g, queries + 1);
  return to;
}

// Tensors "<name>.<i>.weight" become one of three dimensions.
void stack(const std::string& name, int count, Matrices* all) {
  Matrix stacked;
  for (int i = 0; i < count; ++i) {
    const auto one = all->extract(name + "." + std::to_string(i) + ".weight");
    ASSERT_FALSE(one.empty()) << name;
    stacked.shape = {count, one.mapped().shape[0], one.mapped().shape[1]};
    stacked.values.insert(stacked.values.end(), one.mapped().values.begin(),
                          one.mapped().values.end());
  }
  (*all)[name + ".weight"] = stacked;
}

// One tensor of q, k and v becomes three.
void take_apart(const std::string& fused, const std::string& base, const ModelConfig& config,
                Matrices* all) {
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string before = "model.layers." + std::to_string(layer) + ".";
    const auto whole = all->extract(before + fused);
    ASSERT_FALSE(whole.empty()) << before + fused;
    auto from = whole.mapped().values.begin();
    for (const auto& [name, heads] : {std::pair("q_proj.weight", config.num_heads),
                                      std::pair("k_proj.weight", config.num_kv_heads),
                                      std::pair("v_proj.weight", config.num_kv_heads)}) {
      const int64_t rows = int64_t{heads} * config.head_dim, cols = whole.mapped().shape[1];
      (*all)[before + base + name] = {{rows, cols}, {from, from + rows * cols}};
      from += rows * cols;
    }
  }
}

// Rows of the two halves of a head take turns.
Matrix alternating(const Matrix& from, int64_t head) {
  Matrix to = from;
  const int64_t width = from.shape.size() > 1 ? from.shape[1] : 1;
  for (int64_t row = 0; row < from.shape[0]; ++row) {
    const int64_t at = row % head, half = head / 2;
    const int64_t there = row - at + at % half * 2 + at / half;
    std::copy_n(from.values.begin() + row * width, width, to.values.begin() + there * width);
  }
  return to;
}

void interleave_heads(const ModelConfig& config, Matrices* all) {
  for (auto& [name, matrix] : *all) {
    if (name.find(".q_proj.") == std::string::npos && name.find(".k_proj.") == std::string::npos) {
      continue;
    }
    matrix = alternating(matrix, config.head_dim);
  }
}

// The matrices of all experts below each other become one tensor of three dimensions.
void stack_experts(const ModelConfig& config, Matrices* all) {
  const int64_t count = config.experts.count, inner = config.experts.inner;
  Matrices stacked;
  for (auto& [name, matrix] : *all) {
    if (name.find(".experts.") == std::string::npos) {
      stacked[name] = std::move(matrix);
      continue;
    }
    const int64_t hidden = matrix.shape[1];
    Matrix& to = stacked[name + ".weight"];
    to = {{count, inner, hidden}, matrix.values};
    if (!name.ends_with("w2")) continue;
    to.shape = {count, hidden, inner};
    for (int64_t i = 0; i < count * inner * hidden; ++i) {
      const int64_t expert = i / (inner * hidden), row = i / hidden % inner, col = i % hidden;
      to.values[size_t((expert * hidden + col) * inner + row)] = matrix.values[size_t(i)];
    }
  }
  *all = std::move(stacked);
}

// The matrices of each expert become a tensor of three dimensions of all.
void stack_each_expert(const ModelConfig& config, Matrices* all) {
  constexpr std::string_view kFirst = ".experts.0.";
  std::vector<std::string> first;
  for (const auto& [name, matrix] : *all) {
    if (name.find(kFirst) != std::string::npos) first.push_back(name);
  }
  for (const std::string& name : first) {
    const size_t at = name.find(kFirst);
    const std::string before = name.substr(0, at + 9), after = name.substr(at + kFirst.size() - 1);
    Matrix stacked;
    for (int32_t i = 0; i < config.experts.count; ++i) {
      const auto one = all->extract(before + std::to_string(i) + after);
      ASSERT_FALSE(one.empty()) << name;
      stacked.shape = {config.experts.count, one.mapped().shape[0], one.mapped().shape[1]};
      stacked.values.insert(stacked.values.end(), one.mapped().values.begin(),
                            one.mapped().values.end());
    }
    (*all)[before.substr(0, before.size() - 1) + after] = std::move(stacked);
  }
}

// Tensors of this name get the ending that all of GGUF files have.
void end_in_weight(const std::string& part, Matrices* all) {
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    renamed[name.ends_with(part) ? name + ".weight" : name] = std::move(matrix);
  }
  *all = std::move(renamed);
}

void put_in_order(const std::string& family, const ModelConfig& config, Matrices* all) {
  if (family == "gemma3n") {
    stack("model.altup_projections", 2, all);
    stack("model.altup_unembed_projections", 2, all);
  }
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    std::string own = name;
    if (const size_t at = own.find("ln_mlp"); at != std::string::npos) {
      own.replace(at, 6, "input_layernorm");
    }
    const bool turned =
        family == "gpt2" && matrix.shape.size() == 2 &&
        (own.find(".attn.") != std::string::npos || own.find(".mlp.") != std::string::npos);
    const bool grouped =
        own.find("wqkv") != std::string::npos || (family != "chatglm" && family != "bailingmoe2" &&
                                                  own.find("query_key_value") != std::string::npos);
    renamed[own] = turned ? transposed(matrix) : grouped ? by_kind(matrix, config) : matrix;
  }
  *all = std::move(renamed);
  // Converters leave ERNIE's module out.
  std::erase_if(*all, [](const auto& entry) { return entry.first.starts_with("model.mtp_"); });
  if (family == "dbrx") stack_experts(config, all);
  if (family == "mistral4") end_in_weight("mlp.experts.down_proj", all);
  stack_each_expert(config, all);
  if (family == "internlm2") take_apart("attention.wqkv.weight", "attention.", config, all);
  if (family == "baichuan") take_apart("self_attn.W_pack.weight", "self_attn.", config, all);
  if (family == "apertus") {
    std::erase_if(
        *all, [](const auto& entry) { return entry.first.find(".act_fn.") != std::string::npos; });
  }
}

// A metadata value, written behind its key.
using Write = std::function<void(test::GgufBytes&, const std::string&)>;
Write u32(int64_t value) {
  return [value](test::GgufBytes& file, const std::string& key) {
    file.u32_value(key, static_cast<uint32_t>(value));
  };
}
Write f32(double value) {
  return [value](test::GgufBytes& file, const std::string& key) {
    file.f32_value(key, static_cast<float>(value));
  };
}
Write flag(bool value) {
  return [value](test::GgufBytes& file, const std::string& key) { file.bool_value(key, value); };
}
Write floats(const std::vector<float>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{6}).number(uint64_t{values.size()});
    for (const float value : values) file.number(value);
  };
}
Write flags(const std::vector<bool>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{7}).number(uint64_t{values.size()});
    for (const bool value : values) file.number(static_cast<uint8_t>(value));
  };
}

Write integers(const std::vector<int64_t>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{5}).number(uint64_t{values.size()});
    for (const int64_t value : values) file.number(static_cast<int32_t>(value));
  };
}

Write text(const char* value) {
  return [value](test::GgufBytes& file, const std::string& key) { file.text_value(key, value); };
}

// Of mixtures, under the keys that all of them share.
void add_expert_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const ExpertConfig& experts = config.experts;
  int32_t dense = 0;
  while (dense < config.num_layers && !config.layers[size_t(dense)].experts) ++dense;
  (*all)["expert_count"] = u32(experts.count);
  (*all)["expert_used_count"] = u32(experts.top_k);
  (*all)["expert_feed_forward_length"] = u32(experts.inner);
  (*all)["expert_shared_count"] = u32(experts.shared_inner / experts.inner);
  (*all)["expert_weights_scale"] = f32(experts.scale);
  (*all)["expert_weights_norm"] = flag(experts.normalised);
  (*all)["expert_group_count"] = u32(experts.num_groups);
  (*all)["expert_group_used_count"] = u32(experts.top_groups);
  (*all)["leading_dense_block_count"] = u32(dense);
}

// Modules stand behind the layers and count among them.
void add_module_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  (*all)["nextn_predict_layers"] = u32(config.num_mtp_modules);
  (*all)["block_count"] = u32(config.num_layers + config.num_mtp_modules);
}

// Numbers of each layer, 0 of parts that it does not have.
void add_layer_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<int64_t> heads, kv_heads, inner;
  for (const LayerConfig& layer : config.layers) {
    heads.push_back(layer.attention ? config.num_heads : 0);
    kv_heads.push_back(layer.attention ? layer.num_kv_heads : 0);
    inner.push_back(layer.feed_forward ? layer.intermediate_size : 0);
  }
  (*all)["attention.head_count"] = integers(heads);
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["feed_forward_length"] = integers(inner);
}

// Layers with a window have more key heads; the window is that of published folders.
void add_mimo2_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<int64_t> kv_heads;
  std::vector<bool> windowed;
  int32_t window = 0;
  for (const LayerConfig& layer : config.layers) {
    kv_heads.push_back(layer.num_kv_heads > 0 ? layer.num_kv_heads : config.num_kv_heads);
    windowed.push_back(layer.window > 0);
    window = std::max(window, layer.window);
  }
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["attention.sliding_window_pattern"] = flags(windowed);
  (*all)["attention.sliding_window"] = u32(window - 1);
  (*all)["attention.value_length"] = u32(config.value_head_dim);
  (*all)["attention.value_scale"] = f32(config.value_scale);
  (*all)["rope.freq_base_swa"] = f32(config.rope.windowed->theta);
}

// Heads as the cache holds them, and as they are.
void add_latent_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const LatentConfig& latent = config.latent;
  (*all)["attention.head_count_kv"] = u32(1);
  (*all)["attention.key_length"] = u32(latent.kv_rank + latent.rope_dim);
  (*all)["attention.value_length"] = u32(latent.kv_rank);
  (*all)["attention.key_length_mla"] = u32(latent.nope_dim + latent.rope_dim);
  (*all)["attention.value_length_mla"] = u32(latent.value_dim);
  (*all)["attention.q_lora_rank"] = u32(latent.q_rank);
  (*all)["attention.kv_lora_rank"] = u32(latent.kv_rank);
  (*all)["rope.dimension_count"] = u32(latent.rope_dim);
}

// Of families whose goldens are under names of their own in newer files.
void add_own_keys(const std::string& family, const ModelConfig& config,
                  std::map<std::string, Write>* all) {
  (*all)["attention.key_length"] = u32(config.head_dim);
  (*all)["attention.value_length"] = u32(config.head_dim);
  (*all)["rope.freq_base"] = f32(config.rope.full.theta);
  (*all)["rope.dimension_count"] = u32(config.rope.full.rotary_dim);
  if (config.experts.count > 0) add_expert_keys(config, all);
  if (family == "glm4moe" || family == "bailingmoe2") add_module_keys(config, all);
  if (family == "deci") add_layer_keys(config, all);
  if (family == "ernie4_5-moe") (*all)["interleave_moe_layer_step"] = u32(2);
  if (family == "command-r") (*all)["logit_scale"] = f32(config.logits_scale);
  if (family == "olmo" || family == "dbrx") (*all)["attention.clamp_kqv"] = f32(config.qkv_clip);
  if (family == "minicpm") {
    (*all)["embedding_scale"] = f32(config.embedding_scale);
    (*all)["residual_scale"] = f32(config.residual_scale);
    (*all)["logit_scale"] = f32(1 / config.logits_scale);
  }
  if (family == "cohere2moe") {
    (*all)["attention.sliding_window"] = u32(24);
    (*all)["attention.sliding_window_pattern"] = flags({true, false});
    (*all)["logit_scale"] = f32(config.logits_scale);
    (*all)["expert_gating_func"] = u32(1);
  }
  if (family == "mimo2") add_mimo2_keys(config, all);
  if (family == "mistral4") add_latent_keys(config, all);
  if (family != "mistral3" && family != "mistral4") return;
  (*all)["attention.temperature_scale"] = f32(config.query_growth.beta);
  (*all)["rope.scaling.type"] = text("yarn");
  (*all)["rope.scaling.factor"] = f32(config.rope.full.factor);
  (*all)["rope.scaling.original_context_length"] = u32(config.rope.full.original_context);
  // A tenth of DeepSeek's number, and Ministral's own.
  (*all)["rope.scaling.yarn_log_multiplier"] = f32(family == "mistral3" ? 1 : 0.1);
}

std::map<std::string, Write> metadata(const std::string& family, const ModelConfig& config) {
  std::map<std::string, Write> all = {
      {"embedding_length", u32(config.hidden_size)},
      {"block_count", u32(config.num_layers)},
      {"feed_forward_length", u32(config.intermediate_size)},
      {"context_length", u32(512)},
      {"attention.head_count", u32(config.num_heads)},
      {"attention.head_count_kv", u32(config.num_kv_heads)},
      {family == "gemma3n" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
       f32(1e-5)}};
  if (family == "gptneox") {
    all["rope.dimension_count"] = u32(config.rope.full.rotary_dim);
    all["use_parallel_residual"] = flag(config.parallel_blocks);
  } else if (family == "mpt") {
    all["attention.clamp_kqv"] = f32(config.qkv_clip);
    all["attention.max_alibi_bias"] = f32(8);
  } else if (family == "gemma3n") {
    all["attention.key_length"] = u32(config.head_dim);
    all["attention.sliding_window"] = u32(24);
    all["attention.sliding_window_pattern"] = flags({true, false, true, false});
    all["attention.shared_kv_layers"] = u32(2);
    all["final_logit_softcapping"] = f32(config.logits_softcap);
    all["rope.freq_base"] = f32(1e6);
    all["rope.freq_base_swa"] = f32(1000);
    all["embedding_length_per_layer_input"] = u32(config.layer_input_size);
    all["altup.num_inputs"] = u32(config.streams.count);
    all["altup.active_idx"] = u32(config.streams.active);
    const float none = -INFINITY;
    all["activation_sparsity_scale"] = floats({0.8416212f, none, none, none});
  } else if (family != "falcon" && family != "bloom" && family != "gpt2") {
    add_own_keys(family, config, &all);
  }
  return all;
}

const GgufArchitecture& architecture_of(const std::string& family) {
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.name == family) return architecture;
  }
  ADD_FAILURE() << family;
  return gguf_architectures()[0];
}

void write_gguf(const std::string& path, const std::string& family, const std::string& folder) {
  const ModelConfig config = read_model_config(folder, {}).value();
  Matrices all = matrices_of(folder);
  std::map<std::string, std::vector<float>> numbers;  // of layers, by key
  for (const GgufName& number : architecture_of(family).numbers) {
    for (int32_t layer = 0; layer < config.num_layers; ++layer) {
      const Matrix& one =
          all.at("model.layers." + std::to_string(layer) + "." + std::string(number.hf));
      numbers[std::string(number.gguf)].push_back(one.values[0]);
    }
  }
  put_in_order(family, config, &all);
  if (architecture_of(family).interleaves_heads) interleave_heads(config, &all);
  const auto values = metadata(family, config);
  test::GgufBytes file(all.size(), 1 + values.size() + numbers.size());
  file.text_value("general.architecture", family);
  for (const auto& [key, write] : values) write(file, family + "." + key);
  for (const auto& [key, each] : numbers) floats(each)(file, key);
  uint64_t offset = 0;
  for (const auto& [name, matrix] : all) {
    const auto own = gguf_tensor_name(architecture_of(family), name);
    ASSERT_TRUE(own.has_value()) << name;
    file.text(*own).number(static_cast<uint32_t>(matrix.shape.size()));
    for (auto extent = matrix.shape.rbegin(); extent != matrix.shape.rend(); ++extent) {
      file.number(static_cast<uint64_t>(*extent));
    }
    file.number(uint32_t{0}).number(offset);
    offset += (matrix.values.size() * 4 + 31) / 32 * 32;
  }
  file.align();
  for (const auto& [name, matrix] : all) {
    for (const float value : matrix.values) file.number(value);
    file.align();
  }
  file.write(path);
}

// The MTP modules of a file are its drafter's.
TEST(GgufHeads, MtpModulesBehindTheLayers) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  const test::GoldenCase golden = test::golden_cases({"glm4_moe"}).front();
  write_gguf(path, "glm4moe", golden.folder);
  const auto target = read_model_config(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target.value().num_layers, 2);
  const auto head = read_draft_head_config(path, HeadKind::kMtp, target.value(), {});
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value().num_modules, 1);
  EXPECT_EQ(head.value().first_layer, 2);
  EXPECT_TRUE(head.value().layer.layers[0].experts);
}

struct Family {
  const char* name;    // in the file
  const char* golden;  // folder
  // Fields of config.json that files say by tensors of their own, which are not written here.
  std::vector<const char*> overridden = {};
};

class GgufFamilies : public testing::TestWithParam<Family> {};

TEST_P(GgufFamilies, HaveTheLogitsOfTheFolder) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  const test::GoldenCase golden = test::golden_cases({GetParam().golden}).front();
  write_gguf(path, GetParam().name, golden.folder);
  if (HasFatalFailure()) return;
  nlohmann::json overrides = nlohmann::json::object();
  const auto own = read_json_file(golden.folder + "/config.json").value();
  for (const char* field : GetParam().overridden) overrides[field] = own.at(field);
  const auto model =
      test::load_test_model(path, {"float32", overrides.dump()}, 70, golden.max_model_len);
  for (const test::GoldenPrompt& prompt : test::golden_prompts(golden)) {
    test::ForwardHarness harness(test::model_device(), *model, 70, 32);
    const auto rows = harness.run(prompt.ids, 70);
    for (size_t i = 0; i < prompt.positions.size(); ++i) {
      const std::vector<float>& got = rows[static_cast<size_t>(prompt.positions[i])];
      double error = 0, size = 0;
      for (size_t at = 0; at < got.size(); ++at) {
        error += std::pow(got[at] - prompt.logits[i][at], 2);
        size += std::pow(prompt.logits[i][at], 2);
      }
      EXPECT_LT(std::sqrt(error / size), 1e-5) << "position " << prompt.positions[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, GgufFamilies,
    testing::Values(Family{"gpt2", "gpt2"}, Family{"gptneox", "gpt_neox"},
                    Family{"gptneox", "gpt_neox-serial"}, Family{"falcon", "falcon"},
                    Family{"falcon", "falcon-large"}, Family{"bloom", "bloom"},
                    Family{"mpt", "mpt"}, Family{"gemma3n", "gemma3n"}, Family{"phi2", "phi"},
                    Family{"olmo", "olmo"}, Family{"starcoder", "gpt_bigcode"},
                    Family{"exaone", "exaone", {"rope_scaling"}}, Family{"dbrx", "dbrx"},
                    Family{"internlm2", "internlm2", {"rope_scaling", "max_position_embeddings"}},
                    Family{"minicpm", "minicpm"}, Family{"baichuan", "baichuan"},
                    Family{"chatglm", "chatglm"}, Family{"mistral3", "ministral3"},
                    Family{"mistral4", "mistral4", {"rms_norm_eps"}}, Family{"deci", "deci"},
                    Family{"cohere2moe", "cohere2_moe-mean"}, Family{"mimo2", "mimo_v2"},
                    Family{"bitnet-b1.58", "bitnet"}, Family{"glm4moe", "glm4_moe"},
                    Family{"bailingmoe2", "bailing_moe_v2"}, Family{"dots1", "dots1"},
                    Family{"minimax-m2", "minimax_m2"}, Family{"ernie4_5-moe", "ernie4_5_moe"},
                    Family{"command-r", "cohere"}, Family{"apertus", "apertus", {"rope_scaling"}}),
    [](const auto& test) {
      std::string name = test.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace foretoken
