#include "gguf/plain_keys.h"

#include <algorithm>
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
    {"expert_count", 0, 0},      {"attention.clamp_kqv", 0, 0}, {"attention.max_alibi_bias", 0, 0},
    {"logit_scale", 1, 0},       {"embedding_scale", 1, 0},     {"residual_scale", 1, 0},
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

// Files that hold a model.
Status check_file(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto type, file.text("general.type"));
  if (type && *type != "model") return not_computed(file, "general.type", "'" + *type + "'");
  return {};
}

}  // namespace

Status check_plain_keys(const GgufFile& file, const GgufArchitecture& architecture,
                        int64_t head_dim) {
  FT_RETURN_IF_ERROR(check_file(file));
  const std::string prefix = std::string(architecture.name) + ".";
  const auto is_read = [&](std::string_view name) {
    return std::any_of(architecture.keys.begin(), architecture.keys.end(),
                       [&](const GgufKey& key) { return key.key == name; });
  };
  for (const PlainNumber& plain : kPlainNumbers) {
    if (is_read(plain.key)) continue;
    FT_RETURN_IF_ERROR(check_number(file, prefix + plain.key, plain.value, plain.same));
  }
  const auto whole = static_cast<double>(head_dim);
  if (!is_read("attention.value_length")) {
    FT_RETURN_IF_ERROR(check_number(file, prefix + "attention.value_length", whole, whole));
  }
  return {};
}

}  // namespace foretoken
