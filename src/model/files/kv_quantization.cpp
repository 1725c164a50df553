#include "model/files/kv_quantization.h"

#include <nlohmann/json.hpp>

#include "base/text/ascii_text.h"
#include "gguf/model_texts.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The object `name` in another one, or an empty one.
Json object_field(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_object() ? *found : Json::object();
}

// A name of the format, or a scheme of compressed-tensors. Scales that are found while running are
// 1 here, as where a checkpoint has none.
bool means_fp8(const Json& value) {
  if (value.is_string()) return lower_case(value.get<std::string>()).starts_with("fp8");
  if (!value.is_object()) return false;
  const Json bits = value.value("num_bits", Json());
  const Json type = value.value("type", Json("float"));
  return bits == 8 && type == "float";
}

KvQuantization kv_wish_of(const Json& config) {
  for (const char* field : {"kv_cache_scheme", "kv_cache_quant_algo"}) {
    const auto found = config.find(field);
    if (found == config.end() || found->is_null()) continue;
    return {field, found->dump().substr(0, 120), means_fp8(*found)};
  }
  return {};
}

// Other methods have such fields too, and nothing reads them.
bool may_ask_for_kv(const Json& quantization) {
  const auto method = quantization.find("quant_method");
  if (method == quantization.end() || !method->is_string()) return false;
  const auto name = method->get<std::string>();
  return name == "compressed-tensors" || name.starts_with("modelopt");
}

}  // namespace

Result<KvQuantization> read_kv_quantization(const ModelFiles& model) {
  if (model.is_gguf()) return KvQuantization();
  FT_ASSIGN_OR_RETURN(const Json config, read_model_json(model, "config.json"));
  for (const char* name : {"quantization_config", "compression_config"}) {
    const Json own = object_field(config, name);
    if (!may_ask_for_kv(own)) continue;
    const KvQuantization found = kv_wish_of(own);
    if (!found.field.empty()) return found;
    return kv_wish_of(object_field(own, "quantization"));
  }
  if (!has_model_text(model, "hf_quant_config.json")) return KvQuantization();
  FT_ASSIGN_OR_RETURN(const Json file, read_model_json(model, "hf_quant_config.json"));
  return kv_wish_of(object_field(file, "quantization"));
}

}  // namespace foretoken
