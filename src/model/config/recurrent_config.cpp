#include "model/config/recurrent_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/linear/causal_conv.h"
#include "kernels/linear/linear_shape.h"

namespace foretoken {

Status check_recurrent_sizes(const ConfigFields& fields, const RecurrentConfig& config) {
  if (config.value_heads > 0 && config.value_heads % config.key_heads != 0) {
    return invalid_argument(fields.where() + ": the " + std::to_string(config.value_heads) +
                            " value heads of linear attention are no multiple of its " +
                            std::to_string(config.key_heads) + " key heads; correct the file");
  }
  if (config.key_dim > kMaxLinearKeyDim) {
    return unsupported(fields.where() + ": keys of " + std::to_string(config.key_dim) +
                       " elements in linear attention are not supported; the most are " +
                       std::to_string(kMaxLinearKeyDim));
  }
  if (config.conv_width == 1 || config.conv_width > kMaxConvWidth) {
    return unsupported(fields.where() + ": a convolution of " + std::to_string(config.conv_width) +
                       " positions is not supported; supported are 2 to " +
                       std::to_string(kMaxConvWidth));
  }
  return {};
}

Status check_convolution_activation(const ConfigFields& fields, const char* name) {
  const nlohmann::json* value = fields.find(name);
  if (value == nullptr || *value == "silu" || *value == "swish") return {};
  return unsupported(fields.where() + ": " + name + " " + value->dump().substr(0, 80) +
                     " is not supported, as short convolutions pass it, too, which only silu is "
                     "built for; use a model whose " +
                     name + " is silu");
}

Status read_linear_sizes(const ConfigFields& fields, RecurrentConfig* out) {
  FT_RETURN_IF_ERROR(fields.need_count("linear_num_key_heads", &out->key_heads));
  FT_RETURN_IF_ERROR(fields.need_count("linear_num_value_heads", &out->value_heads));
  FT_RETURN_IF_ERROR(fields.need_count("linear_key_head_dim", &out->key_dim));
  FT_RETURN_IF_ERROR(fields.need_count("linear_value_head_dim", &out->value_dim));
  FT_RETURN_IF_ERROR(fields.need_count("linear_conv_kernel_dim", &out->conv_width));
  FT_RETURN_IF_ERROR(fields.read_flag("linear_heads_tiled", &out->tiled));
  return check_recurrent_sizes(fields, *out);
}

}  // namespace foretoken
