#include "model/files/forms/quantization.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gguf/model_texts.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/mlx_names.h"
#include "model/files/forms/quantization_methods.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kRemedy =
    "; use a checkpoint of AutoGPTQ, GPTQModel (gptq), AutoAWQ (gemm) or compressed-tensors of 4 "
    "or "
    "8 bits, one of FP8 (e4m3), NVFP4 or MXFP4, the unquantised model, or a GGUF file";

constexpr const char* kInstead =
    "; use a checkpoint of GPTQ, AWQ, compressed-tensors, FP8 or NVFP4, the unquantised model, or "
    "a "
    "GGUF file";

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
  // With the reason in place of the list of what is read.
  void want_because(bool holds, const std::string& what, const std::string& why) {
    if (holds || !status_.ok()) return;
    status_ = unsupported(where_ + ": quantization_config with " + what + " is not read: " + why);
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
  if (found.layout == PackLayout::kScaled || found.differs) return;
  const bool are_gptq = found.layout == PackLayout::kGptq && found.bits >= 2 && found.bits <= 8;
  reader.want(found.bits == 4 || found.bits == 8 || are_gptq, bits_text(found.bits));
  reader.want(found.group == -1 || (found.group > 0 && found.group % 8 == 0),
              "group_size " + std::to_string(found.group));
}

void read_gptq(Reader& reader, Quantization* out) {
  const std::string format = reader.text("checkpoint_format", "gptq");
  reader.want(format == "gptq" || format == "gptq_v2", "checkpoint_format " + format);
  reader.want_none("is_marlin_format");
  out->layout = PackLayout::kGptq;
  // GPTQModel's rules for some matrices.
  const Json* rules = reader.find("dynamic");
  out->differs = rules != nullptr && !rules->empty();
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

void set_scaled(Quantization* out) {
  out->layout = PackLayout::kScaled;
  out->bits = 8;
}

// DeepSeek's blocks, and scales of rows or tensors as vLLM writes them.
void read_fp8(Reader& reader, Quantization* out) {
  const std::string format = reader.text("fmt", "e4m3");
  const bool is_e4m3 = format == "e4m3" || format == "float8_e4m3fn";
  out->is_fp8 = is_e4m3 && reader.text("quant_algo", "") != "MIXED_PRECISION";
  reader.want(is_e4m3 || format == "e5m2" || format == "float8_e5m2", "fmt " + format);
  set_scaled(out);
  out->rounds_activations = true;
  read_block(reader, "weight_block_size", out);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Floats, or integers of a byte each, which those of four bits have too (W4A8).
void read_compressed_scaled(Reader& weights, bool is_float, Quantization* out) {
  const int64_t bits = weights.integer("num_bits", "", 8);
  const std::string strategy = weights.text("strategy", "tensor");
  weights.want(bits == 8 || bits == 4,
               std::string(is_float ? "floats" : "integers") + " of " + bits_text(bits));
  if (!is_float || bits != 8) out->is_fp8 = false;
  weights.want(is_one_of(strategy, {"tensor", "channel", "block", "group", "tensor_group"}),
               "strategy " + strategy);
  Quantization block;
  read_block(weights, "block_structure", &block);
  const bool differs = out->block_rows > 0 && block.block_rows > 0 &&
                       (out->block_rows != block.block_rows || out->block_cols != block.block_cols);
  weights.want(!differs, "blocks of several sizes");
  if (block.block_rows > 0) {
    out->block_rows = block.block_rows;
    out->block_cols = block.block_cols;
  }
}

// Integers in words.
void read_compressed_packed(Reader& weights, Quantization* out) {
  const std::string strategy = weights.text("strategy", "group");
  weights.want(strategy == "group" || strategy == "channel", "strategy " + strategy);
  out->layout = PackLayout::kCompressed;
  out->bits = static_cast<int32_t>(weights.integer("num_bits", "", 4));
  out->group = strategy == "channel" ? -1 : weights.integer("group_size", "", -1);
  weights.want(out->bits == 4 || out->bits == 8, bits_text(out->bits));
}

// One of config_groups. How activations are rounded is not looked at: they are not.
Status read_compressed_group(const Json& group, const std::string& all_format,
                             const std::string& where, Quantization* out) {
  Reader outer(group, where);
  const std::string format = outer.text("format", all_format.c_str());
  const Json* weights = outer.find("weights");
  outer.want(weights != nullptr && weights->is_object(), "config_groups without weights");
  outer.want(is_one_of(format, {"pack-quantized", "int-quantized", "float-quantized",
                                "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                "mxfp8-quantized", "mixed-precision", "dense"}),
             "format '" + format + "'");
  if (outer.failed()) return outer.status();
  if (outer.find("input_activations") != nullptr) out->rounds_activations = true;
  Reader inner(*weights, where);
  const std::string type = inner.text("type", "int");
  inner.want(type == "int" || type == "float", "weights of the type " + type);
  const bool packed = format == "pack-quantized" || (format == "mixed-precision" && type == "int");
  inner.want(type == "int" || format != "pack-quantized", "weights of the type " + type);
  if (packed) {
    out->is_fp8 = false;
    read_compressed_packed(inner, out);
  } else {
    read_compressed_scaled(inner, type == "float", out);
  }
  return inner.status();
}

// An object that may say that nothing more was done to the weights.
bool is_dense(const Json* object) {
  if (object == nullptr || object->empty()) return true;
  const auto format = object->find("format");
  return object->is_object() && format != object->end() && *format == "dense";
}

bool is_empty(const Json* value) { return value == nullptr || value->empty(); }

Status read_compressed(Reader& reader, const std::string& where, Quantization* out) {
  const std::string format = reader.text("format", "");
  const Json* groups = reader.find("config_groups");
  reader.want(groups != nullptr && groups->is_object() && !groups->empty() &&
                  std::all_of(groups->begin(), groups->end(),
                              [](const Json& group) { return group.is_object(); }),
              "format '" + format + "' and no config_groups");
  reader.want_because(
      is_dense(reader.find("sparsity_config")) && format != "marlin-24",
      format == "marlin-24" ? "format 'marlin-24'" : "sparse weights (sparsity_config)",
      "bit masks and the words of one kernel are left out here; load the model with a version of "
      "compressed-tensors that still has them and save it dense, or use the model as it was "
      "before or a GGUF file");
  reader.want_because(
      is_empty(reader.find("transform_config")), "a transform_config",
      "its matrices expect rows that Hadamard matrices turned (SpinQuant, QuIP), "
      "which is not done here; use a checkpoint without transforms, the model as it was "
      "before, or a GGUF file");
  if (reader.failed()) return reader.status();
  set_scaled(out);
  out->is_fp8 = true;
  for (const Json& group : *groups) {
    FT_RETURN_IF_ERROR(read_compressed_group(group, format, where, out));
  }
  out->differs = groups->size() > 1;
  return {};
}

// Whether the KV cache alone is quantised (model/files/kv_quantization.h), or nothing is.
bool rounds_kv_alone(const std::string& method, Reader& reader) {
  const bool rounds =
      reader.find("kv_cache_scheme") != nullptr || reader.find("kv_cache_quant_algo") != nullptr;
  if (method == "compressed-tensors" && is_empty(reader.find("config_groups"))) {
    const bool plain = reader.text("format", "") == "dense" &&
                       is_dense(reader.find("sparsity_config")) &&
                       is_empty(reader.find("transform_config"));
    return rounds || plain;
  }
  return method == "modelopt" && rounds && is_empty(reader.find("quant_algo"));
}

// The algorithms of NVIDIA's ModelOpt whose weights are codes and scales alone.
bool is_read_algorithm(std::string_view name) {
  return is_one_of(name, {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4",
                          "MXFP8", "MXFP4", "W4A8_MXFP4_FP8", "NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ",
                          "W4A8_NVFP4_FP8", "W8A16", "W8A8_SQ_PER_CHANNEL"});
}

void read_modelopt(Reader& reader, Quantization* out) {
  const std::string algorithm = reader.text("quant_algo", "");
  const std::string named = "quant_method 'modelopt' (quant_algo " + algorithm + ")";
  reader.want_because(algorithm != "NVFP4_SVD", named,
                      "its matrices have a part of low rank beside them; use a checkpoint of NVFP4 "
                      "or NVFP4_AWQ, the model as it was before, or a GGUF file");
  reader.want(algorithm == "MIXED_PRECISION" || is_read_algorithm(algorithm), named);
  if (const Json* layers = reader.find("quantized_layers"); layers != nullptr) {
    for (const Json& layer : *layers) {
      const Json own = layer.is_object() ? layer.value("quant_algo", Json()) : Json();
      reader.want(own.is_string() && is_read_algorithm(own.get<std::string>()),
                  "quantized_layers of quant_algo " + own.dump().substr(0, 80));
    }
  }
  set_scaled(out);
  out->is_fp8 = algorithm.starts_with("FP8");
  out->rounds_activations =
      !algorithm.starts_with("W4A16") && algorithm != "FP8_PB_WO" && algorithm != "W8A16";
}

// AMD's Quark: what it has for weights, for all layers and for some.
void read_quark(Reader& reader, Quantization* out) {
  std::vector<const Json*> specs;
  for (const char* name : {"layer_quant_config", "layer_type_quant_config"}) {
    const Json* layers = reader.find(name);
    if (layers == nullptr) continue;
    for (const Json& layer : *layers) specs.push_back(&layer);
  }
  const Json* global = reader.find("global_quant_config");
  if (global != nullptr) specs.push_back(global);
  reader.want(!specs.empty(), "quant_method 'quark' and no global_quant_config");
  for (const Json* spec : specs) {
    const Json weight = spec->is_object() ? spec->value("weight", Json()) : Json();
    if (weight.is_null()) continue;
    const Json dtype = weight.is_object() ? weight.value("dtype", Json()) : Json();
    reader.want(dtype == "fp8_e4m3" || dtype == "fp4" || dtype == "int8",
                "Quark's weights " + weight.dump().substr(0, 80));
    const Json inputs = spec->value("input_tensors", Json());
    if (!inputs.is_null()) out->rounds_activations = true;
  }
  set_scaled(out);
}

// Intel's AutoRound in the layouts of others.
void read_auto_round(Reader& reader, Quantization* out) {
  const std::string packing = reader.text("packing_format", "auto_round:auto_gptq");
  const bool gptq = packing.ends_with("gptq");
  // NVFP4 and MXFP4 under the names of compressed-tensors.
  if (packing.ends_with("llm_compressor")) {
    set_scaled(out);
    out->rounds_activations = reader.integer("act_bits", "", 16) < 16;
    return;
  }
  reader.want(gptq || packing.ends_with("awq"), "packing_format " + packing);
  out->layout = gptq ? PackLayout::kGptq : PackLayout::kAwq;
  out->bits = static_cast<int32_t>(reader.integer("bits", "", 4));
  out->group = reader.integer("group_size", "", 128);
  out->stores_zero_less_one = gptq;
  const Json* rules = reader.find("extra_config");
  out->differs = rules != nullptr && !rules->empty();
}

// Codes as transformers packs them. Its matrices of an older kind divide by their scale.
void read_bitnet(Reader& reader, Quantization* out) {
  const std::string kind = reader.text("linear_class", "bitlinear");
  const std::string mode = reader.text("quantization_mode", "offline");
  reader.want(kind == "bitlinear" || kind == "autobitlinear", "linear_class " + kind);
  reader.want(mode == "offline" || mode == "online",
              "quant_method 'bitnet' in quantization_mode " + mode);
  reader.want_none("use_rms_norm");
  set_scaled(out);
  out->is_ternary = mode == "offline";
  out->is_online = mode == "online";
  out->divides = kind == "bitlinear";
  out->rounds_to_int8 = true;
}

// Codes and scales of which the tensors tell all.
void read_scaled(Reader&, Quantization* out) { set_scaled(out); }

void read_fbgemm(Reader&, Quantization* out) {
  set_scaled(out);
  out->is_fp8 = true;
  out->rounds_activations = true;
}

struct MethodReader {
  std::string_view name;
  void (*read)(Reader& reader, Quantization* out);
};
// But compressed-tensors, whose groups have errors of their own, and ModelOpt's many names.
constexpr MethodReader kReaders[] = {
    {"gptq", read_gptq},
    {"awq", read_awq},
    {"fp8", read_fp8},
    {"mxfp8", read_fp8},
    {"fbgemm_fp8", read_fbgemm},
    {"mxfp4", read_scaled},
    {"bitnet", read_bitnet},
    {"bitsandbytes", read_scaled},
    {"mlx", read_scaled},
    {"hqq", read_scaled},
    {"torchao", read_scaled},
    {"quark", read_quark},
    {"auto-round", read_auto_round},
    {"intel/auto-round", read_auto_round},
};

Status read_method(Reader& reader, const std::string& where, Quantization* out) {
  const std::string& method = out->method;
  const std::string algorithm = reader.text("quant_algo", "");
  if (method == "compressed-tensors") return read_compressed(reader, where, out);
  if (method.starts_with("modelopt") || (method.empty() && !algorithm.empty())) {
    read_modelopt(reader, out);
    return {};
  }
  for (const MethodReader& row : kReaders) {
    if (method != row.name) continue;
    row.read(reader, out);
    return {};
  }
  if (method.empty() && reader.find("bits") != nullptr && reader.find("group_size") != nullptr) {
    out->method = "mlx";
    set_scaled(out);
    return {};
  }
  if (const RefusedMethod* refused = find_refused_method(method); refused != nullptr) {
    reader.want_because(false, "quant_method '" + method + "'",
                        std::string(refused->why) + kInstead);
    return {};
  }
  reader.want(false, "quant_method '" + method + "'" +
                         (algorithm.empty() ? "" : " (quant_algo " + algorithm + ")"));
  return {};
}

// As it is meant: ModelOpt's fields may lie in an object, and bitsandbytes wrote no method before
// transformers 4.31.
Json with_its_method(Json found) {
  const auto inside = found.find("quantization");
  if (inside != found.end() && inside->is_object() && !found.contains("quant_algo")) {
    for (const auto& [name, value] : inside->items()) found[name] = value;
  }
  const auto holds = [&](const char* name) { return found.contains(name) && found[name] == true; };
  if (!found.contains("quant_method") && (holds("load_in_4bit") || holds("load_in_8bit"))) {
    found["quant_method"] = "bitsandbytes";
  }
  return found;
}

}  // namespace

Result<std::optional<Quantization>> read_quantization(const Json& config,
                                                      const std::string& where) {
  const auto found = config.find("quantization_config");
  const bool says_nothing =
      found == config.end() || found->is_null() || (found->is_object() && found->empty());
  if (says_nothing) return std::optional<Quantization>();
  if (!found->is_object()) {
    return invalid_argument(where + ": 'quantization_config' must be an object; correct the file");
  }
  const Json meant = with_its_method(*found);
  Reader reader(meant, where);
  Quantization quantization;
  quantization.method = reader.text("quant_method", "");
  if (rounds_kv_alone(quantization.method, reader)) return std::optional<Quantization>();
  FT_RETURN_IF_ERROR(read_method(reader, where, &quantization));
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
  const auto text = config.find("text_config");
  if (text != config.end() && text->is_object() && text->contains("quantization_config")) {
    config["quantization_config"] = Json((*text)["quantization_config"]);
    return config;
  }
  if (const Json* of_mlx = mlx_quantization(config); of_mlx != nullptr) {
    config["quantization_config"] = Json(*of_mlx);
    return config;
  }
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
