#include "model/layer/layer_joints.h"

namespace foretoken {

LayerJoints joints_of(const LayerSpec& spec) {
  // All that a layer has: numbers of what is there change no joint, and neither do gates of normed
  // rows change a norm.
  [[maybe_unused]] const auto& [mixer_norm, mixer, side, mixer_post_norm, feed_forward_norm,
                                feed_forward, feed_forward_post_norm, post_norm_eps,
                                mixer_post_offset, feed_forward_post_offset, beside, shortcut,
                                joins_shortcut, parallel, norms_sums, norms_residual,
                                mixer_residual_scale, feed_forward_residual_scale, mixer_residual,
                                feed_forward_residual, input_size, scaled, streams, laurel_rank,
                                hyper, depth, mixer_gate, feed_forward_gate, feed_forward_shift,
                                shared] = spec;
  const bool one_stream = !streams.exist() && !hyper.exist() && !depth.exists && !shared.exists();
  const bool one_mixer = !side && laurel_rank == 0;
  const bool one_feed_forward = !beside && !shortcut;
  const bool in_turn = !parallel;
  const bool weighed = mixer_residual != nullptr || feed_forward_residual != nullptr;
  const bool gated =
      mixer_gate.rank > 0 || feed_forward_gate.rank > 0 || feed_forward_shift != nullptr;
  const bool grows_behind = input_size > 0 || scaled || joins_shortcut;
  return {.norm_enters = one_stream && !norms_residual,
          .norm_between = mixer_post_norm == nullptr && in_turn && one_stream && one_mixer &&
                          !beside && !norms_residual,
          .sum_ends = feed_forward_post_norm == nullptr && in_turn && one_stream && !beside &&
                      laurel_rank == 0 && !grows_behind,
          .parts_alone =
              one_stream && one_mixer && one_feed_forward && !weighed && !gated && !grows_behind};
}

}  // namespace foretoken
