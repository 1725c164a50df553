#include "engine/start/start_check.h"

#include "compat/combination.h"
#include "draft/drafter_parts.h"
#include "engine/start/start_parts.h"
#include "engine/step/shape/graph_mode.h"

namespace foretoken {

Status check_start(const EngineConfig& config, const Combination& model) {
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
