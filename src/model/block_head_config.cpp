#include "model/block_head_config.h"

#include "model/config/config_fields.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTaps = 16;

// The fields of dflash_config in front of those at the top.
Result<Json> block_fields(const Json& file, const std::string& where) {
  const ConfigFields fields(file, where);
  const Json* nested = fields.find("dflash_config");
  if (nested == nullptr) return file;
  if (!nested->is_object()) return fields.wrong("dflash_config", "an object");
  Json all = file;
  all.update(*nested);
  return all;
}

// Relatives of DFlash whose layers or drafts are computed otherwise.
Status check_relative(const ConfigFields& fields, const HeadTraits& kind) {
  const std::string method = kind.method;
  const Json* projector = fields.find("projector_type");
  if (projector != nullptr && *projector != method) {
    return unsupported(fields.where() + ": heads with 'projector_type' " + projector->dump() +
                       " are not supported by method " + method +
                       "; use a head that is made for "
                       "it, or another method");
  }
  std::vector<const char*> refused = {"conv_kernel_size", "selector_rank", "gru_hidden_dim"};
  if (!kind.reads_draft_before) refused.push_back("markov_rank");
  for (const char* name : refused) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == 0) continue;
    return unsupported(fields.where() + ": heads with '" + name + "' are not supported by method " +
                       method + "; use a head without it");
  }
  const Json* multiplier = fields.find("output_multiplier");
  if (multiplier != nullptr && *multiplier != 1) {
    return unsupported(fields.where() + ": heads with 'output_multiplier' " + multiplier->dump() +
                       " are not supported; use a head without it");
  }
  return {};
}

// The taps are the outputs of the layers that target_layer_ids name, or what enters those of
// aux_hidden_state_layer_ids.
Status read_block_taps(const ConfigFields& fields, const ModelConfig& target,
                       std::vector<int32_t>* taps) {
  const char* name = "target_layer_ids";
  int32_t shift = 1;
  if (fields.find(name) == nullptr && fields.find("aux_hidden_state_layer_ids") != nullptr) {
    name = "aux_hidden_state_layer_ids";
    shift = 0;
  }
  const Json* ids = fields.find(name);
  if (ids == nullptr) return fields.missing(name);
  if (!ids->is_array() || ids->empty() || ids->size() > kMaxTaps) {
    return fields.wrong(name, "a list of 1 to 16 layer numbers");
  }
  for (const Json& id : *ids) {
    const bool valid = id.is_number_integer() && id >= -shift && id < target.num_layers - shift;
    if (!valid) {
      return invalid_argument(fields.where() + ": '" + name + "' has " + id.dump().substr(0, 80) +
                              ", but of the target's " + std::to_string(target.num_layers) +
                              " layers a head can read those before the last; use a head that was "
                              "trained for this target");
    }
    taps->push_back(id.get<int32_t>() + shift);
  }
  return {};
}

// Layers with windows see no position behind their own; without a window the rows of a block see
// one another.
Status read_causality(const ConfigFields& fields, DraftHeadConfig* head) {
  bool is_causal = false;
  FT_RETURN_IF_ERROR(fields.read_flag("is_causal", &is_causal));
  const bool given = fields.find("is_causal") != nullptr;
  for (const LayerConfig& layer : head->layer.layers) {
    if (given && !is_causal && layer.window > 0) {
      return unsupported(fields.where() +
                         ": heads with windows whose 'is_causal' is false are not supported; use a "
                         "head without sliding_attention layers");
    }
    head->is_causal.push_back(given ? is_causal : layer.window > 0);
  }
  return {};
}

Status read_mask(const ConfigFields& fields, DraftHeadConfig* head) {
  const Json* id = fields.find("mask_token_id");
  if (id == nullptr) return fields.missing("mask_token_id");
  if (!id->is_number_integer() || *id < 0 || *id >= head->layer.vocab_size) {
    return fields.wrong("mask_token_id",
                        "an id below vocab_size " + std::to_string(head->layer.vocab_size));
  }
  head->mask_id = id->get<int32_t>();
  return {};
}

// The parts that DSpark has beyond DFlash.
Status read_markov(const ConfigFields& fields, DraftHeadConfig* head) {
  FT_RETURN_IF_ERROR(fields.read_count_or_none("markov_rank", &head->markov_rank));
  const Json* type = fields.find("markov_head_type");
  if (head->markov_rank > 0 && type != nullptr && *type != "vanilla") {
    return unsupported(fields.where() + ": 'markov_head_type' " + type->dump() +
                       " is not supported; use a head whose type is \"vanilla\"");
  }
  FT_RETURN_IF_ERROR(fields.read_flag("enable_confidence_head", &head->has_confidence));
  FT_RETURN_IF_ERROR(
      fields.read_flag("confidence_head_with_markov", &head->confidence_reads_markov));
  if (head->markov_rank == 0) {
    return unsupported(fields.where() +
                       ": DSpark heads without 'markov_rank' are not supported; use one with it");
  }
  if (head->draft_vocab_size < head->layer.vocab_size || head->layer.logits_softcap > 0) {
    return unsupported(fields.where() +
                       ": DSpark heads with a 'draft_vocab_size' or 'final_logit_softcapping' of "
                       "their own are not supported; use a head without");
  }
  return {};
}

}  // namespace

Status read_block_fields(const Json& file, const std::string& where, const ModelConfig& target,
                         DraftHeadConfig* head) {
  FT_ASSIGN_OR_RETURN(const Json all, block_fields(file, where));
  const ConfigFields fields(all, where);
  FT_RETURN_IF_ERROR(check_relative(fields, head->traits()));
  FT_RETURN_IF_ERROR(read_block_taps(fields, target, &head->tap_layers));
  FT_RETURN_IF_ERROR(read_mask(fields, head));
  FT_RETURN_IF_ERROR(read_causality(fields, head));
  head->block_size = 16;
  FT_RETURN_IF_ERROR(fields.read_count("block_size", &head->block_size));
  if (head->block_size < 2) return fields.wrong("block_size", "at least 2");
  double scale = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("input_embedding_scale", &scale));
  head->embedding_scale = static_cast<float>(scale);
  double softcap = 0;
  FT_RETURN_IF_ERROR(fields.read_positive("final_logit_softcapping", &softcap));
  head->layer.logits_softcap = static_cast<float>(softcap);
  head->draft_vocab_size = head->layer.vocab_size;
  FT_RETURN_IF_ERROR(fields.read_count("draft_vocab_size", &head->draft_vocab_size));
  if (head->draft_vocab_size > head->layer.vocab_size) {
    return fields.wrong("draft_vocab_size",
                        "at most vocab_size " + std::to_string(head->layer.vocab_size));
  }
  return head->traits().reads_draft_before ? read_markov(fields, head) : Status();
}

}  // namespace foretoken
