#include <cmath>
#include <string>

#include "dialled/dialled_fill.h"
#include "dialled/dialled_heads.h"
#include "dialled/dialled_parts.h"

namespace foretoken {

std::vector<TensorToWrite> dialled_tensors(const DialledShape& shape, const ModelConfig& config,
                                           const DecoderTraits& traits) {
  const std::string body = traits.places[0].body;
  DialledTensors out(shape.dtype, shape.hidden_size);
  std::vector<int32_t> words(static_cast<size_t>(shape.vocab_size));
  for (int32_t id = 0; id < shape.vocab_size; ++id) {
    // Ids that are no words have codes of their own, 0 and 1.
    words[static_cast<size_t>(id)] = id < 2 ? id : dialled_word(shape, id);
  }
  // Elements are 1 or -1 in the residual.
  out.add_codes(body + traits.embedding + ".weight", words,
                traits.scaled_embedding ? 1 / std::sqrt(float(shape.hidden_size)) : 1.0f);
  // Two blocks a layer add independent noise.
  const float deviation = kDialledPerturbation / std::sqrt(2 * float(shape.num_layers));
  for (int32_t i = 0; i < shape.num_layers; ++i) {
    const bool experts = config.layers.at(static_cast<size_t>(i)).experts;
    add_dialled_layer({shape, config, traits, deviation, true, experts},
                      body + traits.layers + std::to_string(i) + ".", &out);
  }
  out.add_constant(body + traits.last_norm + ".weight", shape.hidden_size, 1 - traits.norms.offset);
  out.add_codes(traits.places[0].head, dialled_head_words(shape, dialled_successors(shape)),
                dialled_head_scale(shape.hidden_size));
  if (shape.num_mtp_modules > 0) {
    add_dialled_modules(shape, config, traits, &out);
  }
  return out.take();
}

}  // namespace foretoken
