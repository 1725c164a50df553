#include "model/decoder_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bfloat16.h"
#include "kernels/comm/collectives.h"
#include "model/files/checkpoint.h"
#include "model/layer/layer_tensors.h"
#include "model/layer/part_loader.h"
#include "model/stack/depth_residuals.h"
#include "model/stack/embedded_rows.h"
#include "model/stack/hyper_streams.h"
#include "model/stack/residual_streams.h"

namespace foretoken {
namespace {

// Numbers that a rank has loaded of a part beyond those of its tensors, as the part says.
double beyond(const auto& part, int32_t hidden, const Sharding& sharding) {
  if constexpr (requires { loaded_beyond(part, hidden, sharding); }) {
    return loaded_beyond(part, hidden, sharding);
  } else {
    return 0;
  }
}

double loaded_beyond_tensors(const LayerSpec& layer, int32_t hidden, const Sharding& sharding) {
  const auto of = [&](const auto& part) { return beyond(part, hidden, sharding); };
  return std::visit(of, layer.mixer) + std::visit(of, layer.feed_forward) +
         (layer.beside ? of(layer.beside->experts) : 0) +
         (layer.shortcut ? of(*layer.shortcut) : 0);
}

// Numbers in the weights of the layers that a stage runs; `sharding`: as a rank has loaded them,
// otherwise as they lie in the file. Most layers are as the one before.
double layer_weights(const ModelConfig& config, const DecoderTraits& traits, const Stages& stages,
                     const Sharding* sharding = nullptr) {
  double sum = 0, one = 0;
  const LayerConfig* before = nullptr;
  for (int32_t i = 0; i < config.num_stored_layers(); ++i) {
    if (!runs_layer(stages, config, i)) continue;
    const LayerConfig& layer = config.layers.at(static_cast<size_t>(i));
    if (before == nullptr || layer != *before) {
      one = 0;
      const LayerSpec spec = traits.layer(config, layer);
      for (const LayerTensor& tensor : layer_tensors(spec, traits.norms, config.hidden_size)) {
        one += tensor.size();
      }
      if (sharding != nullptr) one += loaded_beyond_tensors(spec, config.hidden_size, *sharding);
    }
    before = &layer;
    sum += one;
  }
  return sum;
}

// Its norm before the output matrix, or before layers that run again.
bool has_last_norm(const Stages& stages, const ModelConfig& config) {
  return stages.is_last() || config.norms_loops;
}

NormForm last_form(const DecoderTraits& traits) {
  return traits.last_norm_form.value_or(traits.norms);
}

NormForm embedding_form(const DecoderTraits& traits) {
  return traits.embedding_norm_form.value_or(traits.norms);
}

double norm_weights(int32_t size, const NormForm& norms) {
  if (!norms.weighted) return 0;
  return (norms.bias ? 2.0 : 1.0) * size;
}

double last_norm_weights(const ModelConfig& config, const DecoderTraits& traits) {
  return config.last_norm ? norm_weights(config.hidden_size, last_form(traits)) : 0;
}

double embedding_norm_weights(const ModelConfig& config, const DecoderTraits& traits) {
  if (traits.embedding_norm == nullptr) return 0;
  return norm_weights(config.embedding_width(), embedding_form(traits));
}

// A norm that another stage has is missed here too.
Status expect_norm(WeightLoader& loader, const NormForm& norms, const std::string& name,
                   int64_t hidden) {
  if (norms.weighted) {
    FT_RETURN_IF_ERROR(loader.expect(name + ".weight", {&hidden, 1}));
  }
  return norms.bias ? loader.expect(name + ".bias", {&hidden, 1}) : Status();
}

// The largest where it is larger.
int64_t whole_number(double value) {
  return value < 9e18 ? static_cast<int64_t>(value) : INT64_MAX;
}

double hyper_weights(const ModelConfig& config) {
  return config.hyper.exist() ? HyperStreams::num_weights(config) : 0;
}

// Beginnings of the other parts' tensors, as far as they are known.
constexpr const char* kOtherParts[] = {"vision_tower.", "vision_model.",          "visual.",
                                       "mm_projector.", "multi_modal_projector.", "audio_tower."};
// And of more that models around a text part keep beside its layers.
constexpr const char* kInnerTowers[] = {
    "vision_embed_tokens.", "embed_tokens_extend.", "sam_model.",    "qwen2_model.",
    "projector.",           "vision_resampler.",    "image_newline", "view_seperator"};

bool is_other_place(const DecoderTraits& traits, const DecoderTraits::Place& place) {
  return std::none_of(traits.places.begin(), traits.places.end(), [&](const auto& own) {
    return own.body != nullptr && std::string_view(own.body) == place.body;
  });
}

// A layer that reads the keys and values of another one reads them with that one's scales.
void share_kv_scales(std::vector<DecoderLayer>& layers, size_t index) {
  const auto take = [&](auto& mixer) {
    if constexpr (requires { mixer.take_scales(mixer); }) {
      if (mixer.spec.kv_of < 0) return;
      const Mixer& owner = layers.at(static_cast<size_t>(mixer.spec.kv_of)).mixer;
      std::visit(
          [&](const auto& own) {
            if constexpr (requires { mixer.take_scales(own); }) mixer.take_scales(own);
          },
          owner);
    }
  };
  std::visit(take, layers[index].mixer);
}

}  // namespace

DecoderTraits::Place find_place(const DecoderTraits& traits, const WeightLoader& loader) {
  return find_place(traits, [&](const std::string& name) { return loader.has(name); });
}

// transformers rounds the factor to the model's type.
std::optional<LentKv> lend_kv(const ModelConfig& config, const DecoderPlan& plan,
                              const Stages& stages, std::span<const DecoderLayer> layers,
                              bool windowed) {
  const ShardRange own = stages.layers(config.num_layers);
  for (int32_t layer = config.num_layers - 1; layer >= 0; --layer) {
    const LayerPlan& each = plan.layers[static_cast<size_t>(layer)];
    const bool has_window = config.layers[static_cast<size_t>(layer)].window > 0;
    if (each.num_heads == 0 || has_window != windowed) continue;
    if (layer < own.begin || layer >= own.begin + own.count) return std::nullopt;
    const DecoderLayer& loaded = layers[static_cast<size_t>(layer % config.num_stored_layers())];
    const Gqa* mixer = std::get_if<Gqa>(&loaded.mixer);
    if (mixer == nullptr) return std::nullopt;
    return LentKv{each.windowed_group, each.group_index, each.window, mixer->kv_scales};
  }
  return std::nullopt;
}

float embedding_scale(const ModelConfig& config, const DecoderTraits& traits) {
  if (!traits.scaled_embedding) return config.embedding_scale;
  const float scale = std::sqrt(static_cast<float>(config.hidden_size));
  return config.dtype == DType::kBF16 ? bf16_to_float(bf16_from_float(scale)) : scale;
}

std::vector<AdaptedLinear> adapted_linears(DecoderWeights& weights) {
  std::vector<AdaptedLinear> linears;
  const auto add = [&](auto& part, AdaptedPlace place, bool joins = false) {
    const auto one = [&](Linear& linear) {
      if (linear.weight.get() != nullptr) linears.push_back({&linear, place, joins});
    };
    if constexpr (requires { part.for_each_linear(one); }) part.for_each_linear(one);
  };
  for (DecoderLayer& layer : weights.layers) {
    std::visit([&](auto& mixer) { add(mixer, AdaptedPlace::kMixer); }, layer.mixer);
    if (layer.side) add(*layer.side, AdaptedPlace::kMixer, true);
    std::visit([&](auto& part) { add(part, AdaptedPlace::kFeedForward); }, layer.feed_forward);
  }
  Linear &embedding = weights.adapted_embedding, &head = weights.adapted_head;
  if (embedding.outputs > 0) linears.push_back({&embedding, AdaptedPlace::kEmbedding});
  if (head.outputs > 0) linears.push_back({&head, AdaptedPlace::kHead});
  return linears;
}

// The embedding and the output matrix where adapters of them change another stage.
static std::vector<AdaptedElsewhere> adapted_elsewhere(const DecoderWeights& weights) {
  std::vector<AdaptedElsewhere> ends;
  for (const Linear* end : {&weights.adapted_embedding, &weights.adapted_head}) {
    const auto& parts = end->source.parts;
    if (end->outputs > 0 || parts.empty()) continue;
    ends.push_back({parts[0].name, parts[0].rows, end->source.columns.total,
                    end == &weights.adapted_embedding});
  }
  return ends;
}

LoraPool::Limits adapter_limits(const DecoderWeights& weights, const ModelConfig& config,
                                const AdapterRoom& room) {
  return {.num_slots = room.num_slots,
          .max_rank = room.max_rank,
          .elsewhere = adapted_elsewhere(weights),
          .added_ids = config.added_ids,
          .other_parts = weights.other_parts,
          .is_text_part = config.is_text_part,
          .wholes = {.num_slots = room.has_whole_ends ? room.num_slots : 0,
                     .takes_fewer_ids = config.logits_softcap == 0,
                     .head_has_bias = config.head_bias,
                     .added_ids = config.added_ids}};
}

int64_t num_decoder_weights(const ModelConfig& config, const DecoderTraits& traits) {
  const double matrix = double(config.own_ids()) * config.embedding_width();
  const double outside = (config.tie_word_embeddings ? 1 : 2) * matrix +
                         EmbeddedRows::num_weights(config) + last_norm_weights(config, traits) +
                         embedding_norm_weights(config, traits) +
                         (config.head_bias ? config.own_ids() : 0);
  return whole_number(outside + LayerInputs::num_weights(config) +
                      ResidualStreams::num_weights(config) + hyper_weights(config) +
                      DepthResiduals::num_weights(config) + layer_weights(config, traits, {}));
}

int64_t decoder_weight_bytes(const ModelConfig& config, const DecoderTraits& traits,
                             const Sharding& sharding, const Stages& stages) {
  const double hidden = config.hidden_size;
  const ColumnPart own = column_part(config.vocab_size, sharding.rank, sharding.size);
  double count = layer_weights(config, traits, stages, &sharding) + hyper_weights(config) +
                 DepthResiduals::num_weights(config) + ResidualStreams::num_weights(config);
  if (stages.is_first()) {
    count += double(config.own_ids()) * config.embedding_width() +
             EmbeddedRows::num_weights(config) + LayerInputs::num_weights(config) +
             embedding_norm_weights(config, traits);
  }
  if (stages.is_last()) count += double(own.count) * hidden;
  if (has_last_norm(stages, config)) count += last_norm_weights(config, traits);
  return whole_number(count * static_cast<double>(dtype_size(config.dtype)));
}

bool head_has_embedding(const ModelConfig& config, const Sharding& sharding) {
  return config.tie_word_embeddings && !config.normed_head && config.embedding_rows == 0 &&
         config.embedding_size == 0 && sharding.size == 1;
}

RowTable rows_of_head(const DecoderWeights& weights, const ModelConfig& config,
                      const Sharding& sharding) {
  return head_has_embedding(config, sharding) ? weights.head.rows() : RowTable();
}

bool runs_layer(const Stages& stages, const ModelConfig& config, int32_t stored_layer) {
  for (int32_t layer = stored_layer; layer < config.num_layers;
       layer += config.num_stored_layers()) {
    if (stages.owns(layer, config.num_layers)) return true;
  }
  return false;
}

bool stage_packs(const Stages& stages, const ModelConfig& config, const DecoderTraits& traits,
                 const std::string& name) {
  const std::string_view layers = traits.layers;
  const size_t at = name.find(layers);
  if (at == std::string::npos) return stages.is_last();
  const int32_t first = std::atoi(name.c_str() + at + layers.size()) * traits.layers_each;
  return first < config.num_stored_layers() && runs_layer(stages, config, first);
}

namespace {

// Reads what a stage has of a decoder; what other stages have is only looked for.
struct StageReader {
  Arena& arena;
  const ModelConfig& config;
  const DecoderTraits& traits;
  WeightLoader& loader;
  const Sharding& sharding;
  const Stages& stages;
  DecoderTraits::Place place = find_place(traits, loader);
  std::string body = place.body;
  PartLoader parts{arena, config, norms_of(config, traits), loader, sharding};

  void ignore_others(DecoderWeights* weights);
  Status read_embedding(DecoderWeights* weights);
  Status read_layer(size_t index, DecoderWeights* weights);
  Status read_layers(DecoderWeights* weights);
  Status read_last_norm(DecoderWeights* weights);
  std::vector<TensorPart> head_rows(int64_t first, int64_t end) const;
  Status read_head(DecoderWeights* weights);
  Status expect_head();
  Status end_in_head(DecoderWeights* weights);
  void describe_ends(DecoderWeights* weights) const;
};

void StageReader::ignore_others(DecoderWeights* weights) {
  std::vector<std::string>& others = weights->other_parts;
  others.assign(traits.ignored.begin(), traits.ignored.end());
  const bool is_elsewhere = is_other_place(traits, place);
  for (const std::string part : kOtherParts) {
    if (is_elsewhere) others.insert(others.end(), {part, "model." + part});
    if (config.is_text_part) loader.ignore_all(body + part);
  }
  for (const std::string& other : others) loader.ignore_all(other);
  if (config.is_text_part) {
    loader.ignore_all_but(std::to_array<std::string>({body, place.head}));
    for (const char* tower : kInnerTowers) loader.ignore_all(body + tower);
  }
  // Draft modules in the target's own files; draft_head.h reads them.
  for (int32_t i = 0; i < config.num_mtp_modules; ++i) {
    loader.ignore_all(body + traits.layers + std::to_string(config.num_layers + i) + ".");
  }
}

Status StageReader::read_embedding(DecoderWeights* weights) {
  const std::string name = embedding_name(traits, place);
  const int32_t width = config.embedding_width();
  if (stages.is_first() && stages.is_last() && head_has_embedding(config, sharding)) {
    FT_RETURN_IF_ERROR(read_head(weights));
    weights->embedding = rows_of_head(*weights, config, sharding);
  }
  if (stages.is_first() && !weights->embedding.exists()) {
    FT_ASSIGN_OR_RETURN(LookUpTable table, loader.kept_table(arena, name, config.own_ids(), width,
                                                             config.embedding_rows));
    weights->embedding = table.rows;
    weights->embedding_weight = std::move(table.weight);
  } else if (!stages.is_first()) {
    const int64_t stored[] = {config.embedding_rows > 0 ? config.embedding_rows : config.own_ids(),
                              width};
    FT_RETURN_IF_ERROR(loader.expect(name, stored));
  }
  if (traits.embedding_norm == nullptr) return {};
  const std::string norm = body + traits.embedding_norm;
  if (!stages.is_first()) {
    return expect_norm(loader, embedding_form(traits), norm, width);
  }
  return parts.with(traits.embedding_norm_form).load_norm(norm, width, &weights->embedding_norm);
}

Status StageReader::read_layer(size_t index, DecoderWeights* weights) {
  const size_t number = index / static_cast<size_t>(traits.layers_each);
  const std::string base = body + traits.layers + std::to_string(number) + ".";
  if (!runs_layer(stages, config, static_cast<int32_t>(index))) {
    loader.ignore_all(base);
    return {};
  }
  const LayerConfig& layer = config.layers[index];
  // What is no part of the decoder may lie under a number of its own.
  if (!layer.attention && !layer.feed_forward) loader.ignore_all(base);
  FT_RETURN_IF_ERROR(load_layer(parts, base, traits.layer(config, layer), &weights->layers[index]));
  share_kv_scales(weights->layers, index);
  weights->layers[index].input.index = static_cast<int32_t>(index);
  return {};
}

Status StageReader::read_layers(DecoderWeights* weights) {
  weights->layers.resize(static_cast<size_t>(config.num_stored_layers()));
  loader.enter_layers(traits.transposed && !config.plain_matrices);
  for (size_t i = 0; i < weights->layers.size(); ++i) {
    FT_RETURN_IF_ERROR(read_layer(i, weights));
  }
  loader.leave_layers();
  return {};
}

Status StageReader::read_last_norm(DecoderWeights* weights) {
  if (!config.last_norm) return {};
  const std::string name = body + traits.last_norm;
  if (!has_last_norm(stages, config)) {
    return expect_norm(loader, last_form(traits), name, config.hidden_size);
  }
  return parts.with(traits.last_norm_form)
      .load_norm(name, config.hidden_size, &weights->final_norm);
}

// Of ids [first, end) of a vocabulary. The rows of those that adapters add are copies of the first
// ones, whose logits a bias takes away.
std::vector<TensorPart> StageReader::head_rows(int64_t first, int64_t end) const {
  const std::string name = output_matrix_name(config, traits, place);
  const int64_t own = config.own_ids();
  std::vector<TensorPart> rows;
  if (first < own || end <= own) rows.push_back({name, own, first, std::min(end, own) - first});
  if (end > own) {
    const int64_t added = std::max(first, own);
    rows.push_back({name, own, added - own, end - added});
  }
  for (TensorPart& part : rows) {
    part.unit_rows = config.normed_head;
    // Nothing reads the head of such models, whose own is as narrow.
    if (config.embedding_size > 0) {
      part.padded = {config.embedding_size, config.hidden_size, true};
    }
  }
  return rows;
}

Status StageReader::read_head(DecoderWeights* weights) {
  const ColumnPart own = column_part(config.vocab_size, sharding.rank, sharding.size);
  FT_ASSIGN_OR_RETURN(weights->head, loader.matrix(head_rows(own.begin, own.begin + own.count),
                                                   config.hidden_size));
  if (config.added_ids > 0) {
    std::vector<float> bias(static_cast<size_t>(own.count));
    const int32_t known = std::clamp(config.own_ids() - own.begin, 0, own.count);
    std::fill(bias.begin() + known, bias.end(), -std::numeric_limits<float>::infinity());
    return parts.upload(bias, "what the ids of adapters are told apart by", &weights->head_bias);
  }
  if (!config.head_bias) return {};
  return parts.load_vector({{bias_name(place), config.vocab_size, own.begin, own.count}},
                           &weights->head_bias);
}

Status StageReader::expect_head() {
  const int64_t table[] = {config.own_ids(), config.embedding_width()};
  FT_RETURN_IF_ERROR(loader.expect(output_matrix_name(config, traits, place), table));
  return config.head_bias ? loader.expect(bias_name(place), {&table[0], 1}) : Status();
}

// One that lends its rows to the embedding was read with that.
Status StageReader::end_in_head(DecoderWeights* weights) {
  if (!stages.is_last()) return expect_head();
  return weights->head.get() == nullptr ? read_head(weights) : Status();
}

// An output matrix that is divided by its rows' lengths is no linear layer to those who train.
void StageReader::describe_ends(DecoderWeights* weights) const {
  const int32_t hidden = config.hidden_size, vocab = config.vocab_size;
  if (config.embedding_size > 0) return;
  const auto without_ending = [](const std::string& name) {
    return name.substr(0, name.rfind(".weight"));
  };
  Linear& embedding = weights->adapted_embedding;
  TensorPart table{without_ending(embedding_name(traits, place)), hidden};
  table.padded.scale = embedding_scale(config, traits);
  const int32_t rows = config.embedding_rows > 0 ? config.embedding_rows : config.own_ids();
  embedding.source = {{table}, {rows + config.added_ids, 0, vocab}};
  embedding.outputs = stages.is_first() ? hidden : 0;
  embedding.inputs = 1;
  if (config.normed_head) return;
  const ColumnPart own = column_part(vocab, sharding.rank, sharding.size);
  Linear& head = weights->adapted_head;
  head.source = {{{without_ending(place.head), vocab, own.begin, own.count}}, {hidden, 0, hidden}};
  head.outputs = stages.is_last() ? own.count : 0;
  head.inputs = hidden;
}

}  // namespace

Result<DecoderWeights> load_decoder_weights(Arena& arena, const ModelConfig& config,
                                            const DecoderTraits& traits, WeightLoader& loader,
                                            const Sharding& sharding, const Stages& stages) {
  StageReader reader{arena, config, traits, loader, sharding, stages};
  DecoderWeights weights;
  reader.ignore_others(&weights);
  WeightLoader::Guard guard(loader);
  FT_RETURN_IF_ERROR(reader.read_embedding(&weights));
  FT_RETURN_IF_ERROR(reader.read_layers(&weights));
  FT_RETURN_IF_ERROR(reader.read_last_norm(&weights));
  FT_RETURN_IF_ERROR(reader.end_in_head(&weights));
  if (config.tie_word_embeddings) loader.ignore(reader.place.head);
  reader.describe_ends(&weights);
  FT_RETURN_IF_ERROR(guard.finish());
  return weights;
}

Result<RowTable> load_embedding(Device& device, Arena& arena, const ModelFiles* files,
                                const ModelConfig& config, const DecoderTraits& traits) {
  std::optional<Checkpoint> checkpoint;
  if (files != nullptr) {
    FT_ASSIGN_OR_RETURN(checkpoint, Checkpoint::open(*files));
  }
  const int64_t bytes = int64_t{config.own_ids()} * config.hidden_size *
                        static_cast<int64_t>(dtype_size(config.dtype));
  FT_ASSIGN_OR_RETURN(const auto loader,
                      WeightLoader::create(device, checkpoint ? &*checkpoint : nullptr,
                                           config.dtype, bytes, {}, nullptr));
  const std::string name = embedding_name(traits, find_place(traits, *loader));
  WeightLoader::Guard guard(*loader);
  FT_ASSIGN_OR_RETURN(
      const RowTable table,
      loader->table(arena, name, config.own_ids(), config.hidden_size, config.embedding_rows));
  FT_RETURN_IF_ERROR(guard.finish());
  return table;
}

}  // namespace foretoken
