#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kernels/experts/expert_gemm.h"
#include "model/layer/feed_forward/experts.h"

// The weights of a mixture: whose experts are read from which tensors.

namespace foretoken {
namespace {

// The rows of a rank's experts in the order in which they are packed, and their columns.
struct ExpertParts {
  std::vector<TensorPart> rows;
  ColumnRange columns;
};

// What is known about a mixture's tensors while it is loaded.
struct ExpertSource {
  std::string base;  // before their names
  ExpertsSpec whole;
  ExpertFiles files;
  bool one_gate_tensor = false;  // gates and ups of kFused are tensors of their own
  bool ends_in_weight = false;   // the name of the fused `down` does
  int64_t hidden;
  ShardRange own;      // of the inner columns
  ShardRange experts;  // that are loaded

  template <class Use>
  void for_each_expert(const Use& use) const {
    for (int64_t e = experts.begin; e < experts.begin + experts.count; ++e) {
      use(static_cast<int32_t>(e));
    }
  }
};

std::string tensor_of(const ExpertSource& from, int32_t expert, const char* name,
                      const char* kind = ".weight") {
  return from.base + std::to_string(expert) + "." + name + kind;
}

// Gates, or ups, of an expert in a tensor [experts, 2 * inner, hidden] or its transpose.
TensorPart fused_part(const ExpertSource& from, int32_t expert, bool is_up) {
  const int64_t inner = from.whole.inner, count = from.whole.count;
  const int64_t first = from.own.begin + (is_up ? inner : 0);
  TensorPart part{from.base + from.whole.gate_up, 0};
  part.stacked = count;
  if (from.whole.alternates) part.alternating = 2 * inner;
  if (from.files == ExpertFiles::kFused) {
    part.rows = count * 2 * inner;
    part.first_row = expert * 2 * inner + first;
    part.num_rows = from.own.count;
  } else {
    part.rows = count * from.hidden;
    part.first_row = expert * from.hidden;
    part.num_rows = from.hidden;
    part.transposed = {2 * inner, first, from.own.count};
    part.columns_are_outputs = true;
  }
  return part;
}

// The same where a tensor [experts, inner, hidden] has the gates of all, and another the ups.
TensorPart stacked_part(const ExpertSource& from, int32_t expert, bool is_up) {
  const int64_t inner = from.whole.inner;
  TensorPart part{from.base + (is_up ? from.whole.up : from.whole.gate) + ".weight",
                  from.whole.count * inner, expert * inner + from.own.begin, from.own.count};
  part.stacked = from.whole.count;
  return part;
}

// The same where a matrix has the gates of all below each other, and another the ups.
TensorPart below_part(const ExpertSource& from, int32_t expert, bool is_up) {
  const int64_t inner = from.whole.inner;
  return {from.base + (is_up ? from.whole.up : from.whole.gate), from.whole.count * inner,
          expert * inner + from.own.begin, from.own.count};
}

// All gates, then all ups.
ExpertParts expert_gate_up_parts(const ExpertSource& from) {
  ExpertParts parts{{}, {from.hidden, 0, from.hidden}};
  for (const bool is_up : {false, true}) {
    from.for_each_expert([&](int32_t e) {
      if (from.one_gate_tensor) {
        parts.rows.push_back(stacked_part(from, e, is_up));
      } else if (from.files == ExpertFiles::kRows) {
        parts.rows.push_back(below_part(from, e, is_up));
      } else if (from.files == ExpertFiles::kEach) {
        parts.rows.push_back({tensor_of(from, e, is_up ? from.whole.up : from.whole.gate),
                              from.whole.inner, from.own.begin, from.own.count});
      } else {
        parts.rows.push_back(fused_part(from, e, is_up));
      }
    });
  }
  return parts;
}

// The same of experts that are apart.
std::vector<TensorPart> gate_up_biases_of_each(const ExpertSource& from) {
  std::vector<TensorPart> parts;
  for (const char* name : {from.whole.gate, from.whole.up}) {
    from.for_each_expert([&](int32_t e) {
      parts.push_back(
          {tensor_of(from, e, name, ".bias"), from.whole.inner, from.own.begin, from.own.count});
    });
  }
  return parts;
}

// The biases of all gates, then those of all ups.
std::vector<TensorPart> gate_up_biases(const ExpertSource& from) {
  const int64_t inner = from.whole.inner, count = from.whole.count;
  if (from.files == ExpertFiles::kEach) return gate_up_biases_of_each(from);
  const int64_t of_row = from.one_gate_tensor ? inner : 2 * inner;
  std::vector<TensorPart> parts;
  for (const bool is_up : {false, true}) {
    const std::string name = from.one_gate_tensor
                                 ? from.base + (is_up ? from.whole.up : from.whole.gate) + ".bias"
                                 : from.base + from.whole.gate_up + "_bias";
    const int64_t begin = from.own.begin + (is_up && !from.one_gate_tensor ? inner : 0);
    from.for_each_expert([&](int32_t e) {
      TensorPart& part =
          parts.emplace_back(TensorPart{name, count * of_row, e * of_row + begin, from.own.count});
      part.row_size = of_row;
      if (from.whole.alternates && !from.one_gate_tensor) part.alternating = of_row;
    });
  }
  return parts;
}

ExpertParts down_parts(const ExpertSource& from) {
  const int64_t inner = from.whole.inner, count = from.whole.count, hidden = from.hidden;
  ExpertParts parts{{}, {inner, from.own.begin, from.own.count}};
  std::string fused = from.base + from.whole.down;
  if (from.one_gate_tensor || from.ends_in_weight) fused += ".weight";
  from.for_each_expert([&](int32_t e) {
    if (from.files == ExpertFiles::kEach) {
      parts.rows.push_back({tensor_of(from, e, from.whole.down), hidden});
      return;
    }
    const bool below = from.files == ExpertFiles::kRows;
    const bool turned = below || from.files == ExpertFiles::kFusedTurned;
    const int64_t rows = turned ? inner : hidden;  // of an expert in the file
    TensorPart& part = parts.rows.emplace_back(TensorPart{fused, count * rows, e * rows, rows});
    part.stacked = below ? 0 : count;
    if (turned) part.transposed = {hidden, 0, hidden};
    part.columns_are_outputs = turned;
  });
  return parts;
}

// Whether the fused tensors are not turned: by the shape of the one that is not square.
bool is_unturned(const PartLoader& loader, const ExpertSource& from) {
  const int64_t count = from.whole.count, inner = from.whole.inner, hidden = from.hidden;
  if (hidden == 2 * inner) {
    const int64_t down[] = {count, hidden, inner};
    return loader.weights().has_shape(from.base + from.whole.down, down);
  }
  const int64_t gate_up[] = {count, 2 * inner, hidden};
  return loader.weights().has_shape(from.base + from.whole.gate_up, gate_up);
}

// Tools that quantise put the experts of every family apart, each with three matrices of these
// names, whatever form and names the family's own files have. False: the checkpoint has none so.
bool find_apart(const PartLoader& loader, ExpertSource* from) {
  constexpr const char* kGate = "gate_proj";
  constexpr std::string_view kFolder = "experts.";
  ExpertSource apart = *from;
  if (!apart.base.ends_with(kFolder)) apart.base += kFolder;
  if (!loader.weights().has_optional(tensor_of(apart, 0, kGate))) return false;
  apart.files = ExpertFiles::kEach;
  apart.whole.gate = kGate;
  apart.whole.up = "up_proj";
  apart.whole.down = "down_proj";
  *from = apart;
  return true;
}

// MLX's tools stack the experts of every family in three tensors of these names.
bool find_stacked(const PartLoader& loader, ExpertSource* from) {
  constexpr std::string_view kFolder = "experts.";
  ExpertSource stacked = *from;
  if (!stacked.base.ends_with(kFolder)) stacked.base += kFolder;
  if (!loader.weights().has_optional(stacked.base + "gate_proj.weight")) return false;
  stacked.files = ExpertFiles::kFused;
  stacked.one_gate_tensor = true;
  stacked.whole.gate = "gate_proj";
  stacked.whole.up = "up_proj";
  stacked.whole.down = "down_proj";
  *from = stacked;
  return true;
}

// The tensors of experts that other ranks have, which must be right here too.
Status expect_others(WeightLoader& loader, const ExpertSource& from) {
  if (from.files != ExpertFiles::kEach) return {};
  const int64_t in[] = {from.whole.inner, from.hidden}, out[] = {from.hidden, from.whole.inner};
  for (int32_t e = 0; e < from.whole.count; ++e) {
    if (e >= from.experts.begin && e < from.experts.begin + from.experts.count) continue;
    FT_RETURN_IF_ERROR(loader.expect(tensor_of(from, e, from.whole.gate), in));
    FT_RETURN_IF_ERROR(loader.expect(tensor_of(from, e, from.whole.up), in));
    FT_RETURN_IF_ERROR(loader.expect(tensor_of(from, e, from.whole.down), out));
  }
  return {};
}

// Matrices of experts that compute nothing, which transformers saves, too.
void ignore_idle(WeightLoader& loader, const ExpertSource& from) {
  for (int32_t e = from.whole.count; e < from.whole.choices(); ++e) {
    for (const char* name : {from.whole.gate, from.whole.up, from.whole.down}) {
      loader.ignore(tensor_of(from, e, name));
    }
  }
}

// How this checkpoint keeps the experts: as the architecture's files do, or stacked and as they
// are, as GGUF files and newer versions of transformers keep all.
ExpertSource find_source(PartLoader& loader, const std::string& base, const ExpertsSpec& whole) {
  const Sharding& sharding = loader.sharding();
  ExpertSource from{.base = base + whole.experts,
                    .whole = whole,
                    .files = whole.files,
                    .hidden = whole.width(),
                    .own = {0, whole.inner},
                    .experts = shard_of_experts(whole.count, sharding)};
  if (!sharding.deals_experts()) from.own = shard_of(whole.inner, sharding);
  if (find_apart(loader, &from) || find_stacked(loader, &from)) return from;
  if (loader.weights().has_optional(from.base + whole.gate + ".weight")) {
    from.files = ExpertFiles::kFused;
    from.one_gate_tensor = true;
    return from;
  }
  if (whole.files == ExpertFiles::kFusedTurned && is_unturned(loader, from)) {
    from.files = ExpertFiles::kFused;
  }
  if (whole.files == ExpertFiles::kFused) {
    from.ends_in_weight = loader.weights().has_optional(from.base + whole.down + ".weight");
  }
  if (whole.files != ExpertFiles::kEach) return from;
  if (loader.weights().has_optional(from.base + whole.gate_up)) {
    from.files = ExpertFiles::kFused;
    from.ends_in_weight = loader.weights().has_optional(from.base + whole.down + ".weight");
  }
  return from;
}

// As of load_expert_biases, where each expert has its own.
Status load_down_biases_of_each(PartLoader& loader, const ExpertSource& from, const float** down) {
  const bool counts = loader.sharding().rank == 0 || loader.sharding().deals_experts();
  std::vector<TensorPart> parts;
  from.for_each_expert([&](int32_t e) {
    parts.push_back({tensor_of(from, e, from.whole.down, ".bias"), from.hidden});
  });
  for (int32_t e = 0; e < from.whole.count; ++e) {
    for (const char* name : {from.whole.gate, from.whole.up, from.whole.down}) {
      loader.weights().ignore(tensor_of(from, e, name, ".bias"));
    }
  }
  return counts ? loader.load_vector(parts, down) : Status{};
}

// What leaves experts is summed over the ranks, so that its bias counts once: on the rank that has
// the expert, or on the first of those that have parts of it.
Status load_expert_biases(PartLoader& loader, const ExpertSource& from, const float** gate_up,
                          const float** down) {
  FT_RETURN_IF_ERROR(loader.load_vector(gate_up_biases(from), gate_up));
  if (from.files == ExpertFiles::kEach) return load_down_biases_of_each(loader, from, down);
  const std::string name = from.base + from.whole.down + (from.one_gate_tensor ? ".bias" : "_bias");
  if (loader.sharding().rank > 0 && !loader.sharding().deals_experts()) {
    loader.weights().ignore(name);
    return {};
  }
  TensorPart part{name, from.whole.count * from.hidden, from.experts.begin * from.hidden,
                  from.experts.count * from.hidden};
  part.row_size = from.hidden;
  return loader.load_vector({part}, down);
}

Status check_packable(const PartLoader& loader, const ExpertsSpec& part) {
  if (part.inner % kExpertColumns == 0 && part.width() % kExpertColumns == 0) return {};
  const std::string& field = loader.config().experts.names.inner;
  const Status refused = unsupported(
      loader.config().architecture + ": experts of " + std::to_string(part.inner) + " x " +
      std::to_string(part.width()) + " (" + (field.empty() ? "" : field + ", ") +
      "of a rank) are not supported; both must be multiples of " + std::to_string(kExpertColumns) +
      (loader.sharding().is_cut() && !loader.sharding().deals_experts()
           ? "; lower --tensor-parallel-size, or give --enable-expert-parallel"
           : ""));
  const Checkpoint* checkpoint = loader.weights().checkpoint();
  return checkpoint != nullptr ? checkpoint->with_own_fields(refused) : refused;
}

// The experts of each token; of random weights one behind the other.
Status load_table(PartLoader& loader, const std::string& base, const ExpertsSpec& whole,
                  const int32_t** out) {
  const int64_t shape[] = {whole.vocabulary, whole.top_k};
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> file,
                      loader.weights().integers(base + whole.table, shape));
  std::vector<int32_t> table(static_cast<size_t>(shape[0] * shape[1]));
  for (size_t i = 0; i < table.size(); ++i) {
    const int64_t expert = file.empty() ? static_cast<int64_t>(i) % whole.count : file[i];
    if (expert < 0 || expert >= whole.count) {
      return invalid_argument(base + whole.table + ": expert " + std::to_string(expert) +
                              " is none of the " + std::to_string(whole.count) +
                              "; fetch the checkpoint again");
    }
    table[i] = static_cast<int32_t>(expert);
  }
  FT_ASSIGN_OR_RETURN(void* memory,
                      loader.weights().upload(loader.arena(), table.data(),
                                              table.size() * sizeof(int32_t), "tables of experts"));
  *out = static_cast<const int32_t*>(memory);
  return {};
}

// MLX's tools put the correction of choices to the router.
std::string name_of_correction(const PartLoader& loader, const std::string& base,
                               const ExpertsSpec& whole) {
  const std::string own = base + whole.correction;
  const std::string of_router = base + whole.router + ".e_score_correction_bias";
  const bool moved = !loader.weights().has(own) && loader.weights().has_optional(of_router);
  return moved ? of_router : own;
}

// The matrix by which rows choose, and what shapes their choices.
Status load_router(PartLoader& loader, const std::string& base, const ExpertsSpec& whole,
                   Experts* to) {
  const int32_t hidden = to->spec.inputs;
  TensorPart router_part{base + whole.router, whole.choices()};
  router_part.is_exact = true;
  FT_RETURN_IF_ERROR(loader.load_linear({router_part}, hidden, whole.biased, &to->router));
  if (whole.router_scale != nullptr) {
    FT_RETURN_IF_ERROR(
        loader.load_vector({{base + whole.router_scale, hidden}}, &to->router_norm.weight));
  }
  if (whole.weight_scales != nullptr) {
    FT_RETURN_IF_ERROR(
        loader.load_vector({{base + whole.weight_scales, whole.count}}, &to->weight_scales));
  }
  if (whole.table != nullptr) FT_RETURN_IF_ERROR(load_table(loader, base, whole, &to->table));
  if (whole.correction == nullptr) return {};
  TensorPart part{name_of_correction(loader, base, whole), whole.choices()};
  if (whole.correction_is_row) part.row_size = whole.choices();
  return loader.load_vector({part}, &to->correction);
}

// What stands before and behind experts of narrow rows. Each rank widens its own sum, or its
// columns of the normed sum of all.
Status load_latents(PartLoader& loader, const std::string& base, const ExpertsSpec& whole,
                    Experts* to) {
  if (whole.latent == 0) return {};
  FT_RETURN_IF_ERROR(loader.load_linear({{base + whole.to_latent, whole.latent}}, whole.inputs,
                                        false, &to->to_latent));
  if (whole.latent_norm == nullptr) {
    return loader.load_linear({{base + whole.of_latent, whole.inputs}}, whole.latent, false,
                              &to->of_latent);
  }
  FT_RETURN_IF_ERROR(loader.load_norm(base + whole.latent_norm, whole.latent, &to->latent_norm));
  to->eps = loader.config().rms_norm_eps;
  to->latent_columns = shard_of(whole.latent, loader.sharding());
  to->sums_latents = loader.sharding().is_cut();
  return loader.load_summed(base + whole.of_latent, whole.latent, false, &to->of_latent);
}

// The experts that every row takes.
Status load_shared_experts(PartLoader& loader, const std::string& base, const ExpertsSpec& whole,
                           Experts* to) {
  if (whole.shared_inner == 0) {
    // Where a config takes it away whose files have it (Granite).
    if (whole.shared_fused) loader.weights().ignore_all(base + whole.shared);
    return {};
  }
  GatedMlpSpec shared_mlp = shared_mlp_of(whole);
  // GGUF files have gates and ups apart.
  const std::string shared_gates = base + whole.shared + shared_mlp.gate + ".weight";
  if (loader.weights().has_optional(shared_gates)) shared_mlp.fused = false;
  FT_RETURN_IF_ERROR(to->shared.load(loader, base + whole.shared, shared_mlp));
  if (whole.shared_gate == nullptr) return {};
  TensorPart gate_part{base + whole.shared_gate, 1};
  gate_part.is_exact = true;
  return loader.load_linear({gate_part}, to->spec.inputs, false, &to->shared_gate);
}

// Files without it are those of llama.cpp's converter.
Status load_sum_bias(PartLoader& loader, const std::string& name, const ExpertsSpec& whole,
                     Experts* to) {
  if (!loader.weights().has_optional(name)) return {};
  if (to->is_exchanged) {
    return unsupported(loader.config().architecture + ": '" + name +
                       "' cannot be added where engines have experts together; leave out "
                       "--enable-expert-parallel");
  }
  if (loader.sharding().rank == 0) return loader.load_vector({{name, whole.inputs}}, &to->sum_bias);
  loader.weights().ignore(name);
  return {};
}

// The shared expert and the others multiply the same rows, which are rounded once.
void join_input_scales(Experts* out) {
  PackedWeight& shared = out->shared.gate_up.weight;
  if (!shared.takes_rounded() || !out->gate_up.takes_rounded()) return;
  const float scale = std::max(shared.input_scale(), out->gate_up.input_scale());
  shared.take_rounded(scale);
  out->gate_up.take_rounded(scale);
}

}  // namespace

Status Experts::load(PartLoader& loader, const std::string& layer, const ExpertsSpec& whole) {
  const std::string base = layer + whole.base;
  if (!has_expert_form(whole.activation)) {
    return unsupported(loader.config().architecture +
                       ": experts with a gate cannot have the activation that config.json names; "
                       "set hidden_act to silu, gelu or gelu_pytorch_tanh");
  }
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  FT_RETURN_IF_ERROR(check_packable(loader, spec));
  FT_RETURN_IF_ERROR(load_router(loader, base, whole, this));
  const ExpertSource from = find_source(loader, base, whole);
  own = from.experts;
  is_exchanged = loader.sharding().experts.comm != nullptr;
  // On one rank alone, behind the experts that it has, or of each engine the first one.
  const bool deals = loader.sharding().deals_experts() && !is_exchanged;
  const bool counts = deals ? own.begin + own.count == whole.count : loader.sharding().rank == 0;
  own_zeros = counts ? whole.zero_count : 0;
  FT_RETURN_IF_ERROR(expect_others(loader.weights(), from));
  ignore_idle(loader.weights(), from);
  const ExpertParts gates = expert_gate_up_parts(from), downs = down_parts(from);
  FT_ASSIGN_OR_RETURN(gate_up, loader.weights().matrix(gates.rows, gates.columns,
                                                       WeightOrder::kGateUp, spec.inner));
  FT_ASSIGN_OR_RETURN(
      down, loader.weights().matrix(downs.rows, downs.columns, WeightOrder::kPlain, spec.width()));
  if (whole.biased) {
    FT_RETURN_IF_ERROR(load_expert_biases(loader, from, &gate_up_bias, &down_bias));
  }
  if (whole.sum_bias != nullptr) {
    FT_RETURN_IF_ERROR(load_sum_bias(loader, base + whole.sum_bias, whole, this));
  }
  FT_RETURN_IF_ERROR(load_latents(loader, base, whole, this));
  FT_RETURN_IF_ERROR(load_shared_experts(loader, base, whole, this));
  join_input_scales(this);
  // Of which no architecture has both.
  FT_CHECK(!keeps_apart() || !weighs_shared());
  return {};
}

double loaded_beyond(const ExpertsSpec& part, int32_t, const Sharding& sharding) {
  const double biases = part.biased ? 2.0 * part.inner + part.width() : 0;
  const int64_t own = shard_of_experts(part.count, sharding).count;
  const double others = double(part.count - own) * (3.0 * part.inner * part.width() + biases);
  if (std::string_view(part.gate) != part.up) return -others;
  return double(part.count) * part.inner * part.width() + double(part.shared_inner) * part.inputs -
         others;
}

}  // namespace foretoken
