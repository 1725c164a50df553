#include <algorithm>

#include "check.h"
#include "kernels/attention/attention.h"

namespace foretoken::check {
namespace {

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

  // Below all scores, among them and above.
  void add_sinks(Pool& pool) {
    for (int h = 0; h < heads; ++h) sinks.push_back(h % 4 == 3 ? 40.0f : 3.0f * h - 5);
    device_sinks = pool.upload(sinks);
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

Scene make_scene(Gpu&, Pool& pool, int heads, int kv_heads, int dim, int block_size, int window,
                 DType dtype, float softcap, int kv_begin, std::vector<int> lengths) {
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
std::vector<int32_t> visible_tables(const Scene& s, const std::vector<Query>& queries) {
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
                          KvLayer{s.device_k, s.device_v, s.kv_heads, s.block_size, s.dim, s.dtype},
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

std::vector<uint8_t> run(Gpu& gpu, const Scene& s, const std::vector<Query>& queries, int max_rows,
                         bool workspace, Stored* q_out = nullptr,
                         RunLengths runs = RunLengths::kUnknown) {
  Launch launch(gpu, s, queries, max_rows, workspace, runs);
  if (q_out != nullptr) *q_out = launch.q();
  return launch.run();
}

std::vector<double> reference(const Scene& s, const std::vector<Query>& queries, const Stored& q) {
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

}  // namespace

void check_attention(Gpu& gpu) {
  struct Case {
    int heads, kv_heads, dim, block_size, window;
    DType dtype;
    float softcap = 0;
    int kv_begin = 0;
    bool sinks = false;
  };
  for (const Case& c : std::vector<Case>{{4, 1, 16, 16, 0, DType::kF32},
                                         {8, 2, 64, 16, 0, DType::kF32},
                                         {6, 6, 40, 8, 100, DType::kF32},
                                         {8, 2, 256, 32, 0, DType::kF32},
                                         {14, 2, 64, 16, 0, DType::kBF16},
                                         {8, 2, 128, 16, 0, DType::kBF16},
                                         {4, 4, 128, 32, 300, DType::kBF16},
                                         {40, 2, 64, 16, 77, DType::kBF16},
                                         {8, 4, 80, 16, 0, DType::kBF16},
                                         {8, 1, 256, 16, 500, DType::kBF16},
                                         {8, 4, 256, 16, 0, DType::kBF16, 50.0f},
                                         {16, 8, 256, 16, 257, DType::kBF16, 2.0f},
                                         {6, 6, 96, 16, 0, DType::kBF16},
                                         {8, 2, 96, 16, 256, DType::kBF16, 1.0f},
                                         {4, 2, 128, 16, 0, DType::kBF16, 2.0f},
                                         {4, 2, 64, 16, 1, DType::kBF16},
                                         {4, 2, 64, 16, 33, DType::kF32, 2.0f},
                                         {4, 2, 192, 16, 0, DType::kBF16},
                                         {3, 1, 72, 16, 300, DType::kBF16, 3.0f},
                                         {2, 1, 512, 16, 0, DType::kF32},
                                         {2, 2, 512, 16, 90, DType::kBF16},
                                         {8, 2, 128, 16, 0, DType::kBF16, 0, 1},
                                         {4, 2, 64, 16, 0, DType::kF32, 0, 1},
                                         {14, 2, 64, 16, 33, DType::kBF16, 0, 300},
                                         {8, 4, 80, 16, 0, DType::kBF16, 0, 600},
                                         {8, 2, 256, 16, 0, DType::kBF16, 2.0f, 515},
                                         {8, 4, 112, 16, 0, DType::kBF16},
                                         {8, 2, 192, 32, 300, DType::kBF16},
                                         {8, 2, 64, 16, 0, DType::kF32, 0, 0, true},
                                         {16, 2, 64, 16, 128, DType::kBF16, 0, 0, true},
                                         {8, 1, 64, 16, 0, DType::kBF16, 0, 0, true},
                                         {8, 2, 80, 16, 0, DType::kBF16, 2.0f, 1, true}}) {
    Pool pool(gpu);
    Scene scene = make_scene(gpu, pool, c.heads, c.kv_heads, c.dim, c.block_size, c.window, c.dtype,
                             c.softcap, c.kv_begin, {1, 37, 256, 257, 1100});
    if (c.sinks) scene.add_sinks(pool);
    std::vector<Query> queries = {{0, 0}, {1, 36}, {2, 255}, {3, 255}, {3, 256}, {4, 1099}};
    for (int p = 500; p < 620; ++p) queries.push_back({4, p});
    for (const int max_rows : {static_cast<int>(queries.size()) + 2, 256}) {
      for (const bool workspace : {false, true}) {
        Stored q;
        const auto bytes = run(gpu, scene, queries, max_rows, workspace, &q);
        const double error =
            relative_error(values_of(bytes, c.dtype), reference(scene, queries, q));
        report(error < (c.dtype == DType::kF32 ? 5e-6 : 1e-2), "attention",
               text("%s %d/%d heads dim %d window %d cap %g begin %d bucket %d%s error %.1e",
                    dtype_name(c.dtype), c.heads, c.kv_heads, c.dim, c.window, double{c.softcap},
                    c.kv_begin, max_rows, workspace ? " workspace" : "", error));
      }
    }
  }
}

void check_attention_bits(Gpu& gpu) {
  struct Case {
    int heads, kv_heads, dim, window;
    DType dtype;
    float softcap = 0;
    int kv_begin = 0;
    bool sinks = false;
  };
  for (const Case& c : std::vector<Case>{{8, 2, 128, 0, DType::kBF16},
                                         {8, 2, 128, 333, DType::kBF16},
                                         {14, 2, 64, 0, DType::kBF16},
                                         {4, 4, 64, 0, DType::kBF16},
                                         {32, 1, 128, 0, DType::kBF16},
                                         {8, 2, 80, 0, DType::kBF16},
                                         {8, 2, 64, 200, DType::kF32},
                                         {8, 4, 256, 0, DType::kBF16, 50.0f},
                                         {4, 4, 256, 300, DType::kBF16},
                                         {20, 1, 256, 33, DType::kBF16, 2.0f},
                                         {8, 2, 96, 0, DType::kBF16},
                                         {6, 6, 96, 257, DType::kBF16, 2.0f},
                                         {4, 2, 128, 1, DType::kBF16},
                                         {2, 1, 512, 270, DType::kF32, 2.0f},
                                         {8, 2, 128, 0, DType::kBF16, 0, 1},
                                         {8, 2, 64, 300, DType::kBF16, 0, 270},
                                         {8, 2, 80, 0, DType::kBF16, 0, 1},
                                         {6, 2, 112, 0, DType::kBF16},
                                         {8, 1, 192, 400, DType::kBF16},
                                         {16, 2, 64, 128, DType::kBF16, 0, 0, true},
                                         {8, 1, 64, 0, DType::kBF16, 0, 0, true},
                                         {8, 2, 80, 0, DType::kBF16, 0, 0, true},
                                         {8, 2, 64, 200, DType::kF32, 0, 0, true}}) {
    Pool pool(gpu);
    const int length = 1301;
    Scene scene = make_scene(gpu, pool, c.heads, c.kv_heads, c.dim, 16, c.window, c.dtype,
                             c.softcap, c.kv_begin, {length, 700, 90});
    if (c.sinks) scene.add_sinks(pool);
    std::vector<Query> all;
    for (int p = 0; p < length; ++p) all.push_back({0, p});
    const auto whole = run(gpu, scene, all, length, false);
    const size_t row_bytes = whole.size() / length;
    int different = 0;
    int rows = 0;
    int launches = 0;
    const auto compare = [&](const std::vector<Query>& queries, int max_rows, bool workspace) {
      // What the host says about the runs chooses kernels only, even where it is wrong.
      const auto runs = static_cast<RunLengths>(++launches % 4);
      const auto part = run(gpu, scene, queries, max_rows, workspace, nullptr, runs);
      for (size_t r = 0; r < queries.size(); ++r) {
        if (queries[r].slot != 0) continue;
        ++rows;
        different += std::memcmp(&part[r * row_bytes], &whole[queries[r].position * row_bytes],
                                 row_bytes) != 0;
      }
    };
    for (const int chunk : {1, 3, 5, 16, 50, 128, 200, 511}) {
      for (int begin = 0; begin < length; begin += chunk == 1 ? 83 : chunk * 2 + 1) {
        std::vector<Query> queries = {{1, 699}, {1, 698}, {2, 40}};
        for (int p = begin; p < std::min(length, begin + chunk); ++p) queries.push_back({0, p});
        queries.push_back({2, 89});
        const int rows_now = static_cast<int>(queries.size());
        compare(queries, rows_now, true);
        if (chunk >= 16) compare(queries, rows_now + 130, chunk % 2 == 0);
        std::reverse(queries.begin(), queries.end());
        if (chunk >= 16) compare(queries, rows_now, false);
      }
    }
    report(different == 0, "attention bits",
           text("%s %d/%d heads dim %d window %d cap %g begin %d: %d of %d rows differ",
                dtype_name(c.dtype), c.heads, c.kv_heads, c.dim, c.window, double{c.softcap},
                c.kv_begin, different, rows));
  }
}

// Prints where the results of a row differ, for whoever looks for the cause.
void print_difference(const std::string& what, const uint8_t* got, const uint8_t* want, int heads,
                      int dim) {
  const size_t bytes = size_t(heads) * dim * 2;
  const auto a = values_of({got, got + bytes}, DType::kBF16);
  const auto b = values_of({want, want + bytes}, DType::kBF16);
  int first = dim, last = -1, num_nan = 0;
  double largest = 0;
  std::vector<uint8_t> differs(heads, 0);
  for (int i = 0; i < heads * dim; ++i) {
    if (a[i] == b[i]) continue;
    differs[i / dim] = 1;
    first = std::min(first, i % dim);
    last = std::max(last, i % dim);
    num_nan += std::isnan(a[i]) ? 1 : 0;
    if (!std::isnan(a[i] - b[i])) largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  std::printf("     %s: %d heads, dimensions %d to %d, %d NaN, largest %.2e\n", what.c_str(),
              static_cast<int>(std::count(differs.begin(), differs.end(), 1)), first, last, num_nan,
              largest);
}

// Sequences so unlike in length that blocks share the long ones.
const std::vector<int> unlike_lengths = {20000, 300, 16400, 64, 8200, 264, 257, 2};

// None longer than `longest`.
std::vector<int> lengths_upto(int longest) {
  std::vector<int> lengths = unlike_lengths;
  for (int& length : lengths) length = std::min(length, longest);
  return lengths;
}

std::vector<Query> last_queries(const std::vector<int>& lengths) {
  std::vector<Query> queries;
  for (int slot = 0; slot < static_cast<int>(lengths.size()); ++slot) {
    const int rows = slot == 0 ? 4 : slot == 4 ? 40 : slot == 2 ? 45 : 1;
    for (int i = rows; i > 0; --i) queries.push_back({slot, lengths[slot] - i});
  }
  return queries;
}

// So many times the same: a copy that overtakes what reads the place before it shows here only.
void check_attention_repeats(Gpu& gpu, const Scene& scene, const std::vector<Query>& queries) {
  constexpr int kLaunches = 300;
  Launch launch(gpu, scene, queries, static_cast<int>(queries.size()) + 3, true,
                RunLengths::kUnknown);
  const auto first = launch.run();
  int different = 0;
  for (int i = 1; i < kLaunches; ++i) different += launch.run() != first ? 1 : 0;
  report(different == 0, "attention repeats",
         text("%d/%d heads dim %d: %d of %d launches differ", scene.heads, scene.kv_heads,
              scene.dim, different, kLaunches));
}

// Runs where splits become wider, too: every row has the bits that it has alone, whoever merges its
// splits.
void check_attention_schedules(Gpu& gpu) {
  struct Case {
    int heads, kv_heads, dim, block_size, window;
    int longest = 20000;
    bool sinks = false;
  };
  // Up to 10,240 tokens the team that ends a tile last joins its splits.
  for (const Case& c : std::vector<Case>{{32, 8, 128, 16, 0, 10000},
                                         {8, 1, 64, 32, 0, 8000},
                                         {6, 2, 128, 32, 3000, 10000},
                                         {32, 8, 128, 16, 0},
                                         {8, 1, 64, 32, 0},
                                         {4, 4, 80, 16, 0},
                                         {12, 2, 96, 16, 9000},
                                         {8, 2, 128, 16, 3000},
                                         {8, 4, 256, 16, 0},
                                         {64, 8, 64, 16, 0, 10000, true},
                                         {64, 8, 64, 16, 0, 20000, true},
                                         {64, 8, 64, 16, 128, 20000, true}}) {
    Pool pool(gpu);
    Scene scene = make_scene(gpu, pool, c.heads, c.kv_heads, c.dim, c.block_size, c.window,
                             DType::kBF16, 0, 0, lengths_upto(c.longest));
    if (c.sinks) scene.add_sinks(pool);
    const auto queries = last_queries(lengths_upto(c.longest));
    Stored q;
    const int num_rows = static_cast<int>(queries.size());
    const auto all = run(gpu, scene, queries, num_rows + 3, true, &q);
    const double error = relative_error(values_of(all, DType::kBF16), reference(scene, queries, q));
    const size_t row_bytes = all.size() / queries.size();
    int different = 0;
    int launches = 0;
    const auto compare = [&](size_t at, const std::vector<Query>& some, bool workspace) {
      const auto part = run(gpu, scene, some, static_cast<int>(some.size()), workspace, nullptr,
                            static_cast<RunLengths>(++launches % 4));
      for (size_t r = 0; r < some.size(); ++r) {
        const uint8_t* want = &all[(at + r) * row_bytes];
        if (std::memcmp(&part[r * row_bytes], want, row_bytes) == 0 || ++different > 20) continue;
        print_difference(text("launch %d of %zu rows%s, row %zu", launches, some.size(),
                              workspace ? " with workspace" : "", at + r),
                         &part[r * row_bytes], want, c.heads, c.dim);
      }
    };
    for (int i = 0; i < 4; ++i) compare(0, queries, true);
    for (size_t r = 0; r < queries.size(); ++r) {
      compare(r, {queries[r]}, r % 2 == 0);
      if (r % 5 == 0) compare(r, {queries.begin() + r, queries.end()}, r % 2 != 0);
    }
    report(different == 0 && error < 1e-2, "attention schedules",
           text("%d/%d heads dim %d window %d up to %d: %d rows differ, error %.1e", c.heads,
                c.kv_heads, c.dim, c.window, c.longest, different, error));
    if (c.longest <= 10000 && gpu.device->has_any_order_attention()) {  // on Hopper
      Launch last(gpu, scene, {queries[0]}, 1, true, RunLengths::kUnknown);
      report(last.is_joined_by_count(), "attention join",
             text("%d/%d heads dim %d by the last team", c.heads, c.kv_heads, c.dim));
    }
    check_attention_repeats(gpu, scene, queries);
  }
}

}  // namespace foretoken::check
