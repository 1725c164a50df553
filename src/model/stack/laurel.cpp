#include "model/stack/laurel.h"

#include <algorithm>

namespace foretoken {

Status Laurel::load(PartLoader& loader, const std::string& layer, int32_t rank) {
  const ModelConfig& config = loader.config();
  const std::string base = layer + "laurel.";
  dtype = config.dtype;
  size = {config.hidden_size, config.rms_norm_eps};
  FT_RETURN_IF_ERROR(
      loader.load_linear({{base + "linear_left", rank}}, config.hidden_size, false, &left));
  FT_RETURN_IF_ERROR(
      loader.load_linear({{base + "linear_right", config.hidden_size}}, rank, false, &right));
  return loader.load_norm(base + "post_laurel_norm", config.hidden_size, &post_norm);
}

void Laurel::Scratch::fit(const Laurel& layer) {
  rank_ = std::max(rank_, layer.left.outputs);
  hidden_ = std::max(hidden_, layer.right.outputs);
}

Status Laurel::Scratch::take(const ScratchSource& source) {
  if (rank_ == 0) return {};
  FT_ASSIGN_OR_RETURN(narrow, source.floats(rank_));
  FT_ASSIGN_OR_RETURN(narrow_act, source.act(rank_));
  FT_ASSIGN_OR_RETURN(wide, source.floats(hidden_));
  FT_ASSIGN_OR_RETURN(path, source.floats(hidden_));
  return {};
}

void Laurel::add_path(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, left, {scratch.narrow}, dtype);
  norm_rows(rows, scratch.narrow, nullptr, {}, {left.outputs, size.eps},
            {scratch.narrow_act, dtype});
  multiply(rows, scratch.narrow_act, right, {scratch.wide}, dtype);
  norm_rows(rows, scratch.wide, nullptr, post_norm, size, {scratch.wide, DType::kF32});
  // The sum stays in path; what leaves the norm without weights is not read.
  norm_rows(rows, scratch.path, scratch.wide, {}, size, {scratch.wide, DType::kF32});
}

}  // namespace foretoken
