#include "model/stack/embedded_rows.h"

namespace foretoken {

Status EmbeddedRows::load(PartLoader& loader, Arena& arena, const std::string& body,
                          const std::string& positions, bool is_own) {
  FT_RETURN_IF_ERROR(positions_.load(loader, arena, positions, is_own));
  const ModelConfig& config = loader.config();
  const int64_t hidden = config.hidden_size, width = config.embedding_width();
  if (width == hidden) return {};
  const std::string name = body + "embed_proj";
  if (!is_own) {
    const int64_t shape[] = {hidden, width};
    FT_RETURN_IF_ERROR(loader.weights().expect(name + ".weight", shape));
    return loader.weights().expect(name + ".bias", {&hidden, 1});
  }
  width_ = config.embedding_width();
  eps_ = config.rms_norm_eps;
  dtype_ = config.dtype;
  return loader.load_linear({{name, hidden}}, width, true, &widening_);
}

Status EmbeddedRows::take_scratch(const ScratchSource& source) {
  FT_RETURN_IF_ERROR(positions_.take_scratch(source));
  if (!is_narrow()) return {};
  FT_ASSIGN_OR_RETURN(rows_, source.floats(width_));
  FT_ASSIGN_OR_RETURN(normed_, source.act(width_));
  return {};
}

bool EmbeddedRows::finish(const LayerRows& rows, const Norm& norm, float* residual) const {
  if (!positions_.empty()) positions_.add(rows, table_rows(residual));
  if (!is_narrow()) return false;
  norm_rows(rows, rows_, nullptr, norm, {width_, eps_}, {normed_, dtype_});
  multiply(rows, normed_, widening_, {residual}, dtype_);
  return true;
}

double EmbeddedRows::num_weights(const ModelConfig& config) {
  const double widening = config.embedding_width() == config.hidden_size
                              ? 0
                              : double(config.hidden_size) * (config.embedding_width() + 1);
  return LearnedPositions::num_weights(config) + widening;
}

}  // namespace foretoken
