#include "model/draft_head_weights.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/config/architecture.h"
#include "model/decoder_weights.h"
#include "model/draft_head_spec.h"
#include "model/layer/part_loader.h"
#include "model/output_rows.h"
#include "model/stack/layer_runner.h"

namespace foretoken {
namespace {

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - std::string_view(".weight").size());
}

// What may stand before names of layers and modules.
constexpr std::string_view kBodies[] = {"", "model.", "model.language_model."};

// Loads one head.
class HeadLoader {
 public:
  HeadLoader(Arena& arena, const DraftHeadSource& source, WeightLoader& loader)
      : arena_(arena),
        source_(source),
        config_(source.config),
        layer_(config_.layer),
        loader_(loader),
        outputs_(source.device, arena, loader, source.options, source.target),
        traits_(config_.traits()),
        decoder_(find_architecture(layer_.architecture)->decoder) {}

  Result<DraftHeadWeights> load();

 private:
  Status load_module(int32_t module, DraftModuleWeights* out);
  Status load_paired_norms(const std::string& base, DraftModuleWeights* out);
  Status load_output(DraftModuleWeights* out);
  Status load_tap_norms(DraftModuleWeights* out);
  Status load_mtp(int32_t module, DraftModuleWeights* out);
  Status load_apart(const std::string& base, DraftModuleWeights* out);
  Status load_block_layer(int32_t layer, DraftModuleWeights* out);
  Status load_markov(DraftModuleWeights* out);
  Status load_gru(DraftModuleWeights* out);
  Status load_added(const std::string& name, DraftModuleWeights* out);
  Status load_fc(const std::string& name, int32_t inputs, Linear* out);
  Status load_mask_taps(DraftModuleWeights* out);
  Status load_own_layer(const std::string& base, const HeadLayerPlace& place, DecoderLayer* out);
  Status load_deeper_layers(DraftModuleWeights* out);
  Status load_embedding(const std::string& name, DraftModuleWeights* out);
  Status load_head(const std::string& name, int32_t rows, DraftModuleWeights* out);
  Status load_own_rows(const std::string& name, int32_t rows, DraftModuleWeights* out);
  Status share_head(DraftModuleWeights* out);
  Result<std::vector<int32_t>> target_ids(int32_t rows);
  Status ignore_other_tensors();
  int32_t fc_inputs() const;
  std::string first_layer_base() const;
  std::string layer_base(std::initializer_list<std::string> names) const;
  std::string named(const std::string& name) const;
  // The same without ".weight".
  std::string own_name(const std::string& name) const {
    return without_weight(named(name + ".weight"));
  }
  // `name` without ".weight".
  Status load_norm(const std::string& name, Norm* out) {
    return PartLoader(arena_, layer_, decoder_.norms, loader_)
        .load_norm(name, layer_.hidden_size, out);
  }

  Arena& arena_;
  const DraftHeadSource& source_;
  const DraftHeadConfig& config_;
  const ModelConfig& layer_;
  WeightLoader& loader_;
  OutputRowsLoader outputs_;
  const HeadTraits& traits_;
  const DecoderTraits& decoder_;
  DraftHeadWeights weights_;
  DraftHead::Head shared_rows_;     // of the target's output matrix, once it is asked for
  std::vector<int32_t> kept_rows_;  // as of OutputRows, of the matrix that was loaded last
};

// The name as the files have it; SpecForge's first heads had a part of their own for what drafts
// add to logits.
std::string HeadLoader::named(const std::string& name) const {
  for (const char* prefix : {"model.", "logit_head."}) {
    if (!loader_.has(name) && loader_.has(prefix + name)) return prefix + name;
  }
  return name;
}

// Beginning of the names of a layer, which is published under one of these, behind one of kBodies.
std::string HeadLoader::layer_base(std::initializer_list<std::string> names) const {
  for (const std::string& name : names) {
    for (const std::string_view body : kBodies) {
      const std::string base = std::string(body) + name;
      if (source_.checkpoint == nullptr) return base;
      const auto at = source_.checkpoint->tensors().lower_bound(base);
      if (at != source_.checkpoint->tensors().end() && at->first.starts_with(base)) return base;
    }
  }
  return "model." + *names.begin();
}

Result<DraftHeadWeights> HeadLoader::load() {
  WeightLoader::Guard guard(loader_);
  weights_.modules.resize(static_cast<size_t>(config_.num_modules));
  for (int32_t i = 0; i < config_.num_modules; ++i) {
    FT_RETURN_IF_ERROR(load_module(i, &weights_.modules[static_cast<size_t>(i)]));
  }
  FT_RETURN_IF_ERROR(ignore_other_tensors());
  FT_RETURN_IF_ERROR(guard.finish());
  return std::move(weights_);
}

// Modules of the target's files and layers of a block are one each; a head of its own is one
// module.
Status HeadLoader::load_module(int32_t module, DraftModuleWeights* out) {
  if (traits_.of_target) return load_mtp(module, out);
  if (traits_.drafts_blocks()) return load_block_layer(module, out);
  FT_RETURN_IF_ERROR(load_fc("fc", fc_inputs(), &out->fc));
  if (traits_.pairs_taps()) FT_RETURN_IF_ERROR(load_tap_norms(out));
  if (traits_.learns_masks) FT_RETURN_IF_ERROR(load_mask_taps(out));
  const std::string base = first_layer_base();
  FT_RETURN_IF_ERROR(load_own_layer(base, {}, &out->layer));
  FT_RETURN_IF_ERROR(load_deeper_layers(out));
  if (traits_.pairs_taps()) FT_RETURN_IF_ERROR(load_paired_norms(base, out));
  FT_RETURN_IF_ERROR(load_embedding(named("embed_tokens.weight"), out));
  return load_output(out);
}

// What fc reads of a row.
int32_t HeadLoader::fc_inputs() const {
  if (!traits_.reads_taps()) return 2 * layer_.hidden_size;
  return static_cast<int32_t>(config_.tap_layers.size()) * source_.target.config().hidden_size;
}

std::string HeadLoader::first_layer_base() const {
  if (traits_.first_layer == nullptr) return layer_base({"layers.0."});
  return layer_base({traits_.first_layer, "layers.0."});
}

// The norms of what is paired: the layer's input norm is that of the embedding alone.
Status HeadLoader::load_paired_norms(const std::string& base, DraftModuleWeights* out) {
  out->embed_norm = out->layer.mixer_norm;
  FT_RETURN_IF_ERROR(load_norm(base + "hidden_norm", &out->state_norm));
  return load_norm(without_weight(named("norm.weight")), &out->output_norm);
}

// The head's own output matrix, or the target's.
Status HeadLoader::load_output(DraftModuleWeights* out) {
  if (traits_.reads_taps()) {
    // What speculators' heads were trained with, of the target.
    for (const char* name : {"t2d", "verifier_norm.weight", "verifier_lm_head.weight"}) {
      loader_.ignore(named(name));
    }
  }
  const int32_t rows = traits_.reads_taps() ? config_.draft_vocab_size : layer_.vocab_size;
  return load_head(named("lm_head.weight"), rows, out);
}

// EAGLE-3.1's norms before fc.
Status HeadLoader::load_tap_norms(DraftModuleWeights* out) {
  const auto num_taps = static_cast<int32_t>(config_.tap_layers.size());
  const int32_t hidden = source_.target.config().hidden_size;
  PartLoader loader(arena_, layer_, decoder_.norms, loader_);
  const auto load_as = [&](const std::string& name, int32_t size, Norm* norm) {
    return loader.load_norm(without_weight(named(name + ".weight")), size, norm);
  };
  if (config_.norm_before_fc) {
    return load_as("input_norm", num_taps * hidden, &out->all_taps_norm);
  }
  if (!config_.fc_norm) return {};
  out->tap_norms.resize(static_cast<size_t>(num_taps));
  for (int32_t tap = 0; tap < num_taps; ++tap) {
    Norm& norm = out->tap_norms[static_cast<size_t>(tap)];
    FT_RETURN_IF_ERROR(load_as("fc_norm." + std::to_string(tap), hidden, &norm));
  }
  return {};
}

// What rows of masks have in place of the target's states.
Status HeadLoader::load_mask_taps(DraftModuleWeights* out) {
  const int32_t size = fc_inputs();
  const std::string name = named("mask_hidden");
  std::vector<float> taps(static_cast<size_t>(size), 1);
  if (source_.checkpoint != nullptr) {
    if (!loader_.has(name)) {
      return not_found("tensor '" + name +
                       "' is missing in the draft head, so that it was not "
                       "trained for parallel drafts; use method eagle3, or a P-EAGLE head");
    }
    FT_ASSIGN_OR_RETURN(taps, loader_.numbers(name));
    if (taps.size() != static_cast<size_t>(size)) {
      return invalid_argument(
          "tensor '" + name + "' of the draft head has " + std::to_string(taps.size()) +
          " numbers, but with this target there "
          "must be " +
          std::to_string(size) + "; use a head that was trained for this target");
    }
  }
  FT_ASSIGN_OR_RETURN(void* memory, loader_.upload(arena_, taps.data(), taps.size() * sizeof(float),
                                                   "the state of masks"));
  out->mask_taps = static_cast<const float*>(memory);
  return {};
}

Status HeadLoader::load_mtp(int32_t module, DraftModuleWeights* out) {
  const std::string number = std::to_string(config_.first_layer + module);
  const MtpForm& form = config_.mtp;
  const std::string base =
      layer_base({form.unnumbered ? std::string(form.layers) : form.layers + number + "."});
  const auto before = [&](const std::string& name) {
    if (form.all_together) return own_name(form.together + name);
    return form.numbered_apart ? own_name(name + "." + number) : base + name;
  };
  const auto behind = [&](const std::string& name) {
    return form.together != nullptr ? own_name(form.together + name) : base + name;
  };
  const int32_t hidden = layer_.hidden_size;
  if (form.embed_projection != nullptr) {
    FT_RETURN_IF_ERROR(load_apart(base, out));
  } else {
    FT_RETURN_IF_ERROR(load_fc(before(form.projection), 2 * hidden, &out->fc));
  }
  FT_RETURN_IF_ERROR(load_norm(before(form.embed_norm), &out->embed_norm));
  FT_RETURN_IF_ERROR(load_norm(before(form.state_norm), &out->state_norm));
  FT_RETURN_IF_ERROR(load_own_layer(base, {.module = module}, &out->layer));
  FT_RETURN_IF_ERROR(load_norm(behind(form.output_norm), &out->output_norm));
  const bool is_targets = form.together != nullptr && *form.together == 0;
  const std::string embedding = is_targets ? base + "embed_tokens" : behind("embed_tokens");
  FT_RETURN_IF_ERROR(load_embedding(embedding + ".weight", out));
  return load_head(base + form.head + ".weight", layer_.vocab_size, out);
}

// Projections of the embedding and of each stream, and what the streams end in. GGUF files have
// [embedding | stream] as one matrix, and need not have an end beside the target's.
Status HeadLoader::load_apart(const std::string& base, DraftModuleWeights* out) {
  const MtpForm& form = config_.mtp;
  const int32_t hidden = layer_.hidden_size;
  const std::string joined = base + "eh_proj";
  PartLoader parts(arena_, layer_, decoder_.norms, loader_);
  if (loader_.has_optional(joined + ".weight")) {
    const std::vector<TensorPart> both = {{joined, hidden}};
    const int64_t total = 2 * int64_t{hidden};
    FT_RETURN_IF_ERROR(parts.load_columns(both, {total, 0, hidden}, &out->embed_fc));
    FT_RETURN_IF_ERROR(parts.load_columns(both, {total, hidden, hidden}, &out->fc));
  } else {
    FT_RETURN_IF_ERROR(load_fc(base + form.projection, hidden, &out->fc));
    FT_RETURN_IF_ERROR(load_fc(base + form.embed_projection, hidden, &out->embed_fc));
  }
  return out->streams.load(parts, loader_.has(base + "hc_head_fn") ? base : "");
}

// The first of its modules has what stands before and behind the layers, too.
Status HeadLoader::load_block_layer(int32_t layer, DraftModuleWeights* out) {
  const std::string number = "layers." + std::to_string(layer) + ".";
  FT_RETURN_IF_ERROR(load_own_layer(layer_base({number}), {.module = layer}, &out->layer));
  if (layer > 0) return {};
  FT_RETURN_IF_ERROR(load_fc("fc", fc_inputs(), &out->fc));
  FT_RETURN_IF_ERROR(load_norm(without_weight(named("hidden_norm.weight")), &out->state_norm));
  FT_RETURN_IF_ERROR(load_norm(without_weight(named("norm.weight")), &out->output_norm));
  FT_RETURN_IF_ERROR(load_embedding(named("embed_tokens.weight"), out));
  FT_RETURN_IF_ERROR(load_output(out));
  FT_RETURN_IF_ERROR(load_markov(out));
  return load_gru(out);
}

// Its rows are those of the output matrix.
Status HeadLoader::load_added(const std::string& name, DraftModuleWeights* out) {
  const int32_t rows = config_.draft_vocab_size, rank = config_.added_rank();
  if (kept_rows_.empty()) {
    return PartLoader(arena_, layer_, decoder_.norms, loader_)
        .load_linear({{without_weight(name), rows}}, rank, false, &out->added);
  }
  out->added.outputs = static_cast<int32_t>(kept_rows_.size());
  out->added.inputs = rank;
  FT_ASSIGN_OR_RETURN(out->added.weight, loader_.matrix_rows({name, rows}, rank, kept_rows_));
  return {};
}

// What DSpark's logits and confidence depend on beside the rows.
Status HeadLoader::load_markov(DraftModuleWeights* out) {
  PartLoader loader(arena_, layer_, decoder_.norms, loader_);
  if (config_.markov_rank > 0) {
    FT_ASSIGN_OR_RETURN(out->markov_embedding,
                        loader_.table(arena_, named("markov_head.markov_w1.weight"),
                                      layer_.vocab_size, config_.markov_rank));
    FT_RETURN_IF_ERROR(load_added(named("markov_head.markov_w2.weight"), out));
  }
  if (!config_.has_confidence) return {};
  const int32_t read = config_.confidence_reads_markov ? config_.markov_rank : 0;
  return loader.load_linear({{without_weight(named("confidence_head.proj.weight")), 1}},
                            layer_.hidden_size + read, true, &out->confidence);
}

// What Domino's logits depend on beside the rows.
Status HeadLoader::load_gru(DraftModuleWeights* out) {
  if (config_.gru_size == 0) return {};
  const int32_t hidden = layer_.hidden_size, size = config_.gru_size;
  const auto load_gates = [&](const std::string& name, int32_t inputs, Linear* gates) -> Status {
    const TensorPart part[] = {{named(name), 3 * int64_t{size}}};
    FT_ASSIGN_OR_RETURN(gates->weight, loader_.matrix(part, inputs));
    gates->outputs = 3 * size;
    gates->inputs = inputs;
    return {};
  };
  FT_RETURN_IF_ERROR(load_gates("prefix_gru.weight_ih_l0", hidden, &out->gru_input));
  FT_RETURN_IF_ERROR(load_gates("prefix_gru.weight_hh_l0", size, &out->gru_state));
  FT_RETURN_IF_ERROR(PartLoader(arena_, layer_, decoder_.norms, loader_)
                         .load_linear({{own_name("embed_proj.0"), config_.gru_rank}}, hidden + size,
                                      false, &out->gru_features));
  return load_added(named("embed_proj.2.weight"), out);
}

Status HeadLoader::load_fc(const std::string& name, int32_t inputs, Linear* out) {
  const std::string full = without_weight(named(name + ".weight"));
  if (loader_.has_optional(full + ".weight")) {
    FT_ASSIGN_OR_RETURN(const TensorView* tensor, source_.checkpoint->find(full + ".weight"));
    if (tensor->shape.size() == 2 && tensor->shape[1] != inputs) {
      return invalid_argument(tensor->file + ": '" + tensor->name + "' reads " +
                              std::to_string(tensor->shape[1]) + " numbers, but with this target " +
                              "it gets " + std::to_string(inputs) +
                              "; use a head that was trained for this target");
    }
  }
  return PartLoader(arena_, layer_, decoder_.norms, loader_)
      .load_linear({{full, layer_.hidden_size}}, inputs, loader_.has_optional(full + ".bias"), out);
}

Status HeadLoader::load_own_layer(const std::string& base, const HeadLayerPlace& place,
                                  DecoderLayer* out) {
  LayerSpec layer = head_layer_spec(config_, decoder_, place);
  if (!traits_.of_target) {
    // Heads for Qwen targets have these without a field that says so.
    auto& attention = std::get<GqaSpec>(layer.mixer);
    if (loader_.has_optional(base + "self_attn.q_proj.bias")) attention.qkv_bias = true;
    if (loader_.has_optional(base + "self_attn.q_norm.weight")) attention.qk_norm = QkNorm::kHead;
  }
  PartLoader parts(arena_, layer_, decoder_.norms, loader_, source_.options.sharding);
  loader_.enter_layers(false);
  const Status status = load_layer(parts, base, layer, out);
  loader_.leave_layers();
  return status;
}

// Those behind the first, which are plain ones. vLLM's have a norm of states that nothing reads.
Status HeadLoader::load_deeper_layers(DraftModuleWeights* out) {
  out->deeper.resize(static_cast<size_t>(config_.num_layers - 1));
  for (int32_t depth = 1; depth < config_.num_layers; ++depth) {
    const std::string base = layer_base({"layers." + std::to_string(depth) + "."});
    FT_RETURN_IF_ERROR(
        load_own_layer(base, {.depth = depth}, &out->deeper[static_cast<size_t>(depth - 1)]));
    loader_.ignore(base + "hidden_norm.weight");
  }
  return {};
}

Status HeadLoader::load_embedding(const std::string& name, DraftModuleWeights* out) {
  const ModelConfig& target = source_.target.config();
  if (loader_.has_optional(name) ||
      (source_.checkpoint == nullptr && layer_.hidden_size != target.hidden_size)) {
    FT_ASSIGN_OR_RETURN(out->embedding,
                        loader_.table(arena_, name, layer_.vocab_size, layer_.hidden_size));
    return {};
  }
  if (layer_.hidden_size != target.hidden_size) {
    return not_found("tensor '" + name + "' is missing in the draft head, whose hidden_size " +
                     std::to_string(layer_.hidden_size) + " is not the target's " +
                     std::to_string(target.hidden_size) +
                     ", so that it cannot share the target's; use a head that has its own");
  }
  FT_ASSIGN_OR_RETURN(out->embedding, source_.target.shared_embedding());
  return {};
}

Status HeadLoader::load_head(const std::string& name, int32_t rows, DraftModuleWeights* out) {
  const bool reduced = traits_.reads_taps() && rows != layer_.vocab_size;
  const bool other_size = layer_.hidden_size != source_.target.config().hidden_size;
  if (reduced || other_size || loader_.has_optional(name)) return load_own_rows(name, rows, out);
  return share_head(out);
}

Status HeadLoader::load_own_rows(const std::string& name, int32_t rows, DraftModuleWeights* out) {
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, target_ids(rows));
  FT_ASSIGN_OR_RETURN(OutputRows own, outputs_.own(name, rows, layer_.hidden_size, ids));
  out->own_head = std::move(own.weight);
  out->head = own.head;
  kept_rows_ = std::move(own.rows);
  return {};
}

// The target id of each row of the head's own output matrix; empty: rows are target ids.
Result<std::vector<int32_t>> HeadLoader::target_ids(int32_t rows) {
  std::vector<int32_t> ids;
  if (!traits_.reads_taps()) return ids;
  const std::string name = named("d2t");
  const int64_t vocab = layer_.vocab_size;
  if (source_.checkpoint == nullptr) {
    for (int64_t row = 0; row < rows && rows < vocab; ++row) {
      ids.push_back(static_cast<int32_t>(row * vocab / rows));
    }
    return ids;
  }
  if (rows == vocab && !loader_.has(name)) return ids;
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, loader_.integers(name, rows));
  std::vector<bool> taken(static_cast<size_t>(vocab), false);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t offset = offsets[static_cast<size_t>(row)];
    const bool valid = offset >= -row && offset < vocab - row;
    if (!valid || taken[static_cast<size_t>(row + offset)]) {
      return invalid_argument(
          "tensor '" + name + "' of the draft head maps draft id " + std::to_string(row) + " by " +
          std::to_string(offset) +
          (valid ? " to a target id that another draft id has already"
                 : " to outside the target's vocabulary of " + std::to_string(vocab)) +
          "; use a head that was trained for this target");
    }
    taken[static_cast<size_t>(row + offset)] = true;
    ids.push_back(static_cast<int32_t>(row + offset));
  }
  return ids;
}

// Modules have it together.
Status HeadLoader::share_head(DraftModuleWeights* out) {
  if (shared_rows_.weight == nullptr) {
    FT_ASSIGN_OR_RETURN(OutputRows shared, outputs_.shared());
    weights_.shared_head = std::move(shared.weight);
    shared_rows_ = shared.head;
    kept_rows_ = std::move(shared.rows);
  }
  out->head = shared_rows_;
  return {};
}

// MTP modules may lie in the target's own files, where only layers beyond its last are theirs; of
// those only the wanted ones are loaded.
Status HeadLoader::ignore_other_tensors() {
  if (!traits_.of_target || source_.checkpoint == nullptr) return {};
  const std::string_view layers = config_.mtp.layers;
  for (const auto& [name, tensor] : source_.checkpoint->tensors()) {
    size_t begin = 0;
    for (const std::string_view body : kBodies) {
      if (name.starts_with(body)) begin = body.size();
    }
    const bool is_layer = name.compare(begin, layers.size(), layers) == 0;
    const int layer = is_layer ? std::atoi(name.c_str() + begin + layers.size()) : -1;
    const int module = is_layer ? layer - config_.first_layer : -1;
    const bool unwanted = module >= config_.num_modules && module < layer_.num_mtp_modules;
    const bool unread =
        config_.mtp.unread != nullptr && name.find(config_.mtp.unread, begin) != std::string::npos;
    if (module < 0 || unwanted || unread) loader_.ignore(name);
  }
  return {};
}

}  // namespace

Result<LoadedDraftHead> load_draft_head_folder(Arena& arena, const std::string& folder,
                                               DraftHeadSource source) {
  std::optional<Checkpoint> checkpoint;
  if (!source.options.dummy) {
    FT_ASSIGN_OR_RETURN(checkpoint, Checkpoint::open(folder));
    if (source.config.reads_final_state()) {
      checkpoint->add_identity("fc.weight", source.config.layer.hidden_size);
    }
  }
  source.checkpoint = checkpoint ? &*checkpoint : nullptr;
  const ModelConfig& layer = source.config.layer;
  const ModelConfig& target = source.target.config();
  FT_ASSIGN_OR_RETURN(
      const auto loader,
      WeightLoader::create(source.device, source.checkpoint, layer.dtype,
                           draft_head_weight_bytes(source.config, target), {}, nullptr));
  const int32_t max_len =
      source.options.max_model_len > 0 ? source.options.max_model_len : target.max_context;
  loader->round_layers(source.options.rounding);
  WeightLoader::Guard guard(*loader);
  LoadedDraftHead loaded;
  const bool windowed = source.config.mtp.windowed && layer.rope.windowed;
  FT_ASSIGN_OR_RETURN(loaded.rope, upload_rope(windowed ? *layer.rope.windowed : layer.rope.full,
                                               max_len, arena, *loader));
  FT_ASSIGN_OR_RETURN(loaded.weights, HeadLoader(arena, source, *loader).load());
  FT_RETURN_IF_ERROR(guard.finish());
  loaded.weight_bytes = loader->bytes_loaded();
  FT_RETURN_IF_ERROR(loader->check_all_used("the draft head"));
  return loaded;
}

}  // namespace foretoken
