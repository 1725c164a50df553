#include <algorithm>
#include <iterator>
#include <string>

#include "compat/rules.h"

// Layers that not every layout has: among tensor parallel ranks, stages and lanes, and beside
// adapters.

namespace foretoken {
namespace {

constexpr const char* kNotInStages =
    ", which stages do not have; use --pipeline-parallel-size 1 and divide by "
    "--tensor-parallel-size";
constexpr const char* kNotAmongRanks = "not divided among ranks; use --tensor-parallel-size 1";
constexpr const char* kOrStages = " and divide by --pipeline-parallel-size";

bool has_stages(const Combination& c) { return c.num_stages > 1; }
bool is_divided(const Combination& c) { return c.num_tensor_ranks() > 1; }

std::vector<CompatRule> stage_rules() {
  return {
      {"layers that run several times, `--pipeline-parallel-size`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return has_stages(c) && c.layers.run_again; },
       [](const Combination& c) {
         return c.architecture + ": layers run several times" + kNotInStages;
       },
       {.architecture = "Model", .layers = {.run_again = true}, .num_ranks = 2, .num_stages = 2}},
      {"layers that add what the one before left, `--pipeline-parallel-size`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return has_stages(c) && c.layers.add_later; },
       [](const Combination& c) {
         return c.architecture + ": layers add what the layer before left" + kNotInStages;
       },
       {.architecture = "Model", .layers = {.add_later = true}, .num_ranks = 2, .num_stages = 2}},
      {"layers that attend to what others chose, no multiple of 4, `--pipeline-parallel-size`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return has_stages(c) && c.layers.follow_indexers; },
       [](const Combination& c) {
         return c.architecture + ": layers attend to positions that others chose, a number " +
                "(index_topk) that is no multiple of 4" + kNotInStages;
       },
       {.architecture = "Model",
        .layers = {.follow_indexers = true},
        .num_ranks = 2,
        .num_stages = 2}},
      {"layers that read others' keys, `--pipeline-parallel-size`",
       StatusCode::kUnsupported,
       [](const Combination& c) {
         return has_stages(c) && (c.layers.read_other_layers || c.layers.read_more);
       },
       [](const Combination& c) {
         return c.architecture + ": layers read tokens and other layers' keys" + kNotInStages;
       },
       {.architecture = "Model",
        .layers = {.read_other_layers = true},
        .num_ranks = 2,
        .num_stages = 2}},
      {"layers that read more of a token than its row, `--enable-dbo`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.two_lanes && c.layers.read_more; },
       [](const Combination& c) {
         return c.architecture +
                ": layers read more of a token than its row, which two lanes do not have; leave "
                "--enable-dbo out";
       },
       {.architecture = "Model", .layers = {.read_more = true}, .two_lanes = true}},
      {"experts that leave rows as they are, `--data-parallel-size` with experts",
       StatusCode::kUnsupported,
       [](const Combination& c) {
         return c.expert_parallel && c.num_engines > 1 && c.layers.has_idle_experts;
       },
       [](const Combination& c) {
         return c.architecture +
                ": experts that leave rows as they are belong to no engine, so engines do not "
                "share experts; give --enable-expert-parallel without --data-parallel-size";
       },
       {.architecture = "Model",
        .layers = {.has_idle_experts = true},
        .num_engines = 2,
        .expert_parallel = true}},
      {"experts of narrow rows, `--data-parallel-size` with experts",
       StatusCode::kUnsupported,
       [](const Combination& c) {
         return c.expert_parallel && c.num_engines > 1 && c.layers.has_narrow_experts;
       },
       [](const Combination& c) {
         return c.architecture +
                ": experts between projections of rows (moe_latent_size) are not shared by "
                "engines; give --enable-expert-parallel without --data-parallel-size";
       },
       {.architecture = "Model",
        .layers = {.has_narrow_experts = true},
        .num_engines = 2,
        .expert_parallel = true}},
  };
}

CompatRule undivided_rule(const char* parts, bool (*is_broken)(const Combination&),
                          std::string (*sentence)(const Combination&), const LayerNeeds& layers) {
  return {parts,
          StatusCode::kUnsupported,
          is_broken,
          sentence,
          {.architecture = "Model", .layers = layers, .num_ranks = 2}};
}

std::vector<CompatRule> division_rules() {
  return {
      undivided_rule(
          "rows of attention that are normed as one, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.norm_all_heads; },
          [](const Combination& c) {
            return c.architecture + ": rows of attention are normed over all heads, which are " +
                   kNotAmongRanks + kOrStages;
          },
          {.norm_all_heads = true}),
      undivided_rule(
          "keys that all values weigh, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.mask_by_all_values; },
          [](const Combination& c) {
            return c.architecture +
                   ": all values of a row say how much each of its keys adds to scores, so heads "
                   "are " +
                   kNotAmongRanks + kOrStages;
          },
          {.mask_by_all_values = true}),
      undivided_rule(
          "MLPs that look at all columns, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.mlp_sees_all; },
          [](const Combination& c) {
            return c.architecture + ": MLPs look at all their inner columns at once, which are " +
                   kNotAmongRanks;
          },
          {.mlp_sees_all = true}),
      undivided_rule(
          "rows that are rounded whole (BitNet), `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.round_whole_rows; },
          [](const Combination& c) {
            return c.architecture + ": quant_method bitnet rounds whole rows, which are " +
                   kNotAmongRanks + kOrStages;
          },
          {.round_whole_rows = true}),
      undivided_rule(
          "value heads that take turns in a GGUF file, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.heads_take_turns; },
          [](const Combination& c) {
            return c.architecture +
                   ": value heads of linear attention take turns in this GGUF file, so that they "
                   "are " +
                   kNotAmongRanks + kOrStages + ", or the model's Hugging Face folder";
          },
          {.heads_take_turns = true}),
      undivided_rule(
          "layers of Mamba 1, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.scan_selectively; },
          [](const Combination& c) {
            return c.architecture + ": the layers of Mamba 1 are " + kNotAmongRanks + kOrStages;
          },
          {.scan_selectively = true}),
      undivided_rule(
          "groups in which linear attention norms rows, `--tensor-parallel-size`",
          [](const Combination& c) {
            return c.layers.norm_groups > 0 && c.layers.norm_groups % c.num_tensor_ranks() != 0;
          },
          [](const Combination& c) {
            const int groups = c.layers.norm_groups;
            return c.architecture + ": the norm of linear attention has " + std::to_string(groups) +
                   (groups == 1 ? " group" : " groups") +
                   " of a row, which are not divided among " +
                   std::to_string(c.num_tensor_ranks()) +
                   " ranks; use a --tensor-parallel-size that divides them" + kOrStages;
          },
          {.norm_groups = 1}),
      undivided_rule(
          "compressed entries of positions, `--tensor-parallel-size`",
          [](const Combination& c) { return is_divided(c) && c.layers.compress_positions; },
          [](const Combination& c) {
            return c.architecture + ": layers with compressed entries of positions are " +
                   kNotAmongRanks;
          },
          {.compress_positions = true}),
      {"ALiBi, `--decode-context-parallel-size`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.num_context_ranks > 1 && c.layers.has_slopes; },
       [](const Combination& c) {
         return "--decode-context-parallel-size " + std::to_string(c.num_context_ranks) + ": " +
                c.architecture + " has ALiBi, which is not merged over ranks; leave it out";
       },
       {.architecture = "Model",
        .layers = {.has_slopes = true},
        .num_ranks = 2,
        .num_context_ranks = 2}},
  };
}

}  // namespace

std::vector<CompatRule> layer_rules() {
  std::vector<CompatRule> rules = stage_rules();
  std::vector<CompatRule> dividing = division_rules();
  std::move(dividing.begin(), dividing.end(), std::back_inserter(rules));
  return rules;
}

}  // namespace foretoken
