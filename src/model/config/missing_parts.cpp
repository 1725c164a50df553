#include "model/config/missing_parts.h"

#include <iterator>

namespace foretoken {
namespace {

using Json = nlohmann::json;

struct MissingPartName {
  MissingPart part;
  const char* name;  // a noun, for sentences
};
constexpr MissingPartName kPartNames[] = {
    {kSparseAttention, "sparse attention"},
    {kLinearAttention, "linear attention"},
    {kStateSpaceLayers, "state-space layers"},
    {kConvolutionLayers, "convolution layers"},
    {kNormKinds, "norms of several kinds"},
    {kDepthResiduals, "residuals weighed by depth"},
    {kResidualGates, "gates on residuals"},
    {kGrowingQueries, "queries scaled by a power of their positions"},
    {kEncoder, "an encoder"},
    {kLoopedLayers, "layers that run several times"},
    {kShardedProjections, "projections fused by shards"},
    {kAttentionExperts, "experts of attention"},
    {kGateLimits, "limits of experts' gates"},
    {kRecurrences, "gated recurrences"},
    {kInputExperts, "experts that read what enters a layer"},
    {kBiasedHeadNorms, "norms of heads with biases"},
    {kFactorizedQueries, "queries of two factors"},
    {kSeeingPrompts, "prompts whose tokens see later ones"},
    {kMaskFilling, "masks that are filled in any order"},
    {kStepRewards, "a number for each step of a text"},
};

// A field that asks for a part where it is true, a number above `over` or a list or object that is
// not empty.
struct TellingField {
  const char* name;
  MissingPart part;
  double over = 0;
};
constexpr TellingField kTellingFields[] = {
    {"index_topk", kSparseAttention},
    {"compress_ratios", kSparseAttention},
    {"sparse_attention_config", kSparseAttention},
    {"linear_num_value_heads", kLinearAttention},
    {"linear_attn_config", kLinearAttention},
    {"mamba_d_state", kStateSpaceLayers},
    {"ssm_state_size", kStateSpaceLayers},
    {"conv_L_cache", kConvolutionLayers},
    {"is_encoder_decoder", kEncoder},
    {"num_loops", kLoopedLayers, 1},
    {"n_recurrent_loops", kLoopedLayers, 1},
};

bool tells(const Json& value, double over) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() > over;
  return value.is_structured() && !value.empty();
}

}  // namespace

std::string missing_parts_text(uint32_t parts) {
  std::string text;
  for (auto entry = std::rbegin(kPartNames); entry != std::rend(kPartNames); ++entry) {
    if ((parts & entry->part) == 0) continue;
    const bool is_last = text.empty();
    const bool is_second_last = text.find(" and ") == std::string::npos && !is_last;
    text = entry->name + std::string(is_last ? "" : is_second_last ? " and " : ", ") + text;
  }
  return text;
}

uint32_t parts_asked_for(const Json& config) {
  uint32_t parts = kNoMissingPart;
  if (!config.is_object()) return parts;
  for (const TellingField& field : kTellingFields) {
    const auto found = config.find(field.name);
    if (found != config.end() && tells(*found, field.over)) parts |= field.part;
  }
  const auto text = config.find("text_config");
  return text == config.end() ? parts : parts | parts_asked_for(*text);
}

}  // namespace foretoken
