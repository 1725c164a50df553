#include "model/stack/depth_residuals.h"

#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kernels/rows/mix_depth.h"

namespace foretoken {
namespace {

// Ones of random weights, which no file holds.
Result<std::vector<float>> numbers_of(PartLoader& loader, const std::string& name,
                                      std::span<const int64_t> shape) {
  FT_RETURN_IF_ERROR(loader.weights().expect(name, shape));
  if (loader.weights().has_optional(name)) return loader.weights().numbers(name);
  return std::vector<float>(static_cast<size_t>(shape.back()), 1.0f);
}

// The score of a normed row is that of the row by the product of both, over its magnitude. GGUF
// files have the product.
Status load_query(PartLoader& loader, const std::string& norm, const std::string& query,
                  const float** out) {
  constexpr std::string_view kNorm = "norm";
  const int64_t shape[] = {1, loader.config().hidden_size};
  const std::string product = norm.substr(0, norm.size() - kNorm.size()) + "score.weight";
  if (loader.weights().has_optional(product)) {
    FT_ASSIGN_OR_RETURN(const std::vector<float> both, numbers_of(loader, product, shape));
    return loader.upload(both, "the queries of earlier blocks", out);
  }
  FT_ASSIGN_OR_RETURN(std::vector<float> weights,
                      numbers_of(loader, norm + ".weight", std::span(shape).subspan(1)));
  FT_ASSIGN_OR_RETURN(const std::vector<float> factors,
                      numbers_of(loader, query + ".weight", shape));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] *= factors[i];
  return loader.upload(weights, "the queries of earlier blocks", out);
}

}  // namespace

Status DepthMixer::load(PartLoader& loader, const std::string& base, const DepthSpec& spec) {
  blocks = spec.blocks;
  begins_block = spec.begins_block;
  FT_RETURN_IF_ERROR(load_query(loader, base + spec.mixer_norm, base + spec.mixer_query, &mixer));
  return load_query(loader, base + spec.feed_forward_norm, base + spec.feed_forward_query,
                    &feed_forward);
}

double DepthResiduals::num_weights(const ModelConfig& config) {
  return config.depth_block > 0 ? 2.0 * config.hidden_size : 0;
}

Status DepthResiduals::load(PartLoader& loader, const std::string& body) {
  const ModelConfig& config = loader.config();
  num_blocks_ = config.num_depth_blocks();
  size_ = {config.hidden_size, config.rms_norm_eps};
  if (empty()) return {};
  return load_query(loader, body + "output_attn_res_norm", body + "output_attn_res_proj", &query_);
}

Status DepthResiduals::take_scratch(const ScratchSource& source) {
  if (empty()) return {};
  max_rows_ = source.max_rows;
  FT_ASSIGN_OR_RETURN(blocks_, source.floats(int64_t{num_blocks_} * size_.hidden));
  FT_ASSIGN_OR_RETURN(mixed_, source.floats(size_.hidden));
  const auto hidden = static_cast<size_t>(size_.hidden), rows = static_cast<size_t>(max_rows_);
  FT_ASSIGN_OR_RETURN(zeros_, source.arena.take_array<float>(hidden, ScratchSource::kWhat));
  FT_ASSIGN_OR_RETURN(first_, source.arena.take_array<int32_t>(rows, ScratchSource::kWhat));
  return {};
}

float* DepthResiduals::mix(const LayerRows& rows, const float* query, int32_t blocks,
                           float* residual, const float* delta) {
  if (blocks == 0) {
    FT_CHECK(delta == nullptr);
    return residual;
  }
  run(rows, query, blocks, residual, delta, mixed_);
  return mixed_;
}

void DepthResiduals::run(const LayerRows& rows, const float* query, int32_t blocks, float* residual,
                         const float* delta, float* out) {
  mix_depth(rows.queue, {.counts = rows.counts,
                         .residual = residual,
                         .delta = delta,
                         .blocks = blocks_,
                         .weights = query,
                         .out = out,
                         .num_blocks = blocks,
                         .block_rows = max_rows_,
                         .max_rows = rows.max_rows,
                         .size = size_.hidden,
                         .eps = size_.eps});
}

void DepthResiduals::keep(const LayerRows& rows, int32_t block, float* residual) {
  FT_CHECK(block < num_blocks_);
  const auto copy = [&](const float* from, const int32_t* which, float* to) {
    move_rows(rows.queue, {.counts = rows.counts,
                           .in = from,
                           .out = to,
                           .from = which,
                           .to = nullptr,
                           .row_kind = RowKind::kToken,
                           .max_rows = rows.max_rows,
                           .width = size_.hidden,
                           .out_stride = size_.hidden,
                           .out_offset = 0,
                           .in_dtype = DType::kF32,
                           .out_dtype = DType::kF32});
  };
  copy(residual, nullptr, this->block(block));
  copy(zeros_, first_, residual);
}

void DepthResiduals::cross(const LayerRows& rows, const StageCut& cut) {
  for (int32_t i = 0; !empty() && i < cut.behind.blocks_before; ++i) {
    cut.cross(rows, block(i), size_.hidden);
  }
}

void DepthResiduals::leave(const LayerRows& rows, float* residual, const float* delta) {
  run(rows, query_, num_blocks_, residual, delta, residual);
}

}  // namespace foretoken
