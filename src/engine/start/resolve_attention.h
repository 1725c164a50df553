#pragma once
#include <foretoken/config.h>

#include "attention/flex_choice.h"
#include "base/result.h"
#include "device/device.h"
#include "model/config/config.h"

namespace foretoken {

// The attention backend that a configuration gets, by its name, and what it was asked for beside:
// whether batches leave the bits alone says its trait. `auto` chooses a backend that is not
// invariant only where batch_invariant is off; a backend asked for by name decides where that is
// auto. max_model_len is resolved. InvalidArgument or Unsupported names what contradicts and the
// remedy.
Result<AttentionChoice> resolve_attention(const EngineConfig& config, const Device& device,
                                          const ModelConfig& model);

// Whether rows of a prompt see later ones by the choice's mask (FlexProgram::sees_prompts), so that
// each prompt is computed in one step. InvalidArgument for expressions that are none.
Result<bool> wants_whole_prompts(const AttentionChoice& choice);

}  // namespace foretoken
