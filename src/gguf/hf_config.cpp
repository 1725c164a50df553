#include "gguf/hf_config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "gguf/hf_names.h"
#include "gguf/own_keys.h"
#include "gguf/plain_keys.h"
#include "gguf/vocabulary/end_tokens.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Reads the keys of one architecture; the first error stays.
class Fields {
 public:
  Fields(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  const Status& status() const { return status_; }
  const std::string& prefix() const { return prefix_; }

  // An integer that must be there and be positive; of attention and MLPs, which models of states
  // alone have not, 0 stands for 1.
  int64_t need(const std::string& key) {
    const auto value = keep(file_.integer(prefix_ + key));
    if (!value) return missing(key);
    const bool is_of_a_part = key == "attention.head_count" || key == "feed_forward_length";
    if (is_of_a_part && *value == 0 && has_states()) return 1;
    if (*value <= 0 || *value > INT32_MAX) {
      note(file_.error("'" + prefix_ + key + "' is " + std::to_string(*value) +
                       ", which is impossible; fetch the file again"));
    }
    return *value;
  }
  std::optional<int64_t> integer(const std::string& key) {
    return keep(file_.integer(prefix_ + key));
  }
  std::optional<double> number(const std::string& key) { return keep(file_.number(prefix_ + key)); }
  std::optional<std::string> text(const std::string& key) {
    return keep(file_.text(prefix_ + key));
  }
  std::optional<bool> flag(const std::string& key) { return keep(file_.flag(prefix_ + key)); }
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

 private:
  bool has_states() const {
    return file_.find(prefix_ + "ssm.inner_size") != nullptr ||
           file_.find(prefix_ + "wkv.head_size") != nullptr;
  }
  template <class T>
  std::optional<T> keep(Result<std::optional<T>> result) {
    if (result.ok()) return result.value();
    note(result.status());
    return std::nullopt;
  }
  int64_t missing(const std::string& key) {
    note(file_.error("'" + prefix_ + key + "' is missing; convert the model again"));
    return 1;
  }

  const GgufFile& file_;
  const std::string prefix_;
  Status status_;
};

// One number, or a list of one for each layer: that of the widest.
int64_t num_query_heads(const GgufFile& file, Fields& fields) {
  const std::string key = "attention.head_count";
  const Result<std::vector<int64_t>> list = file.integers(fields.prefix() + key);
  if (!list.ok() || list.value().empty()) return fields.need(key);
  return std::max(*std::max_element(list.value().begin(), list.value().end()), int64_t{1});
}

// One number, or a list of one for each layer where these differ.
Json num_kv_heads(const GgufFile& file, Fields& fields, int64_t num_heads) {
  const std::string key = "attention.head_count_kv";
  if (file.find(fields.prefix() + key) == nullptr) return num_heads;
  const Result<std::vector<int64_t>> list = file.integers(fields.prefix() + key);
  if (!list.ok()) return fields.integer(key).value_or(num_heads);
  const std::vector<int64_t>& each = list.value();
  const bool same = std::all_of(each.begin(), each.end(), [&](auto n) { return n == each[0]; });
  return same && !each.empty() ? Json(each[0]) : Json(each);
}

// The same of an MLP's inner sizes, which mixtures without dense layers may leave out.
Json inner_sizes(const GgufFile& file, Fields& fields) {
  const bool dense = file.find(fields.prefix() + "feed_forward_length") != nullptr;
  const bool experts = file.find(fields.prefix() + "expert_feed_forward_length") != nullptr;
  const std::string key = !dense && experts ? "expert_feed_forward_length" : "feed_forward_length";
  const Result<std::vector<int64_t>> list = file.integers(fields.prefix() + key);
  if (!list.ok() || list.value().empty()) return fields.need(key);
  const std::vector<int64_t>& each = list.value();
  const bool same = std::all_of(each.begin(), each.end(), [&](auto n) { return n == each[0]; });
  return same ? Json(each[0]) : Json(each);
}

double norm_epsilon(Fields& fields) {
  const auto of_squares = fields.number("attention.layer_norm_rms_epsilon");
  return of_squares ? *of_squares : fields.number("attention.layer_norm_epsilon").value_or(1e-5);
}

int64_t vocabulary(const GgufFile& file, Fields& fields) {
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding != file.tensors().end() && embedding->second.shape.size() == 2) {
    return embedding->second.shape[0];
  }
  fields.note(file.tensors().empty()
                  ? file.error("it holds a vocabulary and no weights; fetch the file of a model")
                  : file.error("the tensor token_embd.weight is missing; fetch the file again"));
  return 1;
}

// The floats of a tensor of F32; empty where there is none.
Result<std::vector<float>> read_floats(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) return std::vector<float>();
  const GgufTensor& tensor = found->second;
  if (tensor.type->name != "F32") {
    return file.error("the tensor '" + name + "' is of the type " + std::string(tensor.type->name) +
                      ", but must be F32; convert the model again");
  }
  std::vector<float> values(static_cast<size_t>(tensor.num_bytes) / sizeof(float));
  FT_RETURN_IF_ERROR(file.read(tensor, values.data()));
  return values;
}

// Phi-3's divisors for contexts within the original one and beyond it.
Status add_longrope(const GgufFile& file, Fields& fields, Json& config) {
  Json rope = {{"rope_type", "longrope"}};
  for (const auto& [name, field] : {std::pair("rope_factors_short.weight", "short_factor"),
                                    std::pair("rope_factors_long.weight", "long_factor")}) {
    FT_ASSIGN_OR_RETURN(const std::vector<float> divisors, read_floats(file, name));
    if (divisors.empty()) {
      return file.error(std::string("the tensor ") + name + " is missing; convert the model again");
    }
    rope[field] = divisors;
  }
  if (const auto factor = fields.number("rope.scaling.attn_factor")) {
    rope["attention_factor"] = *factor;
  }
  if (const auto original = fields.integer("rope.scaling.original_context_length")) {
    config["original_max_position_embeddings"] = *original;
  }
  config["rope_scaling"] = std::move(rope);
  return {};
}

Status add_scaling(const GgufFile& file, const GgufArchitecture& architecture, Fields& fields,
                   Json& config) {
  const std::string type = fields.text("rope.scaling.type").value_or("none");
  if (file.tensors().contains("rope_factors_long.weight")) {
    return add_longrope(file, fields, config);
  }
  if (type == "none") return {};
  if (type != "linear" && type != "yarn") {
    return unsupported(file.path() + ": '" + fields.prefix() + "rope.scaling.type' is '" + type +
                       "'; linear, yarn and longrope with its tensors are read");
  }
  Json rope = {{"rope_type", type}, {"factor", fields.number("rope.scaling.factor").value_or(1.0)}};
  rope.update(Json::parse(architecture.rope_scaling));
  if (const auto original = fields.integer("rope.scaling.original_context_length")) {
    rope["original_max_position_embeddings"] = *original;
  }
  for (const auto& [key, field] : {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                                   std::pair("rope.scaling.yarn_beta_slow", "beta_slow")}) {
    if (const auto value = fields.number(key)) rope[field] = *value;
  }
  // A tenth of what DeepSeek scales angles and scores with.
  if (const auto scale = fields.number("rope.scaling.yarn_log_multiplier"); scale && *scale > 0) {
    rope["mscale"] = rope["mscale_all_dim"] = *scale * 10;
  }
  config["rope_scaling"] = std::move(rope);
  return {};
}

// A part of each head that turns.
Status add_rotary_part(const GgufFile& file, Fields& fields, bool interleaved, Json& config) {
  if (config.contains("qk_rope_head_dim")) return {};
  const auto turned = fields.integer("rope.dimension_count");
  const auto head_dim = config["head_dim"].get<int64_t>();
  if (!turned || *turned == head_dim) return {};
  if (interleaved || *turned <= 0 || *turned > head_dim) {
    return unsupported(file.path() + ": '" + fields.prefix() + "rope.dimension_count' is " +
                       std::to_string(*turned) + " for heads of " + std::to_string(head_dim) +
                       ", which is not computed here; use another file or the model's Hugging "
                       "Face folder");
  }
  // Readers cut the product with head_dim off.
  config["partial_rotary_factor"] =
      (static_cast<double>(*turned) + 0.25) / static_cast<double>(head_dim);
  return {};
}

// Divisors of the rotary frequencies come as a tensor: the form that Hugging Face calls longrope
// says the same.
Status add_rope(const GgufFile& file, const GgufArchitecture& architecture, Fields& fields,
                Json& config) {
  config["rope_theta"] = fields.number("rope.freq_base").value_or(10000.0);
  if (const auto windowed = fields.number("rope.freq_base_swa")) {
    config["rope_local_base_freq"] = *windowed;
  }
  FT_ASSIGN_OR_RETURN(const std::vector<float> divisors, read_floats(file, "rope_freqs.weight"));
  if (divisors.empty()) return add_scaling(file, architecture, fields, config);
  config["original_max_position_embeddings"] = config["max_position_embeddings"];
  config["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", divisors},
                            {"long_factor", divisors},
                            {"attention_factor", 1.0}};
  return {};
}

// Keys whose fields all architectures share; zero means none.
constexpr GgufKey kSharedKeys[] = {
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};

// Of those that gguf_model_config reads by itself, the ones that readers of fields complain about.
constexpr GgufKey kCommonKeys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};

void add_keys(Fields& fields, std::span<const GgufKey> keys, Json& config) {
  for (const GgufKey& key : keys) {
    if (key.is_flag) {
      if (const auto flag = fields.flag(std::string(key.key))) config[key.field] = *flag;
      continue;
    }
    const auto value = fields.number(std::string(key.key));
    if (!value || *value == 0) continue;
    const double number = key.inverse ? 1 / *value : *value;
    const bool whole = number == std::floor(number) && std::abs(number) < 1e9;
    config[key.field] = whole ? Json(static_cast<int64_t>(number)) : Json(number);
  }
}

// What scores are multiplied with, where it is not 1 / sqrt(head_dim), and no field of the
// architecture's own says so.
void add_attention_scale(Fields& fields, std::span<const GgufKey> own, Json& config) {
  const auto says = [](const GgufKey& key) { return key.key == "attention.scale"; };
  if (std::any_of(own.begin(), own.end(), says)) return;
  const auto scale = fields.number("attention.scale");
  if (scale && *scale > 0) config["query_pre_attn_scalar"] = 1 / (*scale * *scale);
}

// Blocks of few bits are read as bfloat16, which holds all of their precision that matters. What
// most of the elements are decides.
std::string element_type(const GgufFile& file) {
  std::map<std::string_view, int64_t> bytes;
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.shape.size() > 1) bytes[tensor.type->name] += tensor.num_bytes;
  }
  std::string_view type = "F32";
  int64_t most = 0;
  for (const auto& [name, count] : bytes) {
    if (count > most) type = name, most = count;
  }
  return type == "F32" || type == "F64" ? "float32" : type == "F16" ? "float16" : "bfloat16";
}

// What tensors say that some architectures have and others not.
void add_parts(const GgufFile& file, Json& config) {
  const auto has = [&](const char* name) { return file.tensors().contains(name); };
  const bool in_attention = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  const bool in_mlp = has("blk.0.ffn_down.bias");
  config["attention_bias"] = in_attention;
  config["attention_out_bias"] = has("blk.0.attn_output.bias");
  config["mlp_bias"] = in_mlp;
  config["use_bias"] = in_attention || in_mlp;
  config["lm_head_bias"] = has("output.bias");
  config["use_qk_norm"] = has("blk.0.attn_q_norm.weight");
  config["tie_word_embeddings"] = !has("output.weight");
}

// Readers take the kinds of values that files of the architecture have for granted.
Status read_own_keys(const GgufFile& file, const GgufArchitecture& architecture, Json& config) {
  try {
    if (architecture.complete != nullptr) architecture.complete(config);
    return architecture.read != nullptr ? architecture.read(file, config) : Status();
  } catch (const Json::exception&) {
    return file.error("keys of '" + std::string(architecture.name) +
                      "' are missing or of other kinds than its models have; convert the model "
                      "again");
  }
}

// Layers take memory before their tensors are looked for; those of draft modules are the last.
Status check_layers(const GgufFile& file, Fields& fields, int64_t num_layers) {
  constexpr int64_t kMaxLayers = 1 << 16;
  if (num_layers > kMaxLayers) {
    return file.error("'" + fields.prefix() + "block_count' is " + std::to_string(num_layers) +
                      ", more than any model has; fetch the file again");
  }
  const int64_t modules = fields.integer("nextn_predict_layers").value_or(0);
  if (modules >= 0 && modules < num_layers) return fields.status();
  return file.error("'" + fields.prefix() + "nextn_predict_layers' is " + std::to_string(modules) +
                    " of " + std::to_string(num_layers) +
                    " layers, which leaves none to the model; fetch the file again");
}

}  // namespace

Result<Json> gguf_model_config(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const GgufArchitecture* architecture, gguf_architecture(file));
  Fields fields(file, architecture->name);
  const int64_t hidden = fields.need("embedding_length");
  const int64_t heads = num_query_heads(file, fields);
  Json config = {
      {"architectures", Json::array({architecture->hf_class})},
      {"model_type", architecture->model_type},
      {"hidden_size", hidden},
      {"num_hidden_layers", fields.need("block_count")},
      {"intermediate_size", inner_sizes(file, fields)},
      {"num_attention_heads", heads},
      {"num_key_value_heads", num_kv_heads(file, fields, heads)},
      {"head_dim",
       fields.integer("attention.key_length").value_or(hidden / std::max(heads, int64_t{1}))},
      {"max_position_embeddings", fields.need("context_length")},
      {"rms_norm_eps", norm_epsilon(fields)},
      {"vocab_size", vocabulary(file, fields)},
      {"hidden_act", "silu"},
      {"torch_dtype", element_type(file)}};
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_layers(file, fields, config["num_hidden_layers"].get<int64_t>()));
  add_parts(file, config);
  config.update(Json::parse(architecture->fields));
  add_keys(fields, kSharedKeys, config);
  add_keys(fields, architecture->keys, config);
  if (fields.flag("attention.causal") == false) config["is_causal"] = false;
  read_layer_types(file, std::string(architecture->name), config);
  FT_RETURN_IF_ERROR(read_own_keys(file, *architecture, config));
  if (!reads_modules(*architecture)) config.erase("num_nextn_predict_layers");
  if (config["num_key_value_heads"].is_array()) {
    return unsupported(file.path() + ": layers differ in '" + fields.prefix() +
                       "attention.head_count_kv'; use the model's Hugging Face folder instead");
  }
  add_attention_scale(fields, architecture->keys, config);
  if (!config.contains("rope_parameters")) {
    FT_RETURN_IF_ERROR(add_rope(file, *architecture, fields, config));
    FT_RETURN_IF_ERROR(add_rotary_part(file, fields, architecture->interleaves_heads, config));
  }
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_plain_keys(file, *architecture, config["head_dim"].get<int64_t>()));
  return config;
}

Status with_gguf_keys(const GgufFile& file, const Status& status) {
  const auto architecture = gguf_architecture(file);
  if (status.ok() || !architecture.ok()) return status;
  std::string message = status.message();
  const std::string prefix = std::string(architecture.value()->name) + ".";
  const auto put = [&](std::string_view key, std::string_view field) {
    const std::string quoted = "'" + std::string(field) + "'";
    const std::string named = "'" + prefix + std::string(key) + "' (" + quoted + ")";
    // Several keys may give one field.
    if (message.find("(" + quoted + ")") != std::string::npos) return;
    for (size_t at = 0; (at = message.find(quoted, at)) != std::string::npos; at += named.size()) {
      message.replace(at, quoted.size(), named);
    }
  };
  for (const GgufKey& key : architecture.value()->keys) {
    if (file.find(prefix + std::string(key.key)) != nullptr) put(key.key, key.field);
  }
  for (const GgufKey& key : architecture.value()->keys) put(key.key, key.field);
  for (const GgufKey& key : kCommonKeys) put(key.key, key.field);
  for (const GgufKey& key : kSharedKeys) put(key.key, key.field);
  return {status.code(), std::move(message)};
}

Result<Json> gguf_generation_config(const GgufFile& file) {
  Json ends = Json::array();
  const auto add = [&](int64_t id) {
    if (std::find(ends.begin(), ends.end(), Json(id)) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"eos", "eot", "eom"}) {
    FT_ASSIGN_OR_RETURN(const auto id,
                        file.integer(std::string("tokenizer.ggml.") + key + "_token_id"));
    if (id) add(*id);
  }
  const Result<GgufVocabulary> vocabulary = read_gguf_vocabulary(file);
  if (vocabulary.ok()) {
    for (const int64_t id : gguf_end_tokens(vocabulary.value())) add(id);
  }
  Json config = Json::object();
  if (!ends.empty()) config["eos_token_id"] = ends;
  return config;
}

}  // namespace foretoken
