#pragma once
#include <algorithm>

#include "base/float8.h"
#include "check.h"
#include "kernels/attention/attention.h"

namespace foretoken::check {

// A cache with some sequences in shuffled blocks, all on host and device.
struct Scene {
  int heads, kv_heads, dim, block_size, slots, max_blocks, window;
  DType dtype;
  std::vector<int> lengths;
  std::vector<int32_t> tables;
  Stored k, v;
  void* device_k;
  void* device_v;
  float softcap;
  int kv_begin;
  std::vector<float> sinks = {};  // empty: there are none
  const float* device_sinks = nullptr;
  KvFormat format = KvFormat::kPlain;
  const float* device_k_scales = nullptr;
  const float* device_v_scales = nullptr;

  // Below all scores, among them and above.
  void add_sinks(Pool& pool) {
    for (int h = 0; h < heads; ++h) sinks.push_back(h % 4 == 3 ? 40.0f : 3.0f * h - 5);
    device_sinks = pool.upload(sinks);
  }
  // Keys and values become codes of KvFormat::kFp8, with a scale for each KV head.
  void use_codes(Pool& pool) {
    format = KvFormat::kFp8;
    device_k = pool.upload(code(k, 0.01f));
    device_v = pool.upload(code(v, 0.006f));
    device_k_scales = pool.upload(code_scales(0.01f));
    device_v_scales = pool.upload(code_scales(0.006f));
  }
  std::vector<float> code_scales(float first) const {
    std::vector<float> scales;
    for (int h = 0; h < kv_heads; ++h) scales.push_back(first * static_cast<float>(1 + h % 3));
    return scales;
  }
  std::vector<uint8_t> code(Stored& stored, float first_scale) const {
    const std::vector<float> scales = code_scales(first_scale);
    std::vector<uint8_t> codes(stored.values.size());
    parallel(static_cast<int64_t>(codes.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float scale = scales[i / dim / block_size % kv_heads];
        codes[i] = e4m3_code(static_cast<float>(stored.values[i]) / scale);
        stored.values[i] = double{e4m3_value(codes[i])} * double{scale};
      }
    });
    return codes;
  }
  int first_visible(int position) const {
    const int existing = std::min(kv_begin, position);
    return window > 0 ? std::max(existing, position + 1 - window) : existing;
  }
  int64_t entry(int slot, int position, int kv_head) const {
    const int block = tables[slot * max_blocks + position / block_size];
    return (int64_t{block} * kv_heads + kv_head) * block_size + position % block_size;
  }
};

inline Scene make_scene(Gpu&, Pool& pool, int heads, int kv_heads, int dim, int block_size,
                        int window, DType dtype, float softcap, int kv_begin,
                        std::vector<int> lengths) {
  Scene s{heads,   kv_heads, dim,     block_size, static_cast<int>(lengths.size()),
          0,       window,   dtype,   lengths,    {},
          {},      {},       nullptr, nullptr,    softcap,
          kv_begin};
  s.max_blocks = (*std::max_element(lengths.begin(), lengths.end()) + block_size - 1) / block_size;
  s.tables.assign(s.slots * s.max_blocks, 0);
  std::vector<int32_t> free(s.slots * s.max_blocks);
  for (size_t i = 0; i < free.size(); ++i) free[i] = static_cast<int32_t>(i) + 1;
  std::shuffle(free.begin(), free.end(), std::mt19937(5));
  for (int slot = 0; slot < s.slots; ++slot) {
    for (int b = 0; b * block_size < lengths[slot]; ++b) {
      s.tables[slot * s.max_blocks + b] = free[slot * s.max_blocks + b];
    }
  }
  const size_t elements = (free.size() + 1) * kv_heads * block_size * dim;
  auto k = random_floats(elements, 31);
  auto v = random_floats(elements, 32);
  // What lies beyond a sequence's end must never matter.
  std::vector<uint8_t> used((free.size() + 1) * block_size, 0);
  for (int slot = 0; slot < s.slots; ++slot) {
    for (int p = 0; p < lengths[slot]; ++p) {
      used[s.tables[slot * s.max_blocks + p / block_size] * block_size + p % block_size] = 1;
    }
  }
  for (size_t i = 0; i < elements; ++i) {
    const size_t entry = i / dim;
    const size_t place = entry / block_size / kv_heads * block_size + entry % block_size;
    if (!used[place]) k[i] = v[i] = NAN;
  }
  s.k = store_as(k, dtype);
  s.v = store_as(v, dtype);
  s.device_k = pool.upload(s.k.bytes);
  s.device_v = pool.upload(s.v.bytes);
  return s;
}

struct Query {
  int slot;
  int position;
};

// The block tables with ids that no memory has wherever none of the queries sees a position.
inline std::vector<int32_t> visible_tables(const Scene& s, const std::vector<Query>& queries) {
  std::vector<int32_t> tables(s.tables.size(), INT32_MAX);
  for (const Query& query : queries) {
    for (int b = s.first_visible(query.position) / s.block_size; b <= query.position / s.block_size;
         ++b) {
      const int at = query.slot * s.max_blocks + b;
      tables[at] = s.tables[at];
    }
  }
  return tables;
}

// Some queries in a bucket of max_rows, ready to be launched; q rows depend on (slot, position).
class Launch {
 public:
  Launch(Gpu& gpu, const Scene& s, const std::vector<Query>& queries, int max_rows, bool workspace,
         RunLengths runs)
      : gpu_(gpu), pool_(gpu) {
    const int width = s.heads * s.dim;
    std::vector<float> q(int64_t{max_rows} * width, 0.0f);
    std::vector<int32_t> positions(max_rows, 0), slots(max_rows, 0);
    for (size_t r = 0; r < queries.size(); ++r) {
      positions[r] = queries[r].position;
      slots[r] = queries[r].slot;
      for (int i = 0; i < width; ++i) {
        q[r * width + i] =
            noise(33, (uint64_t(queries[r].slot) * 100000 + queries[r].position) * width + i, 3.0f);
      }
    }
    q_ = store_as(q, s.dtype);
    const int64_t splits = AttentionSplits::of(s.max_blocks * s.block_size - 1) + 1;
    const int64_t floats =
        workspace ? std::max(int64_t{max_rows} * s.heads * splits * (s.dim + 2), int64_t{8} << 20)
                  : 0;
    bytes_ = queries.size() * width * dtype_size(s.dtype);
    args_ = AttentionArgs{device_counts(pool_, static_cast<int>(queries.size()), 0),
                          pool_.upload(q_.bytes),
                          pool_.array<uint8_t>(q_.bytes.size()),
                          pool_.upload(positions),
                          pool_.upload(slots),
                          pool_.upload(visible_tables(s, queries)),
                          workspace ? pool_.array<float>(floats) : nullptr,
                          floats,
                          workspace ? sync_of(max_rows * s.heads) : nullptr,
                          KvLayer{s.device_k, s.device_v, s.kv_heads, s.block_size, s.dim, s.dtype,
                                  s.format, 0, s.device_k_scales, s.device_v_scales},
                          s.max_blocks,
                          max_rows,
                          s.heads,
                          s.window,
                          1.0f / std::sqrt(static_cast<float>(s.dim)),
                          s.softcap,
                          s.kv_begin,
                          runs};
    args_.sinks = s.device_sinks;
  }

  // The output bytes of the live queries, whoever joins their splits.
  std::vector<uint8_t> run() {
    const std::vector<uint8_t> out = run(args_);
    if (args_.sync == nullptr) return out;
    AttentionArgs apart = args_;
    apart.sync = nullptr;
    const auto left = download(gpu_, args_.sync, num_sync_);
    const bool zero = std::all_of(left.begin(), left.end(), [](uint32_t n) { return n == 0; });
    if (!zero || run(apart) != out) {
      report(false, "attention join", text("%d rows, zero %d", args_.max_rows, zero ? 1 : 0));
    }
    return out;
  }
  // Whether no byte of the output is written where counters are wrong: so it is where all tiles are
  // cut, and those who leave their parts join them.
  bool is_joined_by_count() {
    gpu_.queue->fill(args_.sync, 1, num_sync_ * sizeof(uint32_t));
    const std::vector<uint8_t> out = run(args_);
    gpu_.queue->fill(args_.sync, 0, num_sync_ * sizeof(uint32_t));
    return std::all_of(out.begin(), out.end(), [](uint8_t byte) { return byte == 0xff; });
  }
  const Stored& q() const { return q_; }

 private:
  uint32_t* sync_of(int count) {
    num_sync_ = static_cast<size_t>(count);
    auto* sync = pool_.array<uint32_t>(count);
    gpu_.queue->fill(sync, 0, num_sync_ * sizeof(uint32_t));
    return sync;
  }

  std::vector<uint8_t> run(const AttentionArgs& args) {
    gpu_.queue->fill(args.out, 0xff, q_.bytes.size());
    if (args.workspace != nullptr) {
      gpu_.queue->fill(args.workspace, 0xff, args.workspace_floats * sizeof(float));
    }
    gpu_.queue->launch(args);
    return download(gpu_, static_cast<const uint8_t*>(args.out), bytes_);
  }

  Gpu& gpu_;
  Pool pool_;
  Stored q_;
  AttentionArgs args_{};
  size_t bytes_ = 0;
  size_t num_sync_ = 0;
};

inline std::vector<uint8_t> run(Gpu& gpu, const Scene& s, const std::vector<Query>& queries,
                                int max_rows, bool workspace, Stored* q_out = nullptr,
                                RunLengths runs = RunLengths::kUnknown) {
  Launch launch(gpu, s, queries, max_rows, workspace, runs);
  if (q_out != nullptr) *q_out = launch.q();
  return launch.run();
}

inline std::vector<double> reference(const Scene& s, const std::vector<Query>& queries,
                                     const Stored& q) {
  std::vector<double> out(queries.size() * s.heads * s.dim);
  parallel(static_cast<int64_t>(queries.size()) * s.heads, [&](int64_t begin, int64_t end) {
    for (int64_t rh = begin; rh < end; ++rh) {
      const Query& query = queries[rh / s.heads];
      const int kv_head = static_cast<int>(rh % s.heads) / (s.heads / s.kv_heads);
      const int first = s.first_visible(query.position);
      std::vector<double> scores;
      for (int p = first; p <= query.position; ++p) {
        double dot = 0;
        for (int d = 0; d < s.dim; ++d) {
          dot += q.values[rh * s.dim + d] * s.k.values[s.entry(query.slot, p, kv_head) * s.dim + d];
        }
        const double score = dot / std::sqrt(static_cast<double>(s.dim));
        scores.push_back(s.softcap > 0 ? s.softcap * std::tanh(score / s.softcap) : score);
      }
      const double highest = *std::max_element(scores.begin(), scores.end());
      double sum = s.sinks.empty() ? 0 : std::exp(s.sinks[rh % s.heads] - highest);
      for (double& score : scores) sum += score = std::exp(score - highest);
      for (int p = first; p <= query.position; ++p) {
        for (int d = 0; d < s.dim; ++d) {
          out[rh * s.dim + d] +=
              scores[p - first] / sum * s.v.values[s.entry(query.slot, p, kv_head) * s.dim + d];
        }
      }
    }
  });
  return out;
}

}  // namespace foretoken::check
