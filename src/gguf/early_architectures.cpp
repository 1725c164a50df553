#include "gguf/early_architectures.h"

#include <algorithm>

#include "gguf/own_keys.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Projections whose rows folders have in another order, converters put in order.
constexpr GgufName kGpt2Model[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"position_embd.weight", "transformer.wpe.weight"},
                                   {"output_norm.weight", "transformer.ln_f.weight"},
                                   {"output_norm.bias", "transformer.ln_f.bias"}};
constexpr GgufName kGpt2Tensors[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                                     {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                                     {"ffn_up", "mlp.c_fc"},         {"ffn_down", "mlp.c_proj"}};
constexpr GgufKey kGpt2Keys[] = {{"embedding_length", "n_embd"},
                                 {"block_count", "n_layer"},
                                 {"attention.head_count", "n_head"},
                                 {"context_length", "n_positions"},
                                 {"feed_forward_length", "n_inner"}};

constexpr GgufName kNeoxModel[] = {{"token_embd.weight", "gpt_neox.embed_in.weight"},
                                   {"output_norm.weight", "gpt_neox.final_layer_norm.weight"},
                                   {"output_norm.bias", "gpt_neox.final_layer_norm.bias"},
                                   {"output.weight", "embed_out.weight"}};
constexpr GgufName kNeoxTensors[] = {{"attn_qkv", "attention.query_key_value"},
                                     {"attn_output", "attention.dense"},
                                     {"ffn_up", "mlp.dense_h_to_4h"},
                                     {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufKey kNeoxKeys[] = {{"rope.freq_base", "rotary_emb_base"},
                                 {"rope.dimension_count", "rotary_dims"},
                                 {"use_parallel_residual", "use_parallel_residual", false, true}};

constexpr GgufName kFalconModel[] = {{"token_embd.weight", "transformer.word_embeddings.weight"},
                                     {"output_norm.weight", "transformer.ln_f.weight"},
                                     {"output_norm.bias", "transformer.ln_f.bias"}};
constexpr GgufName kFalconTensors[] = {{"attn_norm_2", "ln_attn"},
                                       {"attn_qkv", "self_attention.query_key_value"},
                                       {"attn_output", "self_attention.dense"},
                                       {"ffn_up", "mlp.dense_h_to_4h"},
                                       {"ffn_down", "mlp.dense_4h_to_h"}};

constexpr GgufName kBloomTensors[] = {{"attn_qkv", "self_attention.query_key_value"},
                                      {"attn_output", "self_attention.dense"},
                                      {"ffn_up", "mlp.dense_h_to_4h"},
                                      {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufName kBloomModel[] = {
    {"token_embd.weight", "transformer.word_embeddings.weight"},
    {"token_embd_norm.weight", "transformer.word_embeddings_layernorm.weight"},
    {"token_embd_norm.bias", "transformer.word_embeddings_layernorm.bias"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"}};

constexpr GgufName kMptModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                  {"output_norm.weight", "transformer.norm_f.weight"}};
constexpr GgufName kMptTensors[] = {
    {"attn_norm", "norm_1"}, {"attn_qkv", "attn.Wqkv"}, {"attn_output", "attn.out_proj"},
    {"ffn_norm", "norm_2"},  {"ffn_up", "ffn.up_proj"}, {"ffn_down", "ffn.down_proj"}};
constexpr GgufKey kMptKeys[] = {
    {"embedding_length", "d_model"},     {"block_count", "n_layers"},
    {"attention.head_count", "n_heads"}, {"context_length", "max_seq_len"},
    {"attention.clamp_kqv", "clip_qkv"}, {"attention.max_alibi_bias", "alibi_bias_max"}};

constexpr GgufName kSparkModel[] = {{"token_embd.weight", "model.embedding.weight"}};
constexpr GgufName kSparkTensors[] = {{"attn_qkv", "self_attn.q_k_v_proj"},
                                      {"attn_output", "self_attn.out_proj"},
                                      {"attn_gate", "self_attn.g_proj"}};

constexpr GgufKey kNanbeigeKeys[] = {{"num_loops", "num_loops"},
                                     {"skip_loop_final_norm", "skip_loop_final_norm", false, true}};

constexpr GgufName kPhi2Model[] = {{"output_norm.weight", "model.final_layernorm.weight"},
                                   {"output_norm.bias", "model.final_layernorm.bias"}};
constexpr GgufName kPhi2Tensors[] = {{"attn_qkv", "self_attn.qkv_proj"},
                                     {"attn_output", "self_attn.dense"},
                                     {"ffn_up", "mlp.fc1"},
                                     {"ffn_down", "mlp.fc2"}};

constexpr GgufKey kOlmoKeys[] = {{"attention.clamp_kqv", "clip_qkv"}};

constexpr GgufName kExaoneModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                     {"output_norm.weight", "transformer.ln_f.weight"}};
constexpr GgufName kExaoneTensors[] = {{"attn_norm", "ln_1"},
                                       {"attn_q", "attn.attention.q_proj"},
                                       {"attn_k", "attn.attention.k_proj"},
                                       {"attn_v", "attn.attention.v_proj"},
                                       {"attn_output", "attn.attention.out_proj"},
                                       {"ffn_norm", "ln_2"},
                                       {"ffn_gate", "mlp.c_fc_0"},
                                       {"ffn_up", "mlp.c_fc_1"},
                                       {"ffn_down", "mlp.c_proj"}};

constexpr GgufName kInternLm2Model[] = {{"token_embd.weight", "model.tok_embeddings.weight"},
                                        {"output.weight", "output.weight"}};
constexpr GgufName kInternLm2Tensors[] = {
    {"attn_norm", "attention_norm"}, {"attn_q", "attention.q_proj"},
    {"attn_k", "attention.k_proj"},  {"attn_v", "attention.v_proj"},
    {"attn_output", "attention.wo"}, {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "feed_forward.w1"}, {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"}};

constexpr GgufKey kMiniCpmKeys[] = {{"embedding_scale", "scale_emb"},
                                    {"residual_scale", "residual_scale"},
                                    {"logit_scale", "logit_scale", true}};

constexpr GgufName kChatGlmModel[] = {
    {"token_embd.weight", "transformer.embedding.word_embeddings.weight"},
    {"output_norm.weight", "transformer.encoder.final_layernorm.weight"},
    {"output.weight", "transformer.output_layer.weight"}};
constexpr GgufName kChatGlmTensors[] = {
    {"attn_q", "self_attention.q_proj"},     {"attn_k", "self_attention.k_proj"},
    {"attn_v", "self_attention.v_proj"},     {"attn_qkv", "self_attention.query_key_value"},
    {"attn_output", "self_attention.dense"}, {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"}};

constexpr GgufName kQwenModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"output_norm.weight", "transformer.ln_f.weight"}};
constexpr GgufName kQwenTensors[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                                     {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                                     {"ffn_gate", "mlp.w2"},         {"ffn_up", "mlp.w1"},
                                     {"ffn_down", "mlp.c_proj"}};

constexpr GgufName kJaisModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"output_norm.weight", "transformer.ln_f.weight"},
                                   {"output_norm.bias", "transformer.ln_f.bias"}};
constexpr GgufName kJaisTensors[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                                     {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                                     {"ffn_gate", "mlp.c_fc2"},      {"ffn_up", "mlp.c_fc"},
                                     {"ffn_down", "mlp.c_proj"}};

constexpr GgufName kOpenElmModel[] = {{"token_embd.weight", "transformer.token_embeddings.weight"},
                                      {"output_norm.weight", "transformer.norm.weight"}};
constexpr GgufName kOpenElmTensors[] = {
    {"attn_qkv", "attn.qkv_proj"},  {"attn_output", "attn.out_proj"},
    {"attn_q_norm", "attn.q_norm"}, {"attn_k_norm", "attn.k_norm"},
    {"attn_norm", "attn_norm"},     {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "ffn.gate_proj"},  {"ffn_up", "ffn.up_proj"},
    {"ffn_down", "ffn.proj_2"}};

constexpr std::string_view kPlainFields = R"({"plain_matrices": true})";
constexpr std::string_view kNeoxFields = R"({"plain_matrices": true, "hidden_act": "gelu"})";

void complete_neox(Json& config) {
  const auto head_dim = config["head_dim"].get<double>();
  // Readers cut the product with head_dim off.
  config["rotary_pct"] = std::min((config.value("rotary_dims", head_dim) + 0.25) / head_dim, 1.0);
  config.erase("rotary_dims");
}

void complete_mpt(Json& config) {
  Json attention = {{"alibi", config.contains("alibi_bias_max")}};
  for (const char* name : {"clip_qkv", "alibi_bias_max"}) {
    if (config.contains(name)) attention[name] = config[name];
    config.erase(name);
  }
  config["attn_config"] = attention;
}

constexpr GgufName kDbrxModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"output_norm.weight", "transformer.norm_f.weight"}};
constexpr GgufName kDbrxTensors[] = {{"attn_norm", "norm_attn_norm.norm_1"},
                                     {"attn_qkv", "norm_attn_norm.attn.Wqkv"},
                                     {"attn_output", "norm_attn_norm.attn.out_proj"},
                                     {"attn_output_norm", "norm_attn_norm.norm_2"},
                                     {"ffn_gate_inp", "ffn.router.layer"},
                                     {"ffn_gate_exps", "ffn.experts.mlp.w1"},
                                     {"ffn_up_exps", "ffn.experts.mlp.v1"},
                                     {"ffn_down_exps", "ffn.experts.mlp.w2"}};
constexpr GgufKey kDbrxKeys[] = {{"expert_count", "num_experts"},
                                 {"expert_used_count", "num_experts_per_tok"},
                                 {"attention.clamp_kqv", "clip_qkv"}};

void complete_starcoder(Json& config) {
  config["multi_query"] = config["num_key_value_heads"] == 1;
}

// Files from before these keys are of models that all have the same scales.
void complete_minicpm(Json& config) {
  if (config.contains("scale_emb")) return;
  config["scale_emb"] = 12;
  config["scale_depth"] = 1.4;
  config["dim_model_base"] = 256;
}

// As llama.cpp tells the models whose scores fall with distance.
void complete_baichuan(Json& config) { config["alibi"] = config["num_hidden_layers"] == 40; }

// One tensor of q, k and v, or three.
Status read_phi2_file(const GgufFile& file, Json& config) {
  config["plain_matrices"] = file.tensors().contains("blk.0.attn_qkv.weight");
  return {};
}
Status read_chatglm_file(const GgufFile& file, Json& config) {
  config["plain_matrices"] = !file.tensors().contains("blk.0.attn_qkv.weight");
  return {};
}

// Numbers of layers are a list of one for each layer here, whether they differ or not.
Json list_of(const Json& value, size_t num_layers) {
  return value.is_array() ? value : Json(std::vector<Json>(num_layers, value));
}

// The largest of numbers of layers.
Json largest(const Json& each) {
  int64_t most = 1;
  for (const Json& value : each) most = std::max(most, value.get<int64_t>());
  return most;
}

// Heads and widths of each layer; widths are said as they are.
Status read_openelm_file(const GgufFile& file, Json& config) {
  const auto num_layers = config["num_hidden_layers"].get<size_t>();
  const double hidden = config["hidden_size"].get<double>();
  const auto heads = file.integers("openelm.attention.head_count");
  FT_ASSIGN_OR_RETURN(const auto theta, file.number("openelm.rope.freq_base"));
  if (theta) config["rope_freq_constant"] = *theta;
  config["num_transformer_layers"] = num_layers;
  config["model_dim"] = config["hidden_size"];
  config["max_context_length"] = config["max_position_embeddings"];
  config["share_input_output_layers"] = config["tie_word_embeddings"];
  const bool differ = heads.ok() && !heads.value().empty();
  config["num_query_heads"] =
      differ ? Json(heads.value()) : list_of(config["num_attention_heads"], num_layers);
  config["num_kv_heads"] = list_of(config["num_key_value_heads"], num_layers);
  const Json widths = list_of(config["intermediate_size"], num_layers);
  Json multipliers = Json::array();
  for (const Json& width : widths) multipliers.push_back(width.get<double>() / hidden);
  config["ffn_multipliers"] = std::move(multipliers);
  config["ffn_dim_divisor"] = 1;
  config["num_key_value_heads"] = largest(config["num_kv_heads"]);
  config["intermediate_size"] = largest(widths);
  return {};
}

constexpr GgufArchitecture kEarlyArchitectures[] = {
    {.name = "gpt2",
     .hf_class = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .tensors = kGpt2Tensors,
     .model_tensors = kGpt2Model,
     .layers = "transformer.h.",
     .keys = kGpt2Keys,
     .fields = kPlainFields},
    {.name = "gptneox",
     .hf_class = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .tensors = kNeoxTensors,
     .model_tensors = kNeoxModel,
     .layers = "gpt_neox.layers.",
     .keys = kNeoxKeys,
     .fields = kNeoxFields,
     .complete = complete_neox},
    {.name = "falcon",
     .hf_class = "FalconForCausalLM",
     .model_type = "falcon",
     .tensors = kFalconTensors,
     .model_tensors = kFalconModel,
     .layers = "transformer.h.",
     .fields = kPlainFields,
     .read = read_falcon_file},
    {.name = "bloom",
     .hf_class = "BloomForCausalLM",
     .model_type = "bloom",
     .tensors = kBloomTensors,
     .model_tensors = kBloomModel,
     .layers = "transformer.h.",
     .fields = kPlainFields},
    {.name = "mpt",
     .hf_class = "MPTForCausalLM",
     .model_type = "mpt",
     .tensors = kMptTensors,
     .model_tensors = kMptModel,
     .layers = "transformer.blocks.",
     .keys = kMptKeys,
     .fields = R"({"hidden_act": "gelu"})",
     .complete = complete_mpt},
    {.name = "phi2",
     .hf_class = "PhiForCausalLM",
     .model_type = "phi",
     .tensors = kPhi2Tensors,
     .model_tensors = kPhi2Model,
     .fields = R"({"hidden_act": "gelu_new"})",
     .read = read_phi2_file},
    {.name = "olmo",
     .hf_class = "OlmoForCausalLM",
     .model_type = "olmo",
     .interleaves_heads = true,
     .keys = kOlmoKeys},
    {.name = "starcoder",
     .hf_class = "GPTBigCodeForCausalLM",
     .model_type = "gpt_bigcode",
     .tensors = kGpt2Tensors,
     .model_tensors = kGpt2Model,
     .layers = "transformer.h.",
     .keys = kGpt2Keys,
     .fields = kPlainFields,
     .complete = complete_starcoder},
    {.name = "qwen",
     .hf_class = "QWenLMHeadModel",
     .model_type = "qwen",
     .tensors = kQwenTensors,
     .model_tensors = kQwenModel,
     .layers = "transformer.h."},
    // Scales of embeddings and logits are a part of their matrices.
    {.name = "jais",
     .hf_class = "JAISLMHeadModel",
     .model_type = "jais",
     .tensors = kJaisTensors,
     .model_tensors = kJaisModel,
     .layers = "transformer.h.",
     .keys = kGpt2Keys,
     .fields = R"({"plain_matrices": true, "scale_qk_dot_by_d": true})"},
    {.name = "openelm",
     .hf_class = "OpenELMForCausalLM",
     .model_type = "openelm",
     .tensors = kOpenElmTensors,
     .model_tensors = kOpenElmModel,
     .layers = "transformer.layers.",
     .fields = kPlainFields,
     .read = read_openelm_file},
    {.name = "exaone",
     .hf_class = "ExaoneForCausalLM",
     .model_type = "exaone",
     .tensors = kExaoneTensors,
     .model_tensors = kExaoneModel,
     .layers = "transformer.h."},
    {.name = "internlm2",
     .hf_class = "InternLM2ForCausalLM",
     .model_type = "internlm2",
     .interleaves_heads = true,
     .tensors = kInternLm2Tensors,
     .model_tensors = kInternLm2Model,
     .fields = kPlainFields},
    {.name = "minicpm",
     .hf_class = "MiniCPMForCausalLM",
     .model_type = "minicpm",
     .interleaves_heads = true,
     .keys = kMiniCpmKeys,
     .complete = complete_minicpm},
    {.name = "baichuan",
     .hf_class = "BaichuanForCausalLM",
     .model_type = "baichuan",
     .interleaves_heads = true,
     .fields = kPlainFields,
     .complete = complete_baichuan},
    {.name = "chatglm",
     .hf_class = "ChatGLMModel",
     .model_type = "chatglm",
     .tensors = kChatGlmTensors,
     .model_tensors = kChatGlmModel,
     .layers = "transformer.encoder.layers.",
     .read = read_chatglm_file},
    {.name = "dbrx",
     .hf_class = "DbrxForCausalLM",
     .model_type = "dbrx",
     .tensors = kDbrxTensors,
     .model_tensors = kDbrxModel,
     .layers = "transformer.blocks.",
     .keys = kDbrxKeys},
    {.name = "nanbeige",
     .hf_class = "NanbeigeForCausalLM",
     .model_type = "nanbeige",
     .interleaves_heads = true,
     .keys = kNanbeigeKeys},
    {.name = "spark2_5",
     .hf_class = "Spark2_5ForCausalLM",
     .model_type = "spark2_5",
     .tensors = kSparkTensors,
     .model_tensors = kSparkModel,
     .fields = R"({"hidden_act": "gelu"})",
     .read = read_spark_file},
};

}  // namespace

std::span<const GgufArchitecture> early_gguf_architectures() { return kEarlyArchitectures; }

}  // namespace foretoken
