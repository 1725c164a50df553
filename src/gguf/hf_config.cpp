#include "gguf/hf_config.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "gguf/hf_names.h"
#include "gguf/plain_keys.h"

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

  // An integer that must be there and be positive.
  int64_t need(const std::string& key) {
    const auto value = keep(file_.integer(prefix_ + key));
    if (!value) return missing(key);
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
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

 private:
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

// One number, or one for each layer, which must then agree.
int64_t num_kv_heads(const GgufFile& file, Fields& fields, int64_t num_heads) {
  const std::string key = "attention.head_count_kv";
  const GgufValue* value = file.find(fields.prefix() + key);
  if (value == nullptr) return num_heads;
  const Result<std::vector<int64_t>> list = file.integers(fields.prefix() + key);
  if (!list.ok()) return fields.integer(key).value_or(num_heads);
  const std::vector<int64_t>& each = list.value();
  if (each.empty() || std::any_of(each.begin(), each.end(), [&](auto n) { return n != each[0]; })) {
    fields.note(unsupported(file.path() + ": layers differ in '" + fields.prefix() + key +
                            "'; use the model's Hugging Face folder instead"));
    return 1;
  }
  return each[0];
}

int64_t vocabulary(const GgufFile& file, Fields& fields) {
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding != file.tensors().end() && embedding->second.shape.size() == 2) {
    return embedding->second.shape[0];
  }
  fields.note(file.error("the tensor token_embd.weight is missing; fetch the file again"));
  return 1;
}

// The floats of a tensor of F32; empty where there is none.
Result<std::vector<float>> read_floats(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) return std::vector<float>();
  const GgufTensor& tensor = found->second;
  if (tensor.type->name != "F32") return file.error("the tensor '" + name + "' must be F32");
  std::vector<float> values(static_cast<size_t>(tensor.num_bytes) / sizeof(float));
  FT_RETURN_IF_ERROR(file.read(tensor.offset, tensor.num_bytes, values.data()));
  return values;
}

// Divisors of the rotary frequencies come as a tensor: the form that Hugging Face calls longrope
// says the same.
Status add_rope(const GgufFile& file, Fields& fields, Json& config) {
  config["rope_theta"] = fields.number("rope.freq_base").value_or(10000.0);
  FT_ASSIGN_OR_RETURN(const std::vector<float> divisors, read_floats(file, "rope_freqs.weight"));
  const std::string type = fields.text("rope.scaling.type").value_or("none");
  const auto original = fields.integer("rope.scaling.original_context_length");
  if (!divisors.empty()) {
    config["original_max_position_embeddings"] = config["max_position_embeddings"];
    config["rope_scaling"] = {{"rope_type", "longrope"},
                              {"short_factor", divisors},
                              {"long_factor", divisors},
                              {"attention_factor", 1.0}};
    return {};
  }
  if (type == "none") return {};
  if (type != "linear" && type != "yarn") {
    return unsupported(file.path() + ": '" + fields.prefix() + "rope.scaling.type' is '" + type +
                       "'; linear and yarn are read");
  }
  config["rope_scaling"] = {{"rope_type", type},
                            {"factor", fields.number("rope.scaling.factor").value_or(1.0)}};
  if (original) config["rope_scaling"]["original_max_position_embeddings"] = *original;
  return {};
}

// Blocks of few bits are read as bfloat16, which holds all of their precision that matters.
std::string element_type(const GgufFile& file) {
  const auto found = file.tensors().find("blk.0.attn_q.weight");
  const std::string_view type = found != file.tensors().end() ? found->second.type->name : "F32";
  return type == "F32" ? "float32" : type == "F16" ? "float16" : "bfloat16";
}

}  // namespace

Result<Json> gguf_model_config(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const GgufArchitecture* architecture, gguf_architecture(file));
  Fields fields(file, architecture->name);
  const int64_t hidden = fields.need("embedding_length");
  const int64_t heads = fields.need("attention.head_count");
  Json config = {
      {"architectures", Json::array({architecture->hf_class})},
      {"model_type", architecture->model_type},
      {"hidden_size", hidden},
      {"num_hidden_layers", fields.need("block_count")},
      {"intermediate_size", fields.need("feed_forward_length")},
      {"num_attention_heads", heads},
      {"num_key_value_heads", num_kv_heads(file, fields, heads)},
      {"head_dim",
       fields.integer("attention.key_length").value_or(hidden / std::max(heads, int64_t{1}))},
      {"max_position_embeddings", fields.need("context_length")},
      {"rms_norm_eps", fields.number("attention.layer_norm_rms_epsilon").value_or(1e-5)},
      {"vocab_size", vocabulary(file, fields)},
      {"hidden_act", "silu"},
      {"tie_word_embeddings", !file.tensors().contains("output.weight")},
      {"attention_bias", file.tensors().contains("blk.0.attn_q.bias")},
      {"torch_dtype", element_type(file)}};
  if (const auto window = fields.integer("attention.sliding_window"); window && *window > 0) {
    config["sliding_window"] = *window;
  }
  FT_RETURN_IF_ERROR(add_rope(file, fields, config));
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_plain_keys(file, architecture->name, config["head_dim"].get<int64_t>()));
  return config;
}

Result<Json> gguf_generation_config(const GgufFile& file) {
  Json ends = Json::array();
  for (const char* key : {"eos", "eot", "eom"}) {
    FT_ASSIGN_OR_RETURN(const auto id,
                        file.integer(std::string("tokenizer.ggml.") + key + "_token_id"));
    if (id && std::find(ends.begin(), ends.end(), Json(*id)) == ends.end()) ends.push_back(*id);
  }
  Json config = Json::object();
  if (!ends.empty()) config["eos_token_id"] = ends;
  return config;
}

}  // namespace foretoken
