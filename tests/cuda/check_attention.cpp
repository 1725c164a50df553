#include "attention_scene.h"

namespace foretoken::check {

void check_attention(Gpu& gpu) {
  struct Case {
    int heads, kv_heads, dim, block_size, window;
    DType dtype;
    float softcap = 0;
    int kv_begin = 0;
    bool sinks = false;
    bool codes = false;
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
                                         {8, 2, 80, 16, 0, DType::kBF16, 2.0f, 1, true},
                                         {32, 8, 128, 16, 0, DType::kBF16, 0, 0, false, true},
                                         {4, 4, 128, 32, 300, DType::kBF16, 2.0f, 1, true, true},
                                         {40, 2, 64, 16, 77, DType::kBF16, 0, 0, false, true},
                                         {8, 1, 64, 32, 0, DType::kBF16, 0, 0, false, true},
                                         {8, 4, 80, 16, 0, DType::kBF16, 0, 0, true, true},
                                         {8, 2, 96, 16, 256, DType::kBF16, 1.0f, 0, false, true},
                                         {8, 4, 112, 16, 0, DType::kBF16, 0, 0, false, true},
                                         {4, 2, 192, 16, 0, DType::kBF16, 0, 0, false, true},
                                         {8, 1, 256, 16, 500, DType::kBF16, 0, 0, false, true},
                                         {6, 3, 72, 16, 0, DType::kBF16, 0, 0, false, true},
                                         {8, 2, 64, 16, 0, DType::kF32, 0, 0, false, true}}) {
    Pool pool(gpu);
    Scene scene = make_scene(gpu, pool, c.heads, c.kv_heads, c.dim, c.block_size, c.window, c.dtype,
                             c.softcap, c.kv_begin, {1, 37, 256, 257, 1100});
    if (c.sinks) scene.add_sinks(pool);
    if (c.codes) scene.use_codes(pool);
    std::vector<Query> queries = {{0, 0}, {1, 36}, {2, 255}, {3, 255}, {3, 256}, {4, 1099}};
    for (int p = 500; p < 620; ++p) queries.push_back({4, p});
    for (const int max_rows : {static_cast<int>(queries.size()) + 2, 256}) {
      for (const bool workspace : {false, true}) {
        Stored q;
        const auto bytes = run(gpu, scene, queries, max_rows, workspace, &q);
        const double error =
            relative_error(values_of(bytes, c.dtype), reference(scene, queries, q));
        report(
            error < (c.dtype == DType::kF32 ? 5e-6 : 1e-2), "attention",
            text("%s%s %d/%d heads dim %d window %d cap %g begin %d bucket %d%s error %.1e",
                 c.codes ? "fp8 " : "", dtype_name(c.dtype), c.heads, c.kv_heads, c.dim, c.window,
                 double{c.softcap}, c.kv_begin, max_rows, workspace ? " workspace" : "", error));
      }
    }
  }
}

namespace {

struct BitCase {
  int heads, kv_heads, dim, window;
  DType dtype;
  float softcap = 0;
  int kv_begin = 0;
  bool sinks = false;
  bool codes = false;
};
constexpr BitCase kBitCases[] = {{8, 2, 128, 0, DType::kBF16, 0, 0, true, true},
                                 {8, 2, 128, 333, DType::kBF16, 0, 0, false, true},
                                 {14, 2, 64, 0, DType::kBF16, 2.0f, 1, false, true},
                                 {32, 1, 128, 0, DType::kBF16, 0, 0, false, true},
                                 {8, 2, 80, 0, DType::kBF16, 0, 0, false, true},
                                 {4, 4, 256, 300, DType::kBF16, 0, 0, false, true},
                                 {8, 1, 192, 0, DType::kBF16, 0, 0, false, true},
                                 {8, 2, 40, 200, DType::kBF16, 0, 0, false, true},
                                 {8, 2, 128, 0, DType::kBF16},
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
                                 {8, 2, 64, 200, DType::kF32, 0, 0, true}};

}  // namespace

void check_attention_bits(Gpu& gpu) {
  for (const BitCase& c : kBitCases) {
    Pool pool(gpu);
    const int length = 1301;
    Scene scene = make_scene(gpu, pool, c.heads, c.kv_heads, c.dim, 16, c.window, c.dtype,
                             c.softcap, c.kv_begin, {length, 700, 90});
    if (c.sinks) scene.add_sinks(pool);
    if (c.codes) scene.use_codes(pool);
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
           text("%s%s %d/%d heads dim %d window %d cap %g begin %d: %d of %d rows differ",
                c.codes ? "fp8 " : "", dtype_name(c.dtype), c.heads, c.kv_heads, c.dim, c.window,
                double{c.softcap}, c.kv_begin, different, rows));
  }
}

}  // namespace foretoken::check
