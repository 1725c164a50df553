#include "model/stack/residual_streams.h"

#include "kernels/rows/match_magnitude.h"
#include "kernels/rows/mix_streams.h"
#include "kernels/rows/softcap.h"

namespace foretoken {
namespace {

constexpr float kLeastSquare = 1e-5f;

}  // namespace

Status StreamMixer::load(PartLoader& loader, const std::string& layer,
                         const StreamConfig& streams) {
  const int64_t count = streams.count;
  const int32_t hidden = loader.config().hidden_size;
  const std::string base = layer + "altup.";
  FT_RETURN_IF_ERROR(loader.load_norm(base + "router_norm", hidden, &router_norm));
  TensorPart router_part{base + "modality_router", count};
  router_part.is_exact = true;
  FT_RETURN_IF_ERROR(loader.load_linear({router_part}, hidden, false, &router));
  const auto factors = [&](const char* name, int64_t rows, const float** out) {
    const int64_t all = rows * count;
    return loader.load_vector({{base + name + ".weight", all, 0, all, {}, count}}, out);
  };
  FT_RETURN_IF_ERROR(factors("prediction_coefs", count * count, &predict));
  FT_RETURN_IF_ERROR(factors("correction_coefs", count, &correct));
  if (streams.scaled) return loader.load_vector({{base + "correct_output_scale", hidden}}, &scale);
  loader.weights().ignore(base + "correct_output_scale");
  return {};
}

double ResidualStreams::num_weights(const ModelConfig& config) {
  const double matrix = double(config.hidden_size) * config.hidden_size;
  return 2 * (config.streams.count - 1) * matrix;
}

// GGUF files have the matrices in one tensor.
TensorPart ResidualStreams::matrix_of(const WeightLoader& loader, const std::string& name,
                                      size_t index) const {
  const int64_t hidden = size_.hidden, count = config_.count - 1;
  if (!loader.has(name + ".weight")) return {name + "." + std::to_string(index), hidden};
  TensorPart part{name, count * hidden, static_cast<int64_t>(index) * hidden, hidden};
  part.stacked = count;
  return part;
}

Status ResidualStreams::load(PartLoader& loader, const std::string& body) {
  const ModelConfig& config = loader.config();
  config_ = config.streams;
  size_ = {config.hidden_size, config.rms_norm_eps};
  dtype_ = config.dtype;
  if (empty()) return {};
  const auto count = static_cast<size_t>(config_.count - 1);
  ways_ = std::make_shared<Ways>();
  ways_->in.resize(count);
  ways_->out.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto load_one = [&](const char* name, Linear* out) {
      return loader.load_linear({matrix_of(loader.weights(), body + name, i)}, size_.hidden, false,
                                out);
    };
    FT_RETURN_IF_ERROR(load_one("altup_projections", &ways_->in[i]));
    FT_RETURN_IF_ERROR(load_one("altup_unembed_projections", &ways_->out[i]));
  }
  return {};
}

Status ResidualStreams::take_scratch(const ScratchSource& source) {
  if (empty()) return {};
  max_rows_ = source.max_rows;
  FT_ASSIGN_OR_RETURN(streams_, source.floats(int64_t{config_.count} * size_.hidden));
  FT_ASSIGN_OR_RETURN(routed_, source.floats(config_.count));
  FT_ASSIGN_OR_RETURN(made_, source.floats(size_.hidden));
  FT_ASSIGN_OR_RETURN(act_, source.act(size_.hidden));
  return {};
}

void ResidualStreams::expand(const LayerRows& rows, float* residual) {
  put(rows, residual, {stream(0), DType::kF32});
  put(rows, residual, {act_, dtype_});
  for (int32_t i = 1; i < config_.count; ++i) {
    multiply(rows, act_, ways_->in[static_cast<size_t>(i - 1)], {stream(i)}, dtype_);
    match_magnitude(rows.queue,
                    {rows.counts, stream(i), residual, rows.max_rows, size_.hidden, kLeastSquare});
  }
}

void ResidualStreams::route(const LayerRows& rows, const StreamMixer& layer, float* active) {
  norm_rows(rows, active, nullptr, layer.router_norm, size_, {act_, dtype_});
  multiply(rows, act_, layer.router, {routed_}, dtype_);
}

void ResidualStreams::mix(const LayerRows& rows, const StreamMixer& layer, const float* activated,
                          float* residual) {
  const bool corrects = activated != nullptr;
  mix_streams(rows.queue, {.counts = rows.counts,
                           .streams = streams_,
                           .routed = routed_,
                           .weights = corrects ? layer.correct : layer.predict,
                           .activated = activated,
                           .out = residual,
                           .out_scale = corrects ? layer.scale : nullptr,
                           .num_streams = config_.count,
                           .active = config_.active,
                           .max_rows = rows.max_rows,
                           .stream_rows = max_rows_,
                           .size = size_.hidden,
                           .scale = 1 / static_cast<float>(size_.hidden)});
}

void ResidualStreams::predict(const LayerRows& rows, const StreamMixer& layer, float* residual) {
  route(rows, layer, stream(config_.active));
  mix(rows, layer, nullptr, residual);
}

void ResidualStreams::correct(const LayerRows& rows, const StreamMixer& layer, float* residual) {
  route(rows, layer, residual);
  mix(rows, layer, residual, residual);
}

// What leaves the norm without weights is not read.
void ResidualStreams::add(const LayerRows& rows, const float* delta) {
  for (int32_t i = 1; i < config_.count; ++i) {
    norm_rows(rows, stream(i), delta, {}, size_, {act_, dtype_});
  }
}

void ResidualStreams::cross(const LayerRows& rows, const StageCut& cut) {
  for (int32_t i = 0; !empty() && i < config_.count; ++i) cut.cross(rows, stream(i), size_.hidden);
}

void ResidualStreams::collapse(const LayerRows& rows, float* residual) {
  put(rows, stream(0), {residual, DType::kF32});
  for (int32_t i = 1; i < config_.count; ++i) {
    put(rows, stream(i), {act_, dtype_});
    multiply(rows, act_, ways_->out[static_cast<size_t>(i - 1)], {made_}, dtype_);
    match_magnitude(rows.queue,
                    {rows.counts, made_, stream(0), rows.max_rows, size_.hidden, kLeastSquare});
    norm_rows(rows, residual, made_, {}, size_, {act_, dtype_});
  }
  softcap(rows.queue, {.counts = rows.counts,
                       .x = residual,
                       .row_kind = RowKind::kToken,
                       .row_offset = 0,
                       .max_rows = rows.max_rows,
                       .size = size_.hidden,
                       .cap = 0,
                       .scale = 1 / static_cast<float>(config_.count)});
}

}  // namespace foretoken
