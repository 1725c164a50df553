#include "engine/start/resolve_attention.h"

#include <string>

#include "attention/families.h"
#include "attention/flex_choice.h"
#include "base/log.h"
#include "engine/start/start_parts.h"

namespace foretoken {
namespace {

// The backend that is named, or the best one for the parts.
Result<const AttentionBackend*> choose(const EngineConfig& config, const Device& device,
                                       Combination parts) {
  const AttentionChoice choice = read_attention_choice(config.attention_backend);
  std::string name = choice.backend.empty() ? "auto" : choice.backend;
  if (choice.has_expressions() && name == "auto") name = flex_attention().traits().name;
  FT_ASSIGN_OR_RETURN(const AttentionBackend* found, find_attention_backend(name, device));
  if (is_attention_backend(*found, name)) {
    parts.attention = found;
    FT_RETURN_IF_ERROR(compat(parts));
    return found;
  }
  const AttentionBackend* best = &default_attention(*parts.model, device.type(), &device);
  if (config.batch_invariant != "off") return best;
  // One whose bits depend on the batch is faster.
  for (const AttentionBackend* backend : attention_backends()) {
    if (backend->traits().batch_invariant || backend->traits().only_by_name) continue;
    parts.attention = backend;
    if (compat(parts).ok()) return backend;
  }
  return best;
}

}  // namespace

Result<AttentionChoice> resolve_attention(const EngineConfig& config, const Device& device,
                                          const ModelConfig& model) {
  const std::string& wish = config.batch_invariant;
  if (wish != "auto" && wish != "on" && wish != "off") {
    return invalid_argument("--batch-invariant '" + wish + "' is unknown; use auto, on or off");
  }
  FT_ASSIGN_OR_RETURN(const AttentionBackend* backend,
                      choose(config, device, parts_of(config, device, model)));
  const AttentionTraits& traits = backend->traits();
  if (wish == "off" && traits.batch_invariant) {
    FT_LOG(info,
           "--batch-invariant off: all kernels that this build has for the device and the model "
           "are invariant; it stays on");
  }
  AttentionChoice resolved = read_attention_choice(config.attention_backend);
  resolved.backend = traits.name;
  return resolved;
}

Result<bool> wants_whole_prompts(const AttentionChoice& choice) {
  if (!choice.has_expressions()) return false;
  FT_ASSIGN_OR_RETURN(const FlexProgram program, parse_flex(choice.mask, choice.score));
  return program.sees_prompts;
}

}  // namespace foretoken
