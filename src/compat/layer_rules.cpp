#include <string>
#include <vector>

#include "compat/rules.h"

// Layers that not every layout has: among stages, lanes, engines that share experts, and tensor
// parallel ranks.

namespace foretoken {
namespace {

// A layout as these rules go by it, how it is asked for, and what to do without it.
struct NarrowLayout {
  const char* flag;
  bool (*is_asked)(const Combination&);
  void (*ask)(Combination&);
  std::string (*remedy)(const Combination&);
};

// One stage of as many tensor parallel ranks, or where they help, of all ranks.
std::string without_stages(const Combination& c) {
  Combination divided = c;
  divided.num_stages = 1;
  return std::string("; use --pipeline-parallel-size 1") +
         (is_helped(c, divided) ? " and divide by --tensor-parallel-size" : "");
}

// One rank a stage, or as many stages as there were ranks.
std::string by_stages(const Combination& c) {
  Combination divided = c;
  divided.num_ranks = divided.num_stages = c.num_ranks.value_or(1);
  divided.num_context_ranks = 1;
  return std::string(c.num_context_ranks > 1 ? " without --decode-context-parallel-size" : "") +
         (is_helped(c, divided) ? " and divide by --pipeline-parallel-size" : "");
}

constexpr NarrowLayout kStages = {
    "--pipeline-parallel-size", [](const Combination& c) { return c.num_stages > 1; },
    [](Combination& c) { c.num_ranks = c.num_stages = 2; }, without_stages};
constexpr NarrowLayout kLanes = {
    "--enable-dbo", [](const Combination& c) { return bool(c.two_lanes); },
    [](Combination& c) { c.two_lanes = true; },
    [](const Combination&) -> std::string { return "; leave --enable-dbo out"; }};
constexpr NarrowLayout kSharedExperts = {
    "--data-parallel-size` with `--enable-expert-parallel",
    [](const Combination& c) { return c.expert_parallel && c.num_engines > 1; },
    [](Combination& c) {
      c.expert_parallel = true;
      c.num_engines = 2;
    },
    [](const Combination&) -> std::string {
      return "; give --enable-expert-parallel without --data-parallel-size";
    }};
constexpr NarrowLayout kTensorRanks = {
    "--tensor-parallel-size", [](const Combination& c) { return c.num_tensor_ranks() > 1; },
    [](Combination& c) { c.num_ranks = 2; },
    [](const Combination& c) {
      return "not divided among ranks; use --tensor-parallel-size 1" + by_stages(c);
    }};
constexpr NarrowLayout kContextRanks = {
    "--decode-context-parallel-size", [](const Combination& c) { return c.num_context_ranks > 1; },
    [](Combination& c) { c.num_ranks = c.num_context_ranks = 2; },
    [](const Combination&) -> std::string { return "; leave --decode-context-parallel-size out"; }};

// Behind "ARCHITECTURE: " the sentence says what layers do and what to change.
struct LayerRule {
  const char* layers;  // to be read
  bool LayerNeeds::* need;
  const NarrowLayout& layout;
  const char* contradiction;
  const char* otherwise = "";  // what else to change
};

constexpr LayerRule kLayerRules[] = {
    {"layers that run several times", &LayerNeeds::run_again, kStages,
     "layers run several times, which stages do not have"},
    {"layers that add what the one before left", &LayerNeeds::add_later, kStages,
     "layers add what the layer before left, which stages do not have"},
    {"layers that attend to what others chose, no multiple of 4", &LayerNeeds::follow_indexers,
     kStages,
     "layers attend to positions that others chose, a number (index_topk) that is no multiple of "
     "4, which stages do not have"},
    {"layers that read others' keys", &LayerNeeds::read_other_layers, kStages,
     "layers read other layers' keys, which stages do not have"},
    {"layers that read more of a token than its row", &LayerNeeds::read_more, kStages,
     "layers read more of a token than its row, which stages do not have"},
    {"layers that read more of a token than its row", &LayerNeeds::read_more, kLanes,
     "layers read more of a token than its row, which two lanes do not have"},
    {"layers that weigh what earlier ones left", &LayerNeeds::weigh_depth, kStages,
     "layers weigh what earlier blocks of layers left, which stages do not have"},
    {"layers that weigh what earlier ones left", &LayerNeeds::weigh_depth, kLanes,
     "layers weigh what earlier blocks of layers left, which is kept for one lane"},
    {"experts that leave rows as they are", &LayerNeeds::has_idle_experts, kSharedExperts,
     "experts that leave rows as they are belong to no engine, so engines do not share experts"},
    {"experts of narrow rows", &LayerNeeds::has_narrow_experts, kSharedExperts,
     "experts between projections of rows (moe_latent_size) are not shared by engines"},
    {"ALiBi", &LayerNeeds::has_slopes, kContextRanks,
     "the slopes of ALiBi are not merged over ranks that share positions"},
    {"value heads that take turns in a GGUF file", &LayerNeeds::heads_take_turns, kTensorRanks,
     "value heads of linear attention take turns in this GGUF file, so that they are ",
     ", or the model's Hugging Face folder"},
};

CompatRule rule_of(const LayerRule& rule) {
  Combination example = {.architecture = "Model", .layers = LayerNeeds{}};
  (*example.layers).*rule.need = true;
  rule.layout.ask(example);
  return {std::string(rule.layers) + ", `" + rule.layout.flag + "`", StatusCode::kUnsupported,
          [&rule](const Combination& c) {
            return c.layers && (*c.layers).*rule.need && rule.layout.is_asked(c);
          },
          [&rule](const Combination& c) {
            return c.architecture + ": " + rule.contradiction + rule.layout.remedy(c) +
                   rule.otherwise;
          },
          std::move(example)};
}

}  // namespace

std::span<const CompatRule> layer_rules() {
  static const std::vector<CompatRule> rules = [] {
    std::vector<CompatRule> all;
    for (const LayerRule& rule : kLayerRules) all.push_back(rule_of(rule));
    return all;
  }();
  return rules;
}

}  // namespace foretoken
