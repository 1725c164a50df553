#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/layer/linear_spec.h"
#include "model/weights/sharding.h"
#include "model/weights/tensor_part.h"

namespace foretoken {

// Where the rows of a rank's part of LinearMixer lie in the tensors of LinearFiles. `base` is
// before the names of the spec, which is of the whole model. A rank's heads of values are some of
// each of its heads of keys, and lie among one another as those of the model do: where these take
// turns (LinearShape::tiled), they do not lie together in the files.

// [queries | keys | values | gates] of LinearMixer::first, without ".weight".
std::vector<TensorPart> first_parts(const std::string& base, const LinearSpec& whole,
                                    const Sharding& sharding);
// [decays | scales] of LinearMixer::steps; empty: there are none.
std::vector<TensorPart> step_parts(const std::string& base, const LinearSpec& whole,
                                   const Sharding& sharding);
// Of a tensor that has `each` rows, or elements, for every head of values.
std::vector<TensorPart> value_parts(const std::string& name, const LinearSpec& whole,
                                    const Sharding& sharding, int64_t each);
// The columns of LinearMixer::out, of which the model has v_size.
ColumnRange value_columns(const LinearSpec& whole, const Sharding& sharding);
// Of that many of the model's numbers, one for each of its heads of values.
std::vector<float> values_of_rank(const std::vector<float>& numbers, const LinearSpec& whole,
                                  const Sharding& sharding);
// How heads of values of `rows` rows, or columns, lie in a file, the first at `first`.
TurningHeads turning_of(const LinearSpec& whole, int64_t first, int64_t rows);
// Of the convolutions of kEach where they are tensors of their own; `is_deep` as of conv_parts.
std::vector<TensorPart> apart_conv_parts(const std::string& base, const LinearSpec& whole,
                                         const Sharding& sharding, bool is_deep);
// Of the tensor `name` that has `each` elements for each channel of the convolution: those of
// [queries | keys | values]. `is_deep`: its shape is [channels, 1, each], not [channels, each] or,
// for one element, [channels].
std::vector<TensorPart> conv_parts(const std::string& name, const LinearSpec& whole,
                                   const Sharding& sharding, int64_t each, bool is_deep);

}  // namespace foretoken
