#include <string>
#include <vector>

#include "compat/rules.h"

// Layers that not every layout has: among stages, and among tensor parallel ranks.

namespace foretoken {
namespace {

// A layout as these rules go by it, how it is asked for, and what to do without it.
struct NarrowLayout {
  const char* flag;
  bool (*is_asked)(const Combination&);
  void (*ask)(Combination&);
  std::string (*remedy)(const Combination&);
};

// One rank a stage, or as many stages as there were ranks.
std::string by_stages(const Combination& c) {
  Combination divided = c;
  divided.num_ranks = divided.num_stages = c.num_ranks.value_or(1);
  divided.num_context_ranks = 1;
  return std::string(c.num_context_ranks > 1 ? " without --decode-context-parallel-size" : "") +
         (is_helped(c, divided) ? " and divide by --pipeline-parallel-size" : "");
}

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

// Layers that read others' keys stay with these, and so do layers that are one in the files.
CompatRule stage_rule() {
  return {"layers that stay in one stage, `--pipeline-parallel-size`",
          StatusCode::kUnsupported,
          [](const Combination& c) {
            return c.layers && c.layers->max_stages > 0 && c.num_stages > c.layers->max_stages;
          },
          [](const Combination& c) {
            const int most = c.layers->max_stages;
            Combination divided = c;
            divided.num_stages = most;
            divided.num_ranks = *c.num_ranks / most * most;
            return c.architecture +
                   ": layers that read others' keys, or that are one in the files, stay in one "
                   "stage, so that there are at most " +
                   std::to_string(most) + (most == 1 ? " stage" : " stages") +
                   "; use --pipeline-parallel-size " + std::to_string(most) +
                   (is_helped(c, divided) ? " and divide by --tensor-parallel-size" : "");
          },
          {.architecture = "Model",
           .layers = LayerNeeds{.max_stages = 2},
           .num_ranks = 3,
           .num_stages = 3}};
}

}  // namespace

std::span<const CompatRule> layer_rules() {
  static const std::vector<CompatRule> rules = [] {
    std::vector<CompatRule> all;
    for (const LayerRule& rule : kLayerRules) all.push_back(rule_of(rule));
    all.push_back(stage_rule());
    return all;
  }();
  return rules;
}

}  // namespace foretoken
