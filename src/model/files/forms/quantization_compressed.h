#pragma once
#include <string>

#include "base/result.h"
#include "model/files/forms/quantization.h"
#include "model/files/forms/quantization_reader.h"

namespace foretoken {

// What a quantization_config of compressed-tensors says of weights. How activations are rounded
// changes `rounds_activations` alone. Unsupported as of read_quantization.
Status read_compressed(QuantizationReader& reader, const std::string& where, Quantization* out);

// Whether one has groups of weights,
bool quantizes_weights(const QuantizationReader& reader);
// and whether one without is no more than plain or sparse weights.
bool leaves_weights_plain(QuantizationReader& reader);

}  // namespace foretoken
