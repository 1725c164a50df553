#include "model/taps.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "kernels/rows/move_rows.h"

namespace foretoken {

void Taps::add(const TapSink& sink, int32_t num_layers) {
  FT_CHECK(sink.pages != nullptr && !sink.layers.empty());
  for (const int32_t layer : sink.layers) {
    FT_CHECK(layer == TapSink::kFinalNorm || (layer >= 0 && layer < num_layers));
  }
  sinks_.push_back(sink);
  std::set<int32_t> layers(layers_.begin(), layers_.end());
  layers.insert(sink.layers.begin(), sink.layers.end());
  layers.erase(TapSink::kFinalNorm);
  layers_.assign(layers.begin(), layers.end());
}

bool Taps::has(int32_t layer) const { return std::ranges::count(layers_, layer) > 0; }

bool Taps::has_final_norm() const {
  return std::ranges::any_of(sinks_, [](const TapSink& sink) {
    return std::ranges::count(sink.layers, TapSink::kFinalNorm) > 0;
  });
}

void Taps::keep(Queue& queue, const StepTensors& tensors, int32_t max_rows, int32_t layer,
                const void* states) const {
  const DType in_dtype = layer == TapSink::kFinalNorm ? dtype_ : DType::kF32;
  for (const TapSink& sink : sinks_) {
    for (size_t i = 0; i < sink.layers.size(); ++i) {
      if (sink.layers[i] != layer) continue;
      const int32_t columns = sink.columns_of(hidden_);
      move_rows(queue, {.counts = tensors.counts,
                        .in = sink.part_of(states, columns, in_dtype),
                        .out = sink.pages,
                        .from = nullptr,
                        .to = tensors.kv_slot,
                        .row_kind = RowKind::kToken,
                        .max_rows = max_rows,
                        .width = columns,
                        .out_stride = static_cast<int32_t>(sink.layers.size()) * columns,
                        .out_offset = static_cast<int32_t>(i) * columns,
                        .in_dtype = in_dtype,
                        .out_dtype = dtype_,
                        .in_stride = hidden_});
    }
  }
}

}  // namespace foretoken
