#include "model/files/quantization.h"

#include <algorithm>

#include "gguf/model_texts.h"
#include "model/files/json_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kRemedy =
    "; use a checkpoint in the layout of AutoGPTQ, GPTQModel (gptq), AutoAWQ (gemm) or "
    "compressed-tensors (pack-quantized) of 4 or 8 bits, one of FP8 (e4m3), the unquantised model, "
    "or a GGUF file";

// One quantization_config; the first error stays.
class Reader {
 public:
  Reader(const Json& json, const std::string& where) : json_(json), where_(where) {}

  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }

  std::string text(const char* name, const char* otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (value->is_string()) return value->get<std::string>();
    refuse(std::string(name) + " " + value->dump().substr(0, 80));
    return otherwise;
  }
  int64_t integer(const char* name, const char* other_name, int64_t otherwise) {
    const Json* value = find(name);
    if (value == nullptr) value = find(other_name);
    if (value == nullptr) return otherwise;
    const bool fits =
        value->is_number_integer() && value->get<double>() >= -1 && value->get<double>() <= 1 << 24;
    if (fits) return value->get<int64_t>();
    refuse(std::string(name) + " " + value->dump().substr(0, 80));
    return otherwise;
  }
  // A field that must be missing, null, false or empty.
  void want_none(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && *value != false && !value->empty()) {
      refuse(std::string("'") + name + "' " + value->dump().substr(0, 80));
    }
  }
  void want(bool holds, const std::string& otherwise) {
    if (!holds) refuse(otherwise);
  }
  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  void refuse(const std::string& what) {
    if (!status_.ok()) return;
    status_ = unsupported(where_ + ": quantization_config with " + what + " is not read" + kRemedy);
  }

  const Json& json_;
  const std::string& where_;
  Status status_;
};

std::string bits_text(int64_t bits) { return std::to_string(bits) + " bits"; }

void check_sizes(Reader& reader, const Quantization& found) {
  if (found.layout == PackLayout::kFp8) return;
  reader.want(found.bits == 4 || found.bits == 8, bits_text(found.bits));
  reader.want(found.group == -1 || (found.group > 0 && found.group % 8 == 0),
              "group_size " + std::to_string(found.group));
}

void read_gptq(Reader& reader, Quantization* out) {
  const std::string format = reader.text("checkpoint_format", "gptq");
  reader.want(format == "gptq" || format == "gptq_v2", "checkpoint_format " + format);
  reader.want_none("is_marlin_format");
  reader.want_none("dynamic");
  out->layout = PackLayout::kGptq;
  out->bits = static_cast<int32_t>(reader.integer("bits", "w_bit", 4));
  out->group = reader.integer("group_size", "q_group_size", -1);
  out->stores_zero_less_one = format == "gptq";
}

void read_awq(Reader& reader, Quantization* out) {
  std::string version = reader.text("version", "gemm");
  for (char& c : version) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  reader.want(version == "gemm", "version " + version);
  out->layout = PackLayout::kAwq;
  out->bits = static_cast<int32_t>(reader.integer("bits", "w_bit", 4));
  out->group = reader.integer("group_size", "q_group_size", 128);
  reader.want(out->bits == 4, bits_text(out->bits));
}

// [rows, columns] that share a scale.
void read_block(Reader& reader, const char* name, Quantization* out) {
  const Json* block = reader.find(name);
  if (block == nullptr) return;
  const bool fits = block->is_array() && block->size() == 2 &&
                    std::all_of(block->begin(), block->end(), [](const Json& size) {
                      return size.is_number_integer() && size >= 1 && size <= 1 << 20;
                    });
  if (!fits) return reader.want(false, std::string(name) + " " + block->dump().substr(0, 80));
  out->block_rows = (*block)[0].get<int64_t>();
  out->block_cols = (*block)[1].get<int64_t>();
}

// DeepSeek's blocks, and scales of rows or tensors as vLLM writes them.
void read_fp8(Reader& reader, Quantization* out) {
  const std::string format = reader.text("fmt", "e4m3");
  reader.want(format == "e4m3" || format == "float8_e4m3fn", "fmt " + format);
  out->layout = PackLayout::kFp8;
  out->bits = 8;
  read_block(reader, "weight_block_size", out);
}

// compressed-tensors' floats; how activations are rounded is not looked at: they are not.
void read_compressed_fp8(Reader& weights, Quantization* out) {
  const std::string strategy = weights.text("strategy", "tensor");
  weights.want(weights.text("type", "float") == "float" && weights.integer("num_bits", "", 8) == 8,
               "weights other than floats of 8 bits");
  weights.want(strategy == "tensor" || strategy == "channel" || strategy == "block",
               "strategy " + strategy);
  out->layout = PackLayout::kFp8;
  out->bits = 8;
  read_block(weights, "block_structure", out);
}

Status read_compressed(Reader& reader, const std::string& where, Quantization* out) {
  const std::string format = reader.text("format", "");
  const bool is_fp8 = format == "float-quantized";
  reader.want(is_fp8 || format == "pack-quantized", "format '" + format + "'");
  const Json* groups = reader.find("config_groups");
  const bool one = groups != nullptr && groups->is_object() && groups->size() == 1 &&
                   groups->front().is_object();
  reader.want(one, "other than one of config_groups");
  if (reader.failed()) return reader.status();
  const Json& group = groups->front();
  const Json weights = group.value("weights", Json());
  reader.want(weights.is_object(), "config_groups without weights");
  reader.want(is_fp8 || group.value("input_activations", Json()).is_null(),
              "quantised activations");
  if (reader.failed()) return reader.status();
  Reader inner(weights, where);
  if (is_fp8) {
    read_compressed_fp8(inner, out);
    return inner.status();
  }
  const std::string type = inner.text("type", "int");
  const std::string strategy = inner.text("strategy", "group");
  inner.want(type == "int", "weights of the type " + type);
  inner.want(strategy == "group" || strategy == "channel", "strategy " + strategy);
  inner.want_none("actorder");
  out->layout = PackLayout::kCompressed;
  out->bits = static_cast<int32_t>(inner.integer("num_bits", "num_bits", 4));
  out->group = strategy == "channel" ? -1 : inner.integer("group_size", "group_size", -1);
  return inner.status();
}

bool is_empty(const Json* value) { return value == nullptr || value->empty(); }

// Whether the KV cache alone is quantised (model/files/kv_quantization.h).
bool rounds_kv_alone(const std::string& method, const Reader& reader) {
  const bool rounds =
      reader.find("kv_cache_scheme") != nullptr || reader.find("kv_cache_quant_algo") != nullptr;
  if (method == "compressed-tensors") return rounds && is_empty(reader.find("config_groups"));
  return method == "modelopt" && rounds && is_empty(reader.find("quant_algo"));
}

bool is_fp8_method(const std::string& method, Reader& reader) {
  if (method == "fp8") return true;
  const bool of_modelopt = method.empty() || method == "modelopt";
  return of_modelopt && reader.text("quant_algo", "") == "FP8";
}

}  // namespace

Result<std::optional<Quantization>> read_quantization(const Json& config,
                                                      const std::string& where) {
  const auto found = config.find("quantization_config");
  if (found == config.end() || found->is_null()) return std::optional<Quantization>();
  if (!found->is_object()) {
    return invalid_argument(where + ": 'quantization_config' must be an object; correct the file");
  }
  Reader reader(*found, where);
  const std::string method = reader.text("quant_method", "");
  if (rounds_kv_alone(method, reader)) return std::optional<Quantization>();
  Quantization quantization;
  if (method == "gptq") {
    read_gptq(reader, &quantization);
  } else if (method == "awq") {
    read_awq(reader, &quantization);
  } else if (method == "compressed-tensors") {
    FT_RETURN_IF_ERROR(read_compressed(reader, where, &quantization));
  } else if (is_fp8_method(method, reader)) {
    read_fp8(reader, &quantization);
  } else {
    const std::string algorithm = reader.text("quant_algo", "");
    reader.want(false, "quant_method '" + method + "'" +
                           (algorithm.empty() ? "" : " (quant_algo " + algorithm + ")"));
  }
  if (!reader.failed()) check_sizes(reader, quantization);
  if (reader.failed()) return reader.status();
  return std::optional(quantization);
}

namespace {

// ModelOpt keeps its fields in an object, and may have quantised the KV cache alone.
Json of_modelopt(const Json& file) {
  Json found = file.value("quantization", Json::object());
  const bool has_weights =
      found.is_object() && found.contains("quant_algo") && !found["quant_algo"].is_null();
  if (!has_weights) return Json();
  found["quant_method"] = "modelopt";
  return found;
}

Json with_method(Json file, const char* method) {
  if (!file.contains("quant_method")) file["quant_method"] = method;
  return file;
}

}  // namespace

Result<Json> read_config_json(const ModelFiles& model) {
  FT_ASSIGN_OR_RETURN(Json config, read_model_json(model, "config.json"));
  const auto found = config.find("quantization_config");
  if (model.is_gguf() || (found != config.end() && !found->is_null())) return config;
  for (const char* name : {"quantize_config.json", "quant_config.json", "hf_quant_config.json"}) {
    if (!has_model_text(model, name)) continue;
    FT_ASSIGN_OR_RETURN(Json file, read_model_json(model, name));
    const std::string_view which = name;
    Json made = which == "hf_quant_config.json"   ? of_modelopt(file)
                : which == "quantize_config.json" ? with_method(std::move(file), "gptq")
                                                  : with_method(std::move(file), "awq");
    if (!made.is_null()) config["quantization_config"] = std::move(made);
    break;
  }
  return config;
}

}  // namespace foretoken
