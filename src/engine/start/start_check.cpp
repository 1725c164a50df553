#include "engine/start/start_check.h"

#include "compat/combination.h"
#include "draft/drafter_parts.h"
#include "engine/step/shape/graph_mode.h"

namespace foretoken {
namespace {

void take_model_parts(const Combination& model, int block_size, Combination* c) {
  c->architecture = model.architecture;
  c->dtype = model.dtype;
  c->model = model.model;
  if (c->model) c->model->block_size = block_size;
  c->latent = model.latent;
  c->compressed = model.compressed;
  c->positions_each = model.positions_each;
  c->layers = model.layers;
  c->has_windows = model.has_windows;
  c->windowed = model.windowed;
  c->states_of = model.states_of;
  c->chooses_blocks = model.chooses_blocks;
  c->num_experts = model.num_experts;
}

}  // namespace

Status check_start(const EngineConfig& config, const Combination& model) {
  Combination c = combination_of(config);
  FT_RETURN_IF_ERROR(check_combination(c, config.speculative));
  take_model_parts(model, config.block_size, &c);
  FT_RETURN_IF_ERROR(check_combination(c, config.speculative));
  const bool in_graphs = c.attention == nullptr || c.attention->traits().in_graphs;
  FT_ASSIGN_OR_RETURN(const GraphConfig graphs, resolve_graphs(config, in_graphs));
  c.only_pieces = graphs.mode == GraphMode::kPiecewise;
  return check_combination(c, config.speculative);
}

}  // namespace foretoken
