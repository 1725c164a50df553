#include "engine/start/start_check.h"

#include "attention/backend.h"
#include "attention/flex_choice.h"
#include "compat/combination.h"
#include "config/engine_fields.h"
#include "device/device_traits.h"
#include "draft/drafter_parts.h"
#include "draft/registry.h"
#include "engine/start/start_parts.h"
#include "engine/step/shape/graph_mode.h"

namespace foretoken {
namespace {

// compat is asked about backends and drafters, not about names of none.
Status check_names(const EngineConfig& config) {
  const AttentionChoice choice = read_attention_choice(config.attention_backend);
  const DeviceTraits* device = find_device_type(config.device);
  if (!choice.backend.empty() && device != nullptr) {
    FT_RETURN_IF_ERROR(check_attention_name(choice.backend, device->type));
  }
  for (const SpeculativeConfig& drafter : config.speculative) {
    FT_RETURN_IF_ERROR(find_drafter(drafter.method).status());
  }
  return {};
}

}  // namespace

Status check_start(const EngineConfig& given, const Combination& model) {
  EngineConfig config = given;
  take_nearest(&config);
  FT_RETURN_IF_ERROR(check_names(config));
  // What is told before anything is opened, then beside the model, then with graphs.
  FT_RETURN_IF_ERROR(check_combination(combination_of(config), config.speculative));
  Combination c = model;
  add_config(config, &c);
  add_files(config, &c);
  FT_RETURN_IF_ERROR(check_combination(c, config.speculative));
  const bool in_graphs = c.attention == nullptr || c.attention->traits().in_graphs;
  FT_ASSIGN_OR_RETURN(const GraphConfig graphs, resolve_graphs(config, in_graphs));
  c.only_pieces = graphs.mode == GraphMode::kPiecewise;
  return check_combination(c, config.speculative);
}

}  // namespace foretoken
