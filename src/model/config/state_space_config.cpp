#include "model/config/state_space_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/linear/causal_conv.h"
#include "kernels/linear/linear_shape.h"
#include "kernels/linear/selective_scan.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Status read_head_dim(const ConfigFields& fields, const StateSpaceNames& names, int64_t inner,
                     RecurrentConfig* out) {
  const Json* value = fields.find(names.head_dim);
  if (value != nullptr && *value != "auto")
    return fields.need_count(names.head_dim, &out->value_dim);
  if (inner % out->value_heads != 0) {
    return fields.wrong(names.heads,
                        "a number that divides " + std::to_string(inner) + " channels");
  }
  out->value_dim = static_cast<int32_t>(inner / out->value_heads);
  return {};
}

// [least, most] of the steps; of files "Infinity" or a number that no float reaches.
Status read_step_limit(const ConfigFields& fields, RecurrentConfig* out) {
  const char* name = "time_step_limit";
  const Json* limit = fields.find(name);
  if (limit == nullptr) return {};
  const bool is_pair = limit->is_array() && limit->size() == 2 && (*limit)[0].is_number() &&
                       (*limit)[1].is_number() && (*limit)[0] >= 0 && (*limit)[0] < 1e30 &&
                       (*limit)[1] > (*limit)[0];
  if (!is_pair) return fields.wrong(name, "a list of the least and the largest step");
  out->min_step = static_cast<float>((*limit)[0].get<double>());
  const auto most = (*limit)[1].get<double>();
  if (most < 1e30) out->max_step = static_cast<float>(most);
  return {};
}

Status check_conv_width(const ConfigFields& fields, const char* name, int32_t width) {
  if (width >= 2 && width <= kMaxConvWidth) return {};
  return unsupported(fields.where() + ": '" + name + "' " + std::to_string(width) +
                     " is not supported; supported are 2 to " + std::to_string(kMaxConvWidth));
}

Status check_state_size(const ConfigFields& fields, const char* name, int32_t size, int most) {
  if (size <= most) return {};
  return unsupported(fields.where() + ": '" + name + "' " + std::to_string(size) +
                     " is not supported; the most is " + std::to_string(most));
}

}  // namespace

Status read_state_space(const ConfigFields& fields, const StateSpaceNames& names, int64_t inner,
                        RecurrentConfig* out) {
  out->key_heads = 1;
  out->conv_bias = true;
  FT_RETURN_IF_ERROR(fields.need_count(names.heads, &out->value_heads));
  FT_RETURN_IF_ERROR(read_head_dim(fields, names, inner, out));
  FT_RETURN_IF_ERROR(fields.read_count(names.groups, &out->key_heads));
  FT_RETURN_IF_ERROR(fields.need_count(names.state_size, &out->key_dim));
  FT_RETURN_IF_ERROR(fields.need_count(names.conv_width, &out->conv_width));
  FT_RETURN_IF_ERROR(fields.read_flag(names.conv_bias, &out->conv_bias));
  FT_RETURN_IF_ERROR(fields.read_flag(names.bias, &out->bias));
  FT_RETURN_IF_ERROR(read_step_limit(fields, out));
  if (out->value_heads % out->key_heads != 0) {
    return fields.wrong(names.groups, "a number that divides " + std::string(names.heads));
  }
  FT_RETURN_IF_ERROR(check_state_size(fields, names.state_size, out->key_dim, kMaxLinearKeyDim));
  return check_conv_width(fields, names.conv_width, out->conv_width);
}

Status read_selective(const ConfigFields& fields, const SelectiveNames& names, int32_t inner,
                      int32_t hidden, RecurrentConfig* out) {
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  out->channels = inner;
  out->key_dim = 16;
  out->conv_width = 4;
  out->conv_bias = true;
  out->step_rank = (hidden + 15) / 16;
  FT_RETURN_IF_ERROR(fields.read_count(names.state_size, &out->key_dim));
  FT_RETURN_IF_ERROR(fields.read_count(names.conv_width, &out->conv_width));
  FT_RETURN_IF_ERROR(fields.read_flag(names.conv_bias, &out->conv_bias));
  FT_RETURN_IF_ERROR(fields.read_flag(names.bias, &out->bias));
  const Json* rank = fields.find(names.step_rank);
  if (rank != nullptr && *rank != "auto") {
    FT_RETURN_IF_ERROR(fields.need_count(names.step_rank, &out->step_rank));
  }
  FT_RETURN_IF_ERROR(check_state_size(fields, names.state_size, out->key_dim, kMaxScanState));
  return check_conv_width(fields, names.conv_width, out->conv_width);
}

}  // namespace foretoken
