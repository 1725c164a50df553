#include "model/stack/carried_rows.h"

namespace foretoken {

Status CarriedRows::load(PartLoader& loader, Arena& arena, const std::string& body,
                         int32_t max_rows, const Stages& stages) {
  FT_RETURN_IF_ERROR(streams.load(loader, body));
  FT_RETURN_IF_ERROR(hyper.load(loader, body));
  FT_RETURN_IF_ERROR(depth.load(loader, body));
  return inputs.load(loader, arena, body, max_rows, stages);
}

Status CarriedRows::take_scratch(const ScratchSource& source) {
  FT_RETURN_IF_ERROR(inputs.take_scratch(source));
  FT_RETURN_IF_ERROR(streams.take_scratch(source));
  FT_RETURN_IF_ERROR(hyper.take_scratch(source));
  return depth.take_scratch(source);
}

void CarriedRows::begin(const LayerRows& rows, float* residual) {
  if (!inputs.empty()) inputs.make(rows, rows.token_ids, residual);
  if (!streams.empty()) streams.expand(rows, residual);
  if (!hyper.empty()) hyper.expand(rows, residual);
}

bool CarriedRows::end(const LayerRows& rows, float* residual, const float* delta) {
  if (!depth.empty()) depth.leave(rows, residual, delta);
  if (!streams.empty()) streams.collapse(rows, residual);
  if (!hyper.empty()) hyper.collapse(rows, residual);
  return !depth.empty();
}

void CarriedRows::cross(const LayerRows& rows, const StageCut& cut, float* residual,
                        int32_t hidden) {
  if (!hold_residual()) cut.cross(rows, residual, hidden);
  streams.cross(rows, cut);
  hyper.cross(rows, cut);
  depth.cross(rows, cut);
  inputs.cross(rows, cut);
}

}  // namespace foretoken
