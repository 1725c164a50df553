#include "model/stack/layer_inputs.h"

#include <cmath>
#include <vector>

#include "base/bfloat16.h"
#include "base/check.h"
#include "kernels/gemm/gated_act.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/move_rows.h"
#include "kernels/rows/norm_columns.h"
#include "kernels/rows/softcap.h"
#include "model/weights/tensor_places.h"

namespace foretoken {
namespace {

constexpr const char* kProjection = "per_layer_model_projection";
constexpr const char* kNorm = "per_layer_projection_norm.weight";

void scale_rows(const LayerRows& rows, float* x, int32_t size, float scale) {
  softcap(rows.queue, {.counts = rows.counts,
                       .x = x,
                       .row_kind = RowKind::kToken,
                       .row_offset = 0,
                       .max_rows = rows.max_rows,
                       .size = size,
                       .cap = 0,
                       .scale = scale});
}

}  // namespace

Status LayerInput::load(PartLoader& loader, const std::string& base, int32_t size) {
  const int32_t hidden = loader.config().hidden_size;
  FT_RETURN_IF_ERROR(
      loader.load_linear({{base + "per_layer_input_gate", size}}, hidden, false, &gate));
  FT_RETURN_IF_ERROR(
      loader.load_linear({{base + "per_layer_projection", hidden}}, size, false, &projection));
  return loader.load_norm(base + "post_per_layer_input_norm", hidden, &post_norm);
}

double LayerInputs::num_weights(const ModelConfig& config) {
  const double width = double(config.num_layers) * config.layer_input_size;
  return width * (double(config.layer_input_vocab) + config.hidden_size) + config.layer_input_size;
}

Status LayerInputs::load(PartLoader& loader, Arena& arena, const std::string& body,
                         int32_t max_rows, const Stages& stages) {
  const ModelConfig& config = loader.config();
  if (config.layer_input_size == 0) return {};
  first_ = static_cast<int32_t>(stages.layers(config.num_layers).begin);
  num_layers_ = config.num_layers - first_;
  size_ = config.layer_input_size;
  vocab_ = config.layer_input_vocab;
  hidden_ = config.hidden_size;
  eps_ = config.rms_norm_eps;
  dtype_ = config.dtype;
  activation_ = config.activation;
  FT_RETURN_IF_ERROR(stages.is_first() ? load_weights(loader, arena, body)
                                       : expect_weights(loader, body));
  max_rows_ = max_rows;
  std::vector<int32_t> rows_of;
  for (int32_t layer = 0; layer < num_layers_; ++layer) {
    for (int32_t row = 0; row < max_rows_; ++row) rows_of.push_back(row * num_layers_ + layer);
  }
  FT_ASSIGN_OR_RETURN(void* uploaded, loader.weights().upload(arena, rows_of.data(),
                                                              rows_of.size() * sizeof(int32_t),
                                                              "the rows of embeddings of layers"));
  rows_of_ = static_cast<const int32_t*>(uploaded);
  return {};
}

Status LayerInputs::load_weights(PartLoader& loader, Arena& arena, const std::string& body) {
  FT_ASSIGN_OR_RETURN(table_,
                      loader.weights().kept_table(arena, body + kLayerInputTable, vocab_, width()));
  projection_ = std::make_shared<Linear>();
  FT_RETURN_IF_ERROR(
      loader.load_linear({{body + kProjection, width()}}, hidden_, false, projection_.get()));
  const std::vector<TensorPart> norms(static_cast<size_t>(num_layers_), {body + kNorm, size_});
  return loader.load_norm_weights(norms, &norm_);
}

Status LayerInputs::expect_weights(PartLoader& loader, const std::string& body) const {
  const int64_t all = int64_t{first_ + num_layers_} * size_;
  const int64_t table[] = {vocab_, all}, projection[] = {all, hidden_}, norm[] = {size_};
  FT_RETURN_IF_ERROR(loader.weights().expect(body + kLayerInputTable, table));
  FT_RETURN_IF_ERROR(loader.weights().expect(body + kProjection + ".weight", projection));
  return loader.weights().expect(body + kNorm, norm);
}

Status LayerInputs::take_scratch(const ScratchSource& source) {
  if (empty()) return {};
  FT_ASSIGN_OR_RETURN(entering_, source.act(hidden_));
  FT_ASSIGN_OR_RETURN(made_, source.floats(width()));
  FT_ASSIGN_OR_RETURN(looked_up_, source.floats(width()));
  FT_ASSIGN_OR_RETURN(gated_, source.floats(size_));
  FT_ASSIGN_OR_RETURN(pair_, source.floats(2 * int64_t{size_}));
  FT_ASSIGN_OR_RETURN(mixed_, source.act(size_));
  return {};
}

void LayerInputs::make(const LayerRows& rows, const int32_t* token_ids, float* residual) {
  FT_CHECK(table_.rows.exists());
  norm_rows(rows, residual, nullptr, {}, {hidden_, eps_}, {entering_, dtype_});
  multiply(rows, entering_, *projection_, {made_}, dtype_);
  scale_rows(rows, made_, width(), 1 / std::sqrt(float(hidden_)));
  norm_columns(rows.queue, {.counts = rows.counts,
                            .x = made_,
                            .weight = norm_,
                            .max_rows = rows.max_rows,
                            .stride = width(),
                            .column = 0,
                            .groups = num_layers_,
                            .size = size_,
                            .eps = eps_});
  float scale = std::sqrt(float(size_));
  // transformers rounds the factor to the model's type.
  if (dtype_ == DType::kBF16) scale = bf16_to_float(bf16_from_float(scale));
  embed(rows.queue, {.counts = rows.counts,
                     .token_ids = token_ids,
                     .table = table_.rows,
                     .out = looked_up_,
                     .max_rows = rows.max_rows,
                     .vocab = vocab_,
                     .hidden = width(),
                     .dtype = dtype_,
                     .scale = scale});
  // The sum stays in made_; what leaves the norm without weights is not read.
  norm_rows(rows, made_, looked_up_, {}, {width(), eps_}, {looked_up_, DType::kF32});
  scale_rows(rows, made_, width(), std::sqrt(0.5f));
}

// The columns of layers that the next stage does not run stay here.
void LayerInputs::cross(const LayerRows& rows, const StageCut& cut) {
  if (empty()) return;
  const int32_t left_out = (cut.layer - first_) * size_, columns = width() - left_out;
  float* x = made_;
  if (left_out > 0) {
    x = looked_up_;
    cast_rows(rows, {made_ + left_out, DType::kF32, x, DType::kF32, columns, width()});
  }
  cut.cross(rows, x, columns);
}

void LayerInputs::mix(const LayerRows& rows, const LayerInput& layer, const void* x,
                      float* to) const {
  multiply(rows, x, layer.gate, {gated_}, dtype_);
  const auto put = [&](const float* from, const int32_t* index, int32_t column) {
    move_rows(rows.queue, {.counts = rows.counts,
                           .in = from,
                           .out = pair_,
                           .from = index,
                           .to = nullptr,
                           .row_kind = RowKind::kToken,
                           .max_rows = rows.max_rows,
                           .width = size_,
                           .out_stride = 2 * size_,
                           .out_offset = column,
                           .in_dtype = DType::kF32,
                           .out_dtype = DType::kF32});
  };
  put(gated_, nullptr, 0);
  put(made_, rows_of_ + int64_t{layer.index - first_} * max_rows_, size_);
  gated_act(rows.queue, {.counts = rows.counts,
                         .gate_up = pair_,
                         .out = mixed_,
                         .max_rows = rows.max_rows,
                         .size = size_,
                         .activation = activation_,
                         .out_dtype = dtype_});
  multiply(rows, mixed_, layer.projection, {to}, dtype_);
}

}  // namespace foretoken
