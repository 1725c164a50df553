#include "model/files/quantization_choice.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "compat/compat.h"
#include "gguf/container/gguf_file.h"
#include "model/files/forms/quantization.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Names of vLLM's for kernels and variants of a method.
struct MethodAlias {
  std::string_view name;
  std::string_view method;
};
constexpr MethodAlias kMethodAliases[] = {{"auto_awq", "awq"},
                                          {"auto_gptq", "gptq"},
                                          {"awq_marlin", "awq"},
                                          {"gpt_oss_mxfp4", "mxfp4"},
                                          {"gptq_marlin", "gptq"},
                                          {"marlin", "gptq"},
                                          {"inc", "auto-round"},
                                          {"intel/auto-round", "auto-round"},
                                          {"modelopt_fp4", "modelopt"},
                                          {"modelopt_mixed", "modelopt"},
                                          {"modelopt_mxfp8", "modelopt"},
                                          {"ptpc_fp8", "fp8"}};
// vLLM's method for mixtures whose words are those of AutoGPTQ or AutoAWQ.
constexpr std::string_view kWordsOfMixtures = "moe_wna16";
constexpr std::string_view kNamedMethods[] = {
    "fp8",      "awq",       "gptq",           "compressed-tensors",
    "modelopt", "quark",     "fbgemm_fp8",     "auto-round",
    "mxfp4",    "mxfp8",     "bitsandbytes",   "torchao",
    "hqq",      "bitnet",    "fp_quant",       "gguf",
    "w8a8_fp8", "w8a8_int8", "blockwise_int8", kWordsOfMixtures};

std::string_view method_named(std::string_view name) {
  for (const MethodAlias& alias : kMethodAliases) {
    if (name == alias.name) return alias.method;
  }
  return name;
}

std::string known_methods() {
  std::string text;
  for (const std::string_view method : kNamedMethods) {
    text += (text.empty() ? "" : ", ") + std::string(method);
  }
  return text;
}

bool holds_quantised_blocks(const GgufFile& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(), [](const auto& entry) {
    const std::string_view type = entry.second.type->name;
    return type != "F32" && type != "F16" && type != "BF16";
  });
}

// Of the files, as vLLM names it, and whether it is one of E4M3; none where they are not quantised.
struct FilesMethod {
  std::string name;
  bool is_fp8 = false;
};

Result<std::optional<FilesMethod>> method_of(const ModelFiles& model) {
  if (model.is_gguf()) {
    FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
    if (!holds_quantised_blocks(*file)) return std::optional<FilesMethod>();
    return std::optional(FilesMethod{"gguf"});
  }
  FT_ASSIGN_OR_RETURN(const Json config, read_config_json(model));
  FT_ASSIGN_OR_RETURN(const auto found, read_quantization(config, model.text()));
  if (!found) return std::optional<FilesMethod>();
  const std::string method = found->method.empty() ? "modelopt" : found->method;
  return std::optional(FilesMethod{std::string(method_named(method)), found->is_fp8});
}

}  // namespace

Result<WeightRounding> choose_quantization(const std::string& name, const ModelFiles& model,
                                           const std::string& flag) {
  if (name.empty() || name == "none") return WeightRounding::kNone;
  const std::string_view wanted = method_named(name);
  if (std::find(std::begin(kNamedMethods), std::end(kNamedMethods), wanted) ==
      std::end(kNamedMethods)) {
    return unsupported(flag + " " + name + " is not known; use fp8, or leave it out for " +
                       "weights as the files hold them (" + known_methods() + ")");
  }
  FT_ASSIGN_OR_RETURN(const auto found, method_of(model));
  if (!found && wanted == "fp8") return WeightRounding::kFp8;
  if (!found && wanted == "gguf" && model.is_gguf()) return WeightRounding::kNone;
  const bool in_words = found && (found->name == "gptq" || found->name == "awq");
  const bool fits = found && (found->name == wanted || (wanted == "fp8" && found->is_fp8) ||
                              (wanted == kWordsOfMixtures && in_words));
  if (fits) return WeightRounding::kNone;
  FT_RETURN_IF_ERROR(compat({.files = model.text(),
                             .method_flag = flag,
                             .named_method = name,
                             .files_method = found ? found->name : ""}));
  return WeightRounding::kNone;
}

}  // namespace foretoken
