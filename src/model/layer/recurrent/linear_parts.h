#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/layer/linear_spec.h"
#include "model/weights/sharding.h"
#include "model/weights/tensor_part.h"

namespace foretoken {

// Where the rows of a rank's part of LinearMixer lie in the tensors of LinearFiles. `base` is
// before the names of the spec, which is of the whole model.

// [queries | keys | values | gates] of LinearMixer::first, without ".weight".
std::vector<TensorPart> first_parts(const std::string& base, const LinearSpec& whole,
                                    const Sharding& sharding);
// [decays | scales] of LinearMixer::steps; empty: there are none.
std::vector<TensorPart> step_parts(const std::string& base, const LinearSpec& whole,
                                   const Sharding& sharding);
// Of gates or decays that are made of few numbers, each with `each` rows of a value head.
TensorPart low_part(const std::string& name, const LinearSpec& whole, const Sharding& sharding,
                    int64_t each);
// Of the convolutions of kEach where they are tensors of their own; `is_deep` as of conv_parts.
std::vector<TensorPart> apart_conv_parts(const std::string& base, const LinearSpec& whole,
                                         const Sharding& sharding, bool is_deep);
// Of the tensor `name` that has `each` elements for each channel of the convolution: those of
// [queries | keys | values]. `is_deep`: its shape is [channels, 1, each], not [channels, each] or,
// for one element, [channels].
std::vector<TensorPart> conv_parts(const std::string& name, const LinearSpec& whole,
                                   const Sharding& sharding, int64_t each, bool is_deep);

}  // namespace foretoken
