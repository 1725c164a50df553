#include <string>
#include <vector>

#include "compat/rules.h"

// Layers that not every layout has: among stages, lanes, engines that share experts, and tensor
// parallel ranks.

namespace foretoken {
namespace {

// A layout as these rules go by it, and how it is asked for.
struct NarrowLayout {
  const char* flag;
  bool (*is_asked)(const Combination&);
  void (*ask)(Combination&);
};

constexpr NarrowLayout kStages = {"--pipeline-parallel-size",
                                  [](const Combination& c) { return c.num_stages > 1; },
                                  [](Combination& c) { c.num_ranks = c.num_stages = 2; }};
constexpr NarrowLayout kLanes = {"--enable-dbo",
                                 [](const Combination& c) { return bool(c.two_lanes); },
                                 [](Combination& c) { c.two_lanes = true; }};
constexpr NarrowLayout kSharedExperts = {
    "--data-parallel-size` with `--enable-expert-parallel",
    [](const Combination& c) { return c.expert_parallel && c.num_engines > 1; },
    [](Combination& c) {
      c.expert_parallel = true;
      c.num_engines = 2;
    }};
constexpr NarrowLayout kTensorRanks = {
    "--tensor-parallel-size", [](const Combination& c) { return c.num_tensor_ranks() > 1; },
    [](Combination& c) { c.num_ranks = 2; }};
constexpr NarrowLayout kContextRanks = {
    "--decode-context-parallel-size", [](const Combination& c) { return c.num_context_ranks > 1; },
    [](Combination& c) { c.num_ranks = c.num_context_ranks = 2; }};

// Behind "ARCHITECTURE: " the sentence says what layers do and what to change.
struct LayerRule {
  const char* layers;  // to be read
  bool LayerNeeds::* need;
  const NarrowLayout& layout;
  const char* contradiction;
  const char* remedy;
  const NarrowLayout* instead = nullptr;  // what else divides, where the layers have it
  const char* or_else = "";
};

constexpr const char* kOneStage = ", which stages do not have; use --pipeline-parallel-size 1";
constexpr const char* kOneRank = "not divided among ranks; use --tensor-parallel-size 1";
constexpr const char* kWithinOneEngine =
    "; give --enable-expert-parallel without --data-parallel-size";

constexpr LayerRule kLayerRules[] = {
    {"layers that run several times", &LayerNeeds::run_again, kStages, "layers run several times",
     kOneStage, &kTensorRanks},
    {"layers that add what the one before left", &LayerNeeds::add_later, kStages,
     "layers add what the layer before left", kOneStage, &kTensorRanks},
    {"layers that attend to what others chose, no multiple of 4", &LayerNeeds::follow_indexers,
     kStages,
     "layers attend to positions that others chose, a number (index_topk) that is no multiple of 4",
     kOneStage, &kTensorRanks},
    {"layers that read others' keys", &LayerNeeds::read_other_layers, kStages,
     "layers read other layers' keys", kOneStage, &kTensorRanks},
    {"layers that read more of a token than its row", &LayerNeeds::read_more, kStages,
     "layers read more of a token than its row", kOneStage, &kTensorRanks},
    {"layers that read more of a token than its row", &LayerNeeds::read_more, kLanes,
     "layers read more of a token than its row, which two lanes do not have",
     "; leave --enable-dbo out"},
    {"layers that weigh what earlier ones left", &LayerNeeds::weigh_depth, kStages,
     "layers weigh what earlier blocks of layers left", kOneStage, &kTensorRanks},
    {"layers that weigh what earlier ones left", &LayerNeeds::weigh_depth, kLanes,
     "layers weigh what earlier blocks of layers left, which is kept for one lane",
     "; leave --enable-dbo out"},
    {"experts that leave rows as they are", &LayerNeeds::has_idle_experts, kSharedExperts,
     "experts that leave rows as they are belong to no engine, so engines do not share experts",
     kWithinOneEngine},
    {"experts of narrow rows", &LayerNeeds::has_narrow_experts, kSharedExperts,
     "experts between projections of rows (moe_latent_size) are not shared by engines",
     kWithinOneEngine},
    {"rows of attention that are normed as one", &LayerNeeds::norm_all_heads, kTensorRanks,
     "rows of attention are normed over all heads, which are ", kOneRank, &kStages},
    {"keys that all values weigh", &LayerNeeds::mask_by_all_values, kTensorRanks,
     "all values of a row say how much each of its keys adds to scores, so heads are ", kOneRank,
     &kStages},
    {"MLPs that look at all columns", &LayerNeeds::mlp_sees_all, kTensorRanks,
     "MLPs look at all their inner columns at once, which are ", kOneRank, &kStages},
    {"rows that are rounded whole (BitNet)", &LayerNeeds::round_whole_rows, kTensorRanks,
     "quant_method bitnet rounds whole rows, which are ", kOneRank, &kStages},
    {"layers of Mamba 1", &LayerNeeds::scan_selectively, kTensorRanks, "the layers of Mamba 1 are ",
     kOneRank, &kStages},
    {"ALiBi", &LayerNeeds::has_slopes, kContextRanks,
     "the slopes of ALiBi are not merged over ranks that share positions",
     "; leave --decode-context-parallel-size out"},
    {"value heads that take turns in a GGUF file", &LayerNeeds::heads_take_turns, kTensorRanks,
     "value heads of linear attention take turns in this GGUF file, so that they are ", kOneRank,
     &kStages, ", or the model's Hugging Face folder"},
};

// Not every number of ranks is too many.
int num_norm_groups(const Combination& c) { return c.layers ? c.layers->norm_groups : 0; }

// " and divide by --pipeline-parallel-size" where that is not refused, too.
std::string division_by(const NarrowLayout* layout, const Combination& c) {
  if (layout == nullptr) return "";
  if (layout == &kTensorRanks && num_norm_groups(c) % 2 == 1) return "";
  for (const LayerRule& rule : kLayerRules) {
    if (&rule.layout == layout && (*c.layers).*rule.need) return "";
  }
  return std::string(" and divide by ") + layout->flag;
}

CompatRule rule_of(const LayerRule& rule) {
  Combination example = {.architecture = "Model", .layers = LayerNeeds{}};
  (*example.layers).*rule.need = true;
  rule.layout.ask(example);
  return {std::string(rule.layers) + ", `" + rule.layout.flag + "`", StatusCode::kUnsupported,
          [&rule](const Combination& c) {
            return c.layers && (*c.layers).*rule.need && rule.layout.is_asked(c);
          },
          [&rule](const Combination& c) {
            return c.architecture + ": " + rule.contradiction + rule.remedy +
                   division_by(rule.instead, c) + rule.or_else;
          },
          std::move(example)};
}

CompatRule norm_group_rule() {
  return {
      "groups in which linear attention norms rows, `--tensor-parallel-size`",
      StatusCode::kUnsupported,
      [](const Combination& c) {
        return num_norm_groups(c) > 0 && num_norm_groups(c) % c.num_tensor_ranks().value_or(1) != 0;
      },
      [](const Combination& c) {
        const int groups = num_norm_groups(c);
        return c.architecture + ": the norm of linear attention has " + std::to_string(groups) +
               (groups == 1 ? " group" : " groups") + " of a row, which are not divided among " +
               std::to_string(*c.num_tensor_ranks()) +
               " ranks; use a --tensor-parallel-size that divides them" + division_by(&kStages, c);
      },
      {.architecture = "Model", .layers = LayerNeeds{.norm_groups = 1}, .num_ranks = 2}};
}

}  // namespace

std::span<const CompatRule> layer_rules() {
  static const std::vector<CompatRule> rules = [] {
    std::vector<CompatRule> all;
    for (const LayerRule& rule : kLayerRules) all.push_back(rule_of(rule));
    all.push_back(norm_group_rule());
    return all;
  }();
  return rules;
}

}  // namespace foretoken
