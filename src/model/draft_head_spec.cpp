#include "model/draft_head_spec.h"

#include <variant>

#include "model/layer/layer_tensors.h"

namespace foretoken {

LayerSpec head_layer_spec(const DraftHeadConfig& config, const DecoderTraits& traits,
                          const HeadLayerPlace& place) {
  const int32_t index = place.module + place.depth;
  const auto compose = config.mtp.layer != nullptr ? config.mtp.layer : traits.layer;
  LayerSpec layer = compose(config.layer, config.layer.layers.at(static_cast<size_t>(index)));
  if (place.depth > 0) return layer;
  if (config.traits().entry == HeadEntry::kSummed) layer.mixer_norm = nullptr;
  if (config.traits().pairs_taps()) {
    std::get<GqaSpec>(layer.mixer).inputs = 2 * config.layer.hidden_size;
  }
  return layer;
}

int64_t draft_head_weight_bytes(const DraftHeadConfig& config, const ModelConfig& target) {
  const ModelConfig& layer = config.layer;
  const DecoderTraits& traits = find_architecture(layer.architecture)->decoder;
  const double hidden = layer.hidden_size;
  const bool block = config.traits().drafts_blocks();
  const bool taps = config.traits().reads_taps();
  const double fc = taps ? double(config.tap_layers.size()) * target.hidden_size : 2 * hidden;
  const double head = config.draft_vocab_size < layer.vocab_size ? config.draft_vocab_size : 0;
  const double state = config.gru_size, added = config.added_rank();
  double count = head * hidden + double(config.markov_rank) * layer.vocab_size;
  count += added * config.draft_vocab_size;
  count += 3 * state * (hidden + state) + config.gru_rank * (hidden + state);
  for (int32_t i = 0; i < config.num_modules * config.num_layers; ++i) {
    const int32_t depth = i % config.num_layers;
    if (depth == 0 && (!block || i == 0)) count += fc * hidden;
    const LayerSpec spec =
        head_layer_spec(config, traits, {.module = i / config.num_layers, .depth = depth});
    for (const LayerTensor& tensor : layer_tensors(spec, traits.norms, layer.hidden_size)) {
      count += tensor.size();
    }
  }
  const double bytes = count * static_cast<double>(dtype_size(layer.dtype));
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

}  // namespace foretoken
