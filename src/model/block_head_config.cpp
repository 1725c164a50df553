#include "model/block_head_config.h"

#include <utility>

#include "model/model.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTaps = 16;

// The fields of dflash_config in front of those at the top.
Result<Json> block_fields(const Json& file, const ConfigFields& fields) {
  const Json* nested = fields.find("dflash_config");
  if (nested == nullptr) return file;
  if (!nested->is_object()) return fields.wrong("dflash_config", "an object");
  Json all = file;
  all.update(*nested);
  return all;
}

// What some heads have otherwise than all that are computed here: they would draft badly.
Status check_plain(const ConfigFields& fields) {
  const std::pair<const char*, Json> plain[] = {{"output_multiplier", 1},
                                                {"use_aux_hidden_state", true},
                                                {"is_neox_style", true},
                                                {"attention_sink_bias", false},
                                                {"add_swa_attention_sink_bias", false},
                                                {"use_swa", false}};
  for (const auto& [name, value] : plain) {
    const Json* found = fields.find(name);
    if (found == nullptr || *found == value) continue;
    return unsupported(fields.where() + ": heads with '" + name + "' " +
                       found->dump().substr(0, 80) + " are not supported; use a head where it is " +
                       value.dump());
  }
  return {};
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
  std::vector<const char*> refused = {"conv_kernel_size", "selector_rank"};
  if (!kind.carries_drafts) refused.push_back("gru_hidden_dim");
  if (!kind.reads_draft_before) refused.push_back("markov_rank");
  for (const char* name : refused) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == 0) continue;
    return unsupported(fields.where() + ": heads with '" + name + "' are not supported by method " +
                       method + "; use a head without it");
  }
  return check_plain(fields);
}

// The taps are the outputs of the layers that target_layer_ids name, or what enters those of
// aux_hidden_state_layer_ids.
Status read_block_taps(const ConfigFields& fields, const ModelConfig& target,
                       std::vector<int32_t>* taps) {
  const char* name = "target_layer_ids";
  int32_t shift = 1;
  for (const char* entered : {"aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids"}) {
    if (fields.find(name) != nullptr || fields.find(entered) == nullptr) continue;
    name = entered;
    shift = 0;
  }
  const Json* ids = fields.find(name);
  if (ids == nullptr) return fields.missing(name);
  if (!ids->is_array() || ids->empty() || ids->size() > kMaxTaps) {
    return fields.wrong(name, "a list of 1 to 16 layer numbers");
  }
  const int32_t last = target.num_layers - shift;
  for (const Json& id : *ids) {
    if (id == last && !target.hyper.exist()) {
      taps->push_back(TapSink::kLastLayer);
      continue;
    }
    const bool valid = id.is_number_integer() && id >= -shift && id < last;
    if (!valid) {
      return invalid_argument(fields.where() + ": '" + name + "' has " + id.dump().substr(0, 80) +
                              ", but of the target's " + std::to_string(target.num_layers) +
                              " layers there is no such one to read; use a head that was trained "
                              "for this target");
    }
    taps->push_back(id.get<int32_t>() + shift);
  }
  return {};
}

// Layers with windows see no position behind their own; without a window the rows of a block see
// one another. Some files say for all layers how it is.
Status read_causality(const ConfigFields& fields, DraftHeadConfig* head) {
  bool is_causal = false, windows_see_all = false;
  const char* name = fields.find("is_causal") != nullptr ? "is_causal" : "causal";
  FT_RETURN_IF_ERROR(fields.read_flag(name, &is_causal));
  FT_RETURN_IF_ERROR(fields.read_flag("sliding_window_non_causal", &windows_see_all));
  const bool given = fields.find(name) != nullptr;
  if (windows_see_all) name = "sliding_window_non_causal";
  for (const LayerConfig& layer : head->layer.layers) {
    if (layer.window > 0 && (windows_see_all || (given && !is_causal))) {
      return unsupported(fields.where() + ": heads with windows whose '" + name + "' is " +
                         fields.find(name)->dump() +
                         " are not supported; use a head without sliding_attention layers");
    }
    head->is_causal.push_back(given ? is_causal : layer.window > 0);
  }
  return {};
}

// Whether the row of the last known token drafts, too: speculators' name for it, vLLM's for its
// contrary, SpecForge's of Domino.
Status read_anchor(const ConfigFields& fields, DraftHeadConfig* head) {
  head->anchor_drafts = head->traits().anchor_drafts;
  FT_RETURN_IF_ERROR(fields.read_flag("sample_from_anchor", &head->anchor_drafts));
  bool drafts_nothing = !head->anchor_drafts;
  FT_RETURN_IF_ERROR(fields.read_flag("dspark_bonus_anchor", &drafts_nothing));
  head->anchor_drafts = !drafts_nothing;
  if (!head->traits().carries_drafts) return {};
  return fields.read_flag("shift_label", &head->anchor_drafts);
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
  head->has_confidence = fields.find("speculators_model_type") != nullptr;
  FT_RETURN_IF_ERROR(fields.read_flag("enable_confidence_head", &head->has_confidence));
  FT_RETURN_IF_ERROR(
      fields.read_flag("confidence_head_with_markov", &head->confidence_reads_markov));
  if (head->markov_rank == 0) {
    return unsupported(fields.where() +
                       ": DSpark heads without 'markov_rank' are not supported; use one with it");
  }
  return {};
}

// The parts that Domino has beyond DFlash.
Status read_gru(const ConfigFields& fields, DraftHeadConfig* head) {
  FT_RETURN_IF_ERROR(fields.need_count("gru_hidden_dim", &head->gru_size));
  FT_RETURN_IF_ERROR(fields.need_count("emb_dim", &head->gru_rank));
  return fields.read_count_or_none("pure_draft_prefix_len", &head->plain_drafts);
}

// What the drafts of a block add to the logits of those behind them.
Status read_chain(const ConfigFields& fields, DraftHeadConfig* head) {
  const HeadTraits& kind = head->traits();
  if (!kind.reads_draft_before && !kind.carries_drafts) return {};
  if (head->layer.logits_softcap > 0) {
    return unsupported(fields.where() + ": heads of method " + kind.method +
                       " with 'final_logit_softcapping' are not supported; use a head without it");
  }
  return kind.carries_drafts ? read_gru(fields, head) : read_markov(fields, head);
}

}  // namespace

Status read_block_fields(const Json& file, const ConfigFields& whole, const ModelConfig& target,
                         DraftHeadConfig* head) {
  FT_ASSIGN_OR_RETURN(const Json all, block_fields(file, whole));
  const ConfigFields fields = whole.of(all);
  FT_RETURN_IF_ERROR(check_relative(fields, head->traits()));
  FT_RETURN_IF_ERROR(read_block_taps(fields, target, &head->tap_layers));
  FT_RETURN_IF_ERROR(read_mask(fields, head));
  FT_RETURN_IF_ERROR(read_causality(fields, head));
  FT_RETURN_IF_ERROR(read_anchor(fields, head));
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
  return read_chain(fields, head);
}

}  // namespace foretoken
