#include <string>
#include <vector>

#include "compat/rules.h"

// Layers that not every layout has.

namespace foretoken {
namespace {

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
  static const std::vector<CompatRule> rules = {stage_rule()};
  return rules;
}

}  // namespace foretoken
