#pragma once
#include "attention/backend.h"

// The rows of the registry. A backend that needs what few devices have is a row of its own, never a
// case inside another.
namespace foretoken {

const AttentionBackend& flash_attention();
const AttentionBackend& portable_attention();
const AttentionBackend& flashinfer_attention();
const AttentionBackend& flex_attention();

// Of models with latent attention (DeepSeek's).
const AttentionBackend& flash_latent_attention();
const AttentionBackend& portable_latent_attention();
const AttentionBackend& flashmla_attention();
const AttentionBackend& flashinfer_latent_attention();
const AttentionBackend& cutlass_latent_attention();

}  // namespace foretoken
