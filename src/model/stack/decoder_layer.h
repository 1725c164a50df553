#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "model/layer/attention/compressed.h"
#include "model/layer/attention/gqa.h"
#include "model/layer/attention/latent.h"
#include "model/layer/feed_forward/experts.h"
#include "model/layer/feed_forward/gated_mlp.h"
#include "model/layer/feed_forward/plain_mlp.h"
#include "model/layer/layer_joints.h"
#include "model/layer/layer_spec.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/recurrent/linear_mixer.h"
#include "model/layer/recurrent/selective_mixer.h"
#include "model/layer/recurrent/short_conv.h"
#include "model/layer/recurrent/wkv_mixer.h"
#include "model/layer/row_gate.h"
#include "model/stack/depth_residuals.h"
#include "model/stack/hyper_streams.h"
#include "model/stack/laurel.h"
#include "model/stack/layer_inputs.h"
#include "model/stack/residual_streams.h"
#include "model/stack/shared_block.h"

namespace foretoken {

// The parts of LayerSpec with their weights, in the order of its variants.
using Mixer =
    std::variant<Gqa, Latent, LinearMixer, ShortConv, SelectiveMixer, WkvMixer, Compressed, Absent>;
using FeedForward = std::variant<GatedMlp, PlainMlp, Experts, Absent>;

// BesideSpec with its weights.
struct Beside {
  Experts experts;
  Norm norm;
  Norm post_norm;
  Norm other_post_norm;
};

// A decoder layer in device memory, or a rank's part of it.
struct DecoderLayer {
  Norm mixer_norm;
  Mixer mixer;
  std::optional<LinearMixer> side;  // beside it, as of LayerSpec
  Norm mixer_post_norm;             // of what the mixer adds
  Norm feed_forward_norm;
  FeedForward feed_forward;
  Norm feed_forward_post_norm;
  std::optional<Beside> beside;
  std::optional<Experts> shortcut;
  bool joins_shortcut = false;  // as of LayerSpec
  // [hidden], as of LayerSpec, or null.
  const float* mixer_residual = nullptr;
  const float* feed_forward_residual = nullptr;
  bool parallel = false;    // as of LayerSpec
  bool norms_sums = false;  // the same, and so are the next
  bool norms_residual = false;
  float mixer_residual_scale = 1;
  float feed_forward_residual_scale = 1;
  LayerInput input;
  Laurel laurel;
  StreamMixer streams;
  HyperConnection mixer_streams;  // as of LayerSpec::hyper, and so is the next
  HyperConnection feed_forward_streams;
  DepthMixer depth;
  RowGate mixer_gate;
  RowGate feed_forward_gate;
  const float* feed_forward_shift = nullptr;  // [hidden], as of LayerSpec, or null
  SharedBlock shared;
  float scale = 1;  // of the residual behind the layer
  LayerJoints joints;
};

// Loads the layer whose tensors begin with `base`, for example "model.layers.3.". `spec` is of the
// whole model. `out` stays until the loader has finished or stopped. Errors as of WeightLoader.
Status load_layer(PartLoader& loader, const std::string& base, const LayerSpec& spec,
                  DecoderLayer* out);

// What its mixer says: positions that a row sees, its own included (0: all), and whether rows have
// rotary positions. Mixers that say nothing see all, with these.
int32_t kept_window(const DecoderLayer& layer);
bool turns_rows(const DecoderLayer& layer);

}  // namespace foretoken
