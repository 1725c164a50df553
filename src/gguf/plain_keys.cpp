#include "gguf/plain_keys.h"

#include <cmath>
#include <string>

namespace foretoken {
namespace {

// A number that may be missing or have one of two values.
struct PlainNumber {
  const char* key;
  double value;
  double same;  // which means the same
};

constexpr PlainNumber kPlainNumbers[] = {
    {"expert_count", 0, 0},
    {"attention.clamp_kqv", 0, 0},
    {"attention.max_alibi_bias", 0, 0},
    {"attn_logit_softcapping", 0, 0},
    {"final_logit_softcapping", 0, 0},
    {"logit_scale", 1, 0},
    {"embedding_scale", 1, 0},
    {"residual_scale", 1, 0},
    {"rope.scale_linear", 1, 0},
};

Status not_computed(const GgufFile& file, const std::string& key, const std::string& value) {
  return unsupported(file.path() + ": '" + key + "' is " + value +
                     ", which is not computed here; use another file or the model's Hugging Face "
                     "folder");
}

Status check_number(const GgufFile& file, const std::string& key, double value, double same) {
  FT_ASSIGN_OR_RETURN(const auto found, file.number(key));
  if (!found || *found == value || *found == same) return {};
  return not_computed(file, key, std::to_string(*found));
}

// Files of one part, which holds a model.
Status check_file(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto type, file.text("general.type"));
  if (type && *type != "model") return not_computed(file, "general.type", "'" + *type + "'");
  FT_ASSIGN_OR_RETURN(const auto parts, file.integer("split.count"));
  if (!parts || *parts <= 1) return {};
  return unsupported(file.path() + ": it is one of " + std::to_string(*parts) +
                     " parts; join them with llama-gguf-split --merge");
}

}  // namespace

Status check_plain_keys(const GgufFile& file, std::string_view architecture, int64_t head_dim) {
  FT_RETURN_IF_ERROR(check_file(file));
  const std::string prefix = std::string(architecture) + ".";
  for (const PlainNumber& plain : kPlainNumbers) {
    FT_RETURN_IF_ERROR(check_number(file, prefix + plain.key, plain.value, plain.same));
  }
  const auto whole = static_cast<double>(head_dim);
  FT_RETURN_IF_ERROR(check_number(file, prefix + "rope.dimension_count", whole, whole));
  FT_RETURN_IF_ERROR(check_number(file, prefix + "attention.value_length", whole, whole));
  const std::string scale = prefix + "attention.scale";
  FT_ASSIGN_OR_RETURN(const auto given, file.number(scale));
  if (given && *given != 0 && std::abs(*given * std::sqrt(whole) - 1) > 1e-4) {
    return not_computed(file, scale, std::to_string(*given));
  }
  const std::string causal = prefix + "attention.causal";
  const GgufValue* value = file.find(causal);
  if (value == nullptr || *value == GgufValue(true)) return {};
  return not_computed(file, causal, "not true");
}

}  // namespace foretoken
