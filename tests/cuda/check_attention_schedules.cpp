#include "attention_scene.h"

namespace foretoken::check {
namespace {

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
         text("%s%d/%d heads dim %d: %d of %d launches differ",
              scene.format == KvFormat::kFp8 ? "fp8 " : "", scene.heads, scene.kv_heads, scene.dim,
              different, kLaunches));
}

}  // namespace

// Runs where splits become wider, too: every row has the bits that it has alone, whoever merges its
// splits.
void check_attention_schedules(Gpu& gpu) {
  struct Case {
    int heads, kv_heads, dim, block_size, window;
    int longest = 20000;
    bool sinks = false;
    bool codes = false;
  };
  // Up to 10,240 tokens the team that ends a tile last joins its splits.
  for (const Case& c : std::vector<Case>{{32, 8, 128, 16, 0, 10000, false, true},
                                         {32, 8, 128, 16, 0, 20000, false, true},
                                         {8, 1, 64, 32, 0, 20000, true, true},
                                         {6, 2, 128, 32, 3000, 10000, false, true},
                                         {4, 4, 80, 16, 0, 20000, false, true},
                                         {32, 8, 128, 16, 0, 10000},
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
    if (c.codes) scene.use_codes(pool);
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
           text("%s%d/%d heads dim %d window %d up to %d: %d rows differ, error %.1e",
                c.codes ? "fp8 " : "", c.heads, c.kv_heads, c.dim, c.window, c.longest, different,
                error));
    if (c.longest <= 10000 && has_attention(*gpu.device, AttentionFamily::kFlash)) {  // on Hopper
      Launch last(gpu, scene, {queries[0]}, 1, true, RunLengths::kUnknown);
      report(last.is_joined_by_count(), "attention join",
             text("%d/%d heads dim %d by the last team", c.heads, c.kv_heads, c.dim));
    }
    check_attention_repeats(gpu, scene, queries);
  }
}

}  // namespace foretoken::check
