#include "model/taps.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "kernels/rows/move_rows.h"

namespace foretoken {

void Taps::add(const TapSink& sink) {
  FT_CHECK(sink.pages != nullptr && !sink.layers.empty());
  for (const int32_t layer : sink.layers) {
    FT_CHECK(layer >= TapSink::kLastLayer && layer < config_.num_layers);
    FT_CHECK(TapSink::width_of(config_, layer) == TapSink::width_of(config_, sink.layers.front()));
  }
  sinks_.push_back(sink);
  std::set<int32_t> layers(layers_.begin(), layers_.end());
  layers.insert(sink.layers.begin(), sink.layers.end());
  std::erase_if(layers, [](int32_t layer) { return layer < 0; });
  layers_.assign(layers.begin(), layers.end());
}

bool Taps::has(int32_t layer) const { return std::ranges::count(layers_, layer) > 0; }

bool Taps::wants(int32_t behind) const {
  return std::ranges::any_of(
      sinks_, [&](const TapSink& sink) { return std::ranges::count(sink.layers, behind) > 0; });
}

void Taps::keep(Queue& queue, const StepTensors& tensors, int32_t max_rows, int32_t layer,
                const void* states) const {
  const DType in_dtype = layer == TapSink::kFinalNorm ? config_.dtype : DType::kF32;
  const int32_t width = TapSink::width_of(config_, layer);
  for (const TapSink& sink : sinks_) {
    for (size_t i = 0; i < sink.layers.size(); ++i) {
      if (sink.layers[i] != layer) continue;
      const int32_t columns = sink.columns_of(width);
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
                        .out_dtype = config_.dtype,
                        .in_stride = width});
    }
  }
}

}  // namespace foretoken
