#include "model/config/latent_config.h"

#include <cmath>
#include <string>

#include "kernels/attention/kv_layer.h"
#include "kernels/latent/head_gemm.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Status check_multiple(const ConfigFields& fields, const char* name, int32_t size, int32_t of) {
  if (size % of == 0) return {};
  return unsupported(fields.where() + ": " + name + " " + std::to_string(size) +
                     " is not supported; it must be a multiple of " + std::to_string(of));
}

Status check_latent_sizes(const ConfigFields& fields, const LatentConfig& latent) {
  FT_RETURN_IF_ERROR(check_multiple(fields, "qk_rope_head_dim", latent.rope_dim, 2));
  FT_RETURN_IF_ERROR(check_multiple(fields, "kv_lora_rank", latent.kv_rank, kHeadColumns));
  FT_RETURN_IF_ERROR(check_multiple(fields, "v_head_dim", latent.value_dim, kHeadColumns));
  if (latent.entry_dim() <= kMaxHeadDim) return {};
  return unsupported(fields.where() + ": kv_lora_rank and qk_rope_head_dim together are " +
                     std::to_string(latent.entry_dim()) + ", which is not supported; the most is " +
                     std::to_string(kMaxHeadDim));
}

}  // namespace

Result<LatentConfig> read_latent_config(const ConfigFields& fields) {
  LatentConfig latent;
  if (fields.find("kv_lora_rank") == nullptr) return latent;
  FT_RETURN_IF_ERROR(fields.read_count("kv_lora_rank", &latent.kv_rank));
  FT_RETURN_IF_ERROR(fields.read_count("q_lora_rank", &latent.q_rank));
  FT_RETURN_IF_ERROR(fields.need_count("qk_nope_head_dim", &latent.nope_dim));
  FT_RETURN_IF_ERROR(fields.need_count("qk_rope_head_dim", &latent.rope_dim));
  FT_RETURN_IF_ERROR(fields.need_count("v_head_dim", &latent.value_dim));
  FT_RETURN_IF_ERROR(fields.read_flag("rope_interleave", &latent.paired));
  FT_RETURN_IF_ERROR(check_latent_sizes(fields, latent));
  return latent;
}

Result<float> read_latent_scale(const ConfigFields& fields, const LatentConfig& latent,
                                const RopeConfig& rope) {
  const double scale = 1 / std::sqrt(double(latent.nope_dim) + latent.rope_dim);
  if (rope.type == RopeType::kDefault || rope.factor <= 1) return static_cast<float>(scale);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* scaling = fields.find(name);
    if (scaling == nullptr || !scaling->is_object() || scaling->empty()) continue;
    const ConfigFields all(*scaling, fields.where());
    const Json* value = all.find("mscale_all_dim");
    double mscale = 0;
    if (value != nullptr && *value != 0) {
      FT_RETURN_IF_ERROR(all.read_positive("mscale_all_dim", &mscale));
    }
    const double yarn = 0.1 * mscale * std::log(rope.factor) + 1;
    return static_cast<float>(scale * yarn * yarn);
  }
  return static_cast<float>(scale);
}

}  // namespace foretoken
