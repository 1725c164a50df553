#include "model/stack/hyper_streams.h"

#include <cmath>
#include <vector>

#include "kernels/rows/spread_streams.h"

namespace foretoken {

Status HyperConnection::load(PartLoader& loader, const std::string& name, StreamWeights learned) {
  const ModelConfig& config = loader.config();
  const int64_t made = num_hyper_weights(config.hyper.count, learned);
  const int64_t width = int64_t{config.hyper.count} * config.hidden_size;
  TensorPart part{name + "fn", made * width, 0, made * width};
  part.row_size = width;
  FT_RETURN_IF_ERROR(loader.load_vector({part}, &fn));
  FT_RETURN_IF_ERROR(loader.load_vector({{name + "base", made}}, &base));
  return loader.load_vector({{name + "scale", num_hyper_scales(learned)}}, &scale);
}

Status HyperConnection::make_mean(PartLoader& loader) {
  const HyperConfig& hyper = loader.config().hyper;
  constexpr const char* kWhat = "shares of streams";
  const auto count = static_cast<size_t>(hyper.count);
  const size_t width = count * static_cast<size_t>(loader.config().hidden_size);
  const std::vector<float> shares(count, -std::log(static_cast<float>(hyper.count - 1)));
  FT_RETURN_IF_ERROR(loader.upload(std::vector<float>(count * width), kWhat, &fn));
  FT_RETURN_IF_ERROR(loader.upload(shares, kWhat, &base));
  return loader.upload({0.0f}, kWhat, &scale);
}

double HyperStreams::num_weights(const ModelConfig& config) {
  if (config.hyper.of_end == nullptr) return 0;
  const double streams = config.hyper.count;
  return streams * (streams * config.hidden_size + 1) + 1;
}

Status HyperStreams::load(PartLoader& loader, const std::string& body) {
  config_ = loader.config().hyper;
  hidden_ = loader.config().hidden_size;
  norm_eps_ = loader.config().rms_norm_eps;
  if (empty()) return {};
  if (config_.of_end == nullptr) return last_.make_mean(loader);
  return last_.load(loader, body + config_.of_end, StreamWeights::kEnter);
}

Status HyperStreams::take_scratch(const ScratchSource& source) {
  if (empty()) return {};
  FT_ASSIGN_OR_RETURN(streams_, source.floats(int64_t{config_.count} * hidden_));
  FT_ASSIGN_OR_RETURN(weights_, source.floats(int64_t{config_.count} * (1 + config_.count)));
  return {};
}

void HyperStreams::expand(const LayerRows& rows, const float* residual) {
  spread_streams(rows.queue,
                 {rows.counts, residual, nullptr, streams_, config_.count, rows.max_rows, hidden_});
}

void HyperStreams::fold(const LayerRows& rows, const HyperConnection& part, float* residual) {
  const bool is_mean = &part == &last_ && config_.of_end == nullptr;
  fold_streams(rows.queue, {.counts = rows.counts,
                            .streams = streams_,
                            .fn = part.fn,
                            .base = part.base,
                            .scale = part.scale,
                            .folded = residual,
                            .weights = &part == &last_ ? nullptr : weights_,
                            .num_streams = config_.count,
                            .max_rows = rows.max_rows,
                            .size = hidden_,
                            .rounds = config_.rounds,
                            .norm_eps = norm_eps_,
                            .eps = is_mean ? 0 : config_.eps,
                            .gift = config_.gift});
}

void HyperStreams::spread(const LayerRows& rows, const float* made) {
  spread_streams(rows.queue,
                 {rows.counts, made, weights_, streams_, config_.count, rows.max_rows, hidden_});
}

void HyperStreams::collapse(const LayerRows& rows, float* residual) { fold(rows, last_, residual); }

void HyperStreams::cross(const LayerRows& rows, const StageCut& cut) {
  if (!empty()) cut.cross(rows, streams_, config_.count * hidden_);
}

}  // namespace foretoken
