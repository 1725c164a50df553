#include "model/files/forms/quantization.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gguf/model_texts.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/mlx_names.h"
#include "model/files/forms/quantization_compressed.h"
#include "model/files/forms/quantization_methods.h"
#include "model/files/forms/quantization_reader.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using Reader = QuantizationReader;

constexpr const char* kInstead =
    "; use a checkpoint of GPTQ, AWQ, compressed-tensors, FP8 or NVFP4, the unquantised model, or "
    "a "
    "GGUF file";

void check_sizes(Reader& reader, const Quantization& found) {
  if (found.layout == PackLayout::kScaled || found.differs) return;
  const bool are_gptq = found.layout == PackLayout::kGptq && found.bits >= 2 && found.bits <= 8;
  const bool are_two = found.layout == PackLayout::kCompressed && found.bits == 2;
  reader.want(found.bits == 4 || found.bits == 8 || are_gptq || are_two, bits_text(found.bits));
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
  const Json* ordered = reader.find("desc_act");
  out->needs_groups = ordered != nullptr && *ordered == true && out->group > 0 && !out->differs;
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

// What the matrices of a mixed checkpoint are.
struct MixedKinds {
  bool are_named = false;
  bool integers = false;
  bool nvfp4 = false;       // with scales of 16 columns
  bool long_nvfp4 = false;  // of 32

  void add_algorithm(std::string_view name) {
    are_named = true;
    integers |= is_one_of(name, {"W8A16", "W8A8_SQ_PER_CHANNEL", "W4A16_AWQ", "W4A8_AWQ"});
    const bool is_long = name == "W4A8_NVFP4_FP8";
    long_nvfp4 |= is_long;
    nvfp4 |= !is_long && name.find("NVFP4") != std::string_view::npos;
  }
  void add_group(const Json& group) {
    const Json weights = group.is_object() ? group.value("weights", Json()) : Json();
    if (!weights.is_object()) return;
    are_named = true;
    const bool is_integer = weights.value("type", Json("int")) != "float";
    integers |= is_integer;
    if (is_integer || weights.value("num_bits", Json()) != 4) return;
    const bool is_long = weights.value("group_size", Json()) == 32;
    long_nvfp4 |= is_long;
    nvfp4 |= !is_long;
  }
};

// ModelOpt writes algorithms of some of them in small letters.
std::string algorithm_of(const Json& name) {
  std::string text = name.is_string() ? name.get<std::string>() : std::string();
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return text;
}

MixedKinds kinds_of_mixed(const Reader& reader) {
  MixedKinds kinds;
  const Json* layers = reader.find("quantized_layers");
  for (const Json& layer : layers != nullptr ? *layers : Json::array()) {
    kinds.add_algorithm(
        algorithm_of(layer.is_object() ? layer.value("quant_algo", Json()) : Json()));
  }
  const Json* groups = reader.find("config_groups");
  for (const Json& group : groups != nullptr ? *groups : Json::array()) kinds.add_group(group);
  return kinds;
}

// DeepSeek's blocks, and scales of rows or tensors as vLLM writes them.
void read_fp8(Reader& reader, Quantization* out) {
  const std::string format = reader.text("fmt", "e4m3");
  const bool is_e4m3 = format == "e4m3" || format == "float8_e4m3fn";
  const bool is_mixed = reader.text("quant_algo", "") == "MIXED_PRECISION";
  out->is_fp8 = is_e4m3 && !is_mixed;
  out->is_float = !is_mixed || !kinds_of_mixed(reader).integers;
  reader.want(is_e4m3 || format == "e5m2" || format == "float8_e5m2", "fmt " + format);
  set_scaled(out);
  out->rounds_activations = true;
  read_block(reader, "weight_block_size", out);
}

// Whether the KV cache alone is quantised (model/files/kv_quantization.h), or nothing is.
bool rounds_kv_alone(const std::string& method, Reader& reader) {
  const bool rounds =
      reader.find("kv_cache_scheme") != nullptr || reader.find("kv_cache_quant_algo") != nullptr;
  if (method == "compressed-tensors" && !quantizes_weights(reader)) {
    return rounds || leaves_weights_plain(reader);
  }
  return method == "modelopt" && rounds && is_empty_field(reader.find("quant_algo"));
}

// The algorithms of NVIDIA's ModelOpt whose weights are codes and scales alone.
bool is_read_algorithm(std::string_view name) {
  return is_one_of(name, {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4",
                          "MXFP8", "MXFP4", "W4A8_MXFP4_FP8", "NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ",
                          "W4A8_NVFP4_FP8", "W8A16", "W8A8_SQ_PER_CHANNEL"});
}

void read_modelopt(Reader& reader, Quantization* out) {
  const std::string algorithm = algorithm_of(reader.text("quant_algo", ""));
  const std::string named = "quant_method 'modelopt' (quant_algo " + algorithm + ")";
  reader.want_because(algorithm != "NVFP4_SVD", named,
                      "its matrices have a part of low rank beside them; use a checkpoint of NVFP4 "
                      "or NVFP4_AWQ, the model as it was before, or a GGUF file");
  reader.want(algorithm == "MIXED_PRECISION" || is_read_algorithm(algorithm), named);
  if (const Json* layers = reader.find("quantized_layers"); layers != nullptr) {
    for (const Json& layer : *layers) {
      const Json own = layer.is_object() ? layer.value("quant_algo", Json()) : Json();
      reader.want(is_read_algorithm(algorithm_of(own)),
                  "quantized_layers of quant_algo " + own.dump().substr(0, 80));
    }
  }
  set_scaled(out);
  out->is_fp8 = algorithm.starts_with("FP8");
  const bool is_mixed = algorithm == "MIXED_PRECISION";
  MixedKinds kinds = is_mixed ? kinds_of_mixed(reader) : MixedKinds();
  if (!is_mixed) kinds.add_algorithm(algorithm);
  out->is_float = kinds.are_named && !kinds.integers;
  out->nvfp4_group = kinds.long_nvfp4 && !kinds.nvfp4 ? 32 : 16;
  out->nvfp4_differs = kinds.long_nvfp4 && kinds.nvfp4;
  out->rounds_activations =
      !algorithm.starts_with("W4A16") && algorithm != "FP8_PB_WO" && algorithm != "W8A16";
}

// Floats and signed bytes, or integers of four bits in words, which stand alone.
void read_quark_weight(Reader& reader, const Json& weight, Quantization* out) {
  reader.want_because(!weight.is_array(), "Quark's weights that were rounded twice",
                      "its integers of four bits have the scales of two roundings (FP8, then "
                      "int4); use a checkpoint of Quark's FP8 or MXFP4, one of AWQ or GPTQ, the "
                      "model as it was before, or a GGUF file");
  const Json dtype = weight.is_object() ? weight.value("dtype", Json()) : Json();
  const std::string name = dtype.is_string() ? dtype.get<std::string>() : "";
  const SixBits six = name == "fp6_e3m2"   ? SixBits::kE3m2
                      : name == "fp6_e2m3" ? SixBits::kE2m3
                                           : SixBits::kNone;
  if (six != SixBits::kNone) {
    reader.want(out->six_bits == SixBits::kNone || out->six_bits == six,
                "Quark's weights of fp6_e3m2 and fp6_e2m3");
    out->six_bits = six;
    return;
  }
  const bool in_words =
      (name == "int4" || name == "uint4") && weight.value("qscheme", Json()) == "per_group";
  if (!in_words) {
    return reader.want(is_one_of(name, {"fp8_e4m3", "fp8_e5m2", "fp4", "int8"}),
                       "Quark's weights " + weight.dump().substr(0, 80));
  }
  out->layout = PackLayout::kQuark;
  out->is_signed = name == "int4";
  out->needs_zeros = weight.value("symmetric", Json()) == false;
  const Json group = weight.value("group_size", Json());
  out->group = group.is_number_integer() ? group.get<int64_t>() : 0;
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
    read_quark_weight(reader, weight, out);
    const Json inputs = spec->value("input_tensors", Json());
    if (!inputs.is_null()) out->rounds_activations = true;
  }
  if (out->layout != PackLayout::kQuark) return set_scaled(out);
  const Json* exported = reader.find("export");
  const bool in_order = exported != nullptr && exported->is_object() &&
                        exported->value("pack_method", Json("reorder")) != "reorder";
  reader.want(!in_order, "Quark's pack_method 'order'");
}

// Intel's AutoRound in the layouts of others.
void read_auto_round(Reader& reader, Quantization* out) {
  const std::string packing = reader.text("packing_format", "auto_round:auto_gptq");
  // Words of GPTQ's, of "auto_round:gptqmodel" and "auto_round" with whole zeros.
  const bool has_whole_zeros = packing == "auto_round" || packing.ends_with("gptqmodel");
  const bool gptq = packing.ends_with("gptq") || has_whole_zeros;
  // NVFP4, MXFP4 and FP8 under the names of compressed-tensors.
  if (packing.ends_with("llm_compressor") || packing.ends_with(":fp8_static") ||
      packing.ends_with(":fp8")) {
    set_scaled(out);
    out->rounds_activations = reader.integer("act_bits", "", 16) < 16;
    return;
  }
  reader.want(gptq || packing.ends_with("awq"), "packing_format " + packing);
  out->layout = gptq ? PackLayout::kGptq : PackLayout::kAwq;
  out->bits = static_cast<int32_t>(reader.integer("bits", "", 4));
  out->group = reader.integer("group_size", "", 128);
  out->stores_zero_less_one = gptq && !has_whole_zeros;
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

// Whose matrices were made for rows that are rounded, too.
void read_with_rounded_rows(Reader&, Quantization* out) {
  set_scaled(out);
  out->rounds_activations = true;
}

void read_fp8_of_rows(Reader&, Quantization* out) {
  set_scaled(out);
  out->is_fp8 = out->is_float = true;
  out->rounds_activations = true;
}

void read_int8_blocks(Reader& reader, Quantization* out) {
  read_with_rounded_rows(reader, out);
  read_block(reader, "weight_block_size", out);
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
    {"fbgemm_fp8", read_fp8_of_rows},
    {"w8a8_fp8", read_fp8_of_rows},
    {"w8a8_int8", read_with_rounded_rows},
    {"blockwise_int8", read_int8_blocks},
    {"mxfp4", read_scaled},
    {"bitnet", read_bitnet},
    {"bitsandbytes", read_scaled},
    {"gemma", read_with_rounded_rows},
    {"fp_quant", read_with_rounded_rows},
    {"mlx", read_scaled},
    {"metal", read_scaled},
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

// As it is meant: ModelOpt's fields may lie in an object, bitsandbytes wrote no method before
// transformers 4.31, and compressed-tensors' package has another name.
Json with_its_method(Json found) {
  const auto inside = found.find("quantization");
  if (inside != found.end() && inside->is_object() && !found.contains("quant_algo")) {
    for (const auto& [name, value] : inside->items()) found[name] = value;
  }
  const auto holds = [&](const char* name) { return found.contains(name) && found[name] == true; };
  if (found.value("quant_method", Json()) == "compressed_tensors") {
    found["quant_method"] = "compressed-tensors";
  }
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

// Of compressed-tensors of before September 2024, which had its fields under another name, or in an
// object beside those of sparsity. Null: there are none.
Json of_early_compressed(const Json& config) {
  const auto found = config.find("compression_config");
  if (found == config.end() || !found->is_object() || found->empty()) return Json();
  Json made = *found;
  const auto inner = found->find("quantization_config");
  if (inner != found->end() && inner->is_object()) {
    for (const auto& [name, value] : inner->items()) made[name] = value;
  }
  made["quant_method"] = "compressed-tensors";
  if (!made.contains("config_groups") && !made.contains("format")) made["format"] = "dense";
  return made;
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
  if (Json early = of_early_compressed(config); !early.is_null()) {
    config["quantization_config"] = std::move(early);
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
