#pragma once
#include "model/layer/layer_spec.h"

namespace foretoken {

// How the parts of a layer meet the residual, as far as ops may be one across them: what holds of a
// layer, whatever parts it has. Of one made by hand nothing is known.
struct LayerJoints {
  // A norm of the residual is all that stands before the mixer, and the residual stays as it is.
  bool norm_enters = false;
  // What the mixer leaves is added to the residual, and a norm of the sum is what the feed-forward
  // part reads.
  bool norm_between = false;
  // What the feed-forward part leaves is added to the residual, and the layer ends.
  bool sum_ends = false;
  // Nothing but the two parts and their norms is there.
  bool parts_alone = false;

  // Of the layer that most architectures have: a norm before each of its two parts.
  bool all() const { return norm_enters && norm_between && sum_ends && parts_alone; }
};

// A member that LayerSpec gets must be judged there, or it does not compile.
LayerJoints joints_of(const LayerSpec& spec);

}  // namespace foretoken
