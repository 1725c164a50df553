#include "model/layer/gqa.h"

#include <algorithm>
#include <vector>

#include "kernels/attention/rope_kv.h"

namespace foretoken {
namespace {

// The rows of the rank's heads.
std::vector<TensorPart> qkv_parts(const std::string& base, const GqaSpec& whole,
                                  const Sharding& sharding) {
  const int64_t dim = whole.head_dim, q = whole.q_size(), kv = whole.kv_size();
  const ShardRange heads = shard_of(whole.num_heads, sharding);
  const ShardRange kv_heads = shard_of_kv_heads(whole.num_kv_heads, sharding);
  const int64_t first = heads.begin * dim, rows = heads.count * dim;
  const int64_t kv_first = kv_heads.begin * dim, kv_rows = kv_heads.count * dim;
  if (!whole.fused) {
    return {{base + "q_proj", q, first, rows},
            {base + "k_proj", kv, kv_first, kv_rows},
            {base + "v_proj", kv, kv_first, kv_rows}};
  }
  const std::string name = base + "qkv_proj";
  const int64_t all = whole.qkv_size();
  if (!sharding.is_cut()) return {{name, all}};
  return {{name, all, first, rows},
          {name, all, q + kv_first, kv_rows},
          {name, all, q + kv + kv_first, kv_rows}};
}

}  // namespace

Status Gqa::load(PartLoader& loader, const std::string& base, const GqaSpec& whole) {
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  eps = loader.config().rms_norm_eps;
  FT_RETURN_IF_ERROR(loader.load_linear(qkv_parts(base, whole, loader.sharding()), whole.inputs,
                                        whole.qkv_bias, &qkv));
  if (whole.qk_norm == QkNorm::kHead) {
    FT_RETURN_IF_ERROR(loader.load_norm(base + "q_norm", whole.head_dim, &q_norm));
    FT_RETURN_IF_ERROR(loader.load_norm(base + "k_norm", whole.head_dim, &k_norm));
  }
  FT_RETURN_IF_ERROR(loader.load_summed(base + "o_proj", whole.q_size(), whole.o_bias, &o));
  // Older exports store this buffer; it follows from the config.
  loader.weights().ignore(base + "rotary_emb.inv_freq");
  return {};
}

void Gqa::Scratch::fit(const GqaSpec& part) {
  qkv_size_ = std::max(qkv_size_, part.qkv_size());
  q_size_ = std::max(q_size_, part.q_size());
  num_heads_ = std::max(num_heads_, part.num_heads);
  head_dim_ = std::max(head_dim_, part.head_dim);
}

Status Gqa::Scratch::take(const ScratchSource& source) {
  attention = &source.attention;
  FT_ASSIGN_OR_RETURN(qkv, source.floats(qkv_size_));
  FT_ASSIGN_OR_RETURN(q, source.act(q_size_));
  FT_ASSIGN_OR_RETURN(attended, source.act(q_size_));
  workspace_floats =
      attention->workspace_floats(source.device, source.max_rows, num_heads_, head_dim_);
  const char* what = ScratchSource::kWhat;
  FT_ASSIGN_OR_RETURN(workspace,
                      source.arena.take_array<float>(static_cast<size_t>(workspace_floats), what));
  const auto sync_rows = static_cast<size_t>(std::min(source.max_rows, AttentionArgs::kSyncRows));
  FT_ASSIGN_OR_RETURN(
      sync, source.arena.take_array<uint32_t>(sync_rows * static_cast<size_t>(num_heads_), what));
  return {};
}

void Gqa::project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  multiply(rows, x, qkv, {scratch.qkv}, dtype);
}

void Gqa::attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const {
  rope_kv(rows.queue, {.counts = rows.counts,
                       .qkv = scratch.qkv,
                       .q_out = scratch.q,
                       .positions = rows.positions,
                       .kv_slot = kv.kv_slot,
                       .inv_freq = kv.rope.inv_freq,
                       .kv = kv.kv,
                       .max_rows = rows.max_rows,
                       .num_heads = spec.num_heads,
                       .rotary_dim = kv.rope.rotary_dim,
                       .scaling = kv.rope.scaling,
                       .q_norm = q_norm.weight,
                       .k_norm = k_norm.weight,
                       .norm_eps = eps,
                       .position_shift = kv.position_shift});
  scratch.attention->run(rows.queue, {.counts = rows.counts,
                                      .q = scratch.q,
                                      .out = scratch.attended,
                                      .positions = rows.positions,
                                      .row_slot = rows.row_slot,
                                      .block_tables = kv.block_tables,
                                      .workspace = scratch.workspace,
                                      .workspace_floats = scratch.workspace_floats,
                                      .sync = scratch.sync,
                                      .kv = kv.kv,
                                      .max_blocks = kv.max_blocks,
                                      .max_rows = rows.max_rows,
                                      .num_heads = spec.num_heads,
                                      .window = kv.window,
                                      .scale = spec.scale,
                                      .softcap = spec.softcap,
                                      .kv_begin = kv.kv_begin,
                                      .runs = rows.runs,
                                      .repeats = kv.repeats});
}

}  // namespace foretoken
