#include "model/files/forms/mlx_layouts.h"

#include <algorithm>

#include "model/files/forms/mlx_names.h"

namespace foretoken {
namespace {

constexpr MlxName kStep[] = {{".mlp.switch_mlp.", ".moe."},
                             {".mlp.gate.gate.", ".moe.gate."},
                             {".mlp.gate.router_bias", ".moe.router_bias"},
                             {".mlp.share_expert.", ".share_expert."}};
constexpr MlxName kKimiLinear[] = {
    {".mlp.switch_mlp.", ".block_sparse_moe.experts."},
    {".mlp.shared_experts.", ".block_sparse_moe.shared_experts."},
    {".mlp.gate.", ".block_sparse_moe.gate."},
    {".mlp.e_score_correction_bias", ".block_sparse_moe.gate.e_score_correction_bias"},
    {".q_conv.conv.", ".q_conv1d."},
    {".k_conv.conv.", ".k_conv1d."},
    {".v_conv.conv.", ".v_conv1d."}};
constexpr MlxName kLfm2[] = {{".feed_forward.gate_proj.", ".feed_forward.w1."},
                             {".feed_forward.up_proj.", ".feed_forward.w3."},
                             {".feed_forward.down_proj.", ".feed_forward.w2."}};
// As tools that quantise name experts that lie apart.
constexpr MlxName kDbrx[] = {{".ffn.experts.", ".ffn.experts.mlp.experts."},
                             {".w1.", ".gate_proj."},
                             {".v1.", ".up_proj."},
                             {".w2.", ".down_proj."}};
constexpr MlxName kGpt2[] = {{"model.", "transformer."}};
constexpr MlxName kGptNeoX[] = {
    {"model.h.", "gpt_neox.layers."}, {"model.embed_out.", "embed_out."}, {"model.", "gpt_neox."}};

constexpr MlxLayout kLayouts[] = {
    {.marker = ".mlp.share_expert.", .names = kStep, .whole_norms = true},
    {.marker = ".q_conv.conv.", .names = kKimiLinear},
    {.marker = ".conv.conv.", .names = kLfm2},
    {.marker = ".ffn.experts.0.v1.", .names = kDbrx},
    {.marker = "model.h.0.attn.c_attn.", .names = kGpt2},
    {.marker = "model.h.0.attention.query_key_value.", .names = kGptNeoX}};

bool has_name_with(const std::map<std::string, const TensorView*>& tensors, std::string_view part) {
  return std::ranges::any_of(tensors, [&](const auto& entry) {
    return entry.second->name.find(part) != std::string::npos;
  });
}

// Some markers are in the folders of transformers, too, whose names are as they should be.
bool renames(const MlxLayout& layout, const std::map<std::string, const TensorView*>& tensors) {
  return std::ranges::any_of(layout.names,
                             [&](const MlxName& name) { return has_name_with(tensors, name.own); });
}

}  // namespace

std::string MlxLayout::without(std::string name) const {
  for (const MlxName& renamed : names) {
    const size_t at = name.find(renamed.own);
    if (at != std::string::npos) name.replace(at, renamed.own.size(), renamed.common);
  }
  return name;
}

const MlxLayout* find_mlx_layout(const std::map<std::string, const TensorView*>& tensors) {
  for (const MlxLayout& layout : kLayouts) {
    if (has_name_with(tensors, layout.marker) && renames(layout, tensors)) return &layout;
  }
  return nullptr;
}

bool is_sanitised_by_mlx(const std::map<std::string, const TensorView*>& tensors,
                         const char* sign) {
  if (sign != nullptr) return has_name_with(tensors, sign);
  return has_turned_convolutions(tensors) || find_mlx_layout(tensors) != nullptr ||
         has_name_with(tensors, ".switch_mlp.");
}

}  // namespace foretoken
