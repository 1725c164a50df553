#include "kernels/latent/attend_compressed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/latent/cpu/coded_entry.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kSeenHeads = 3, kSeenBlock = 8, kSeenBlocks = 24;
constexpr int kSeenTop = 3;
constexpr float kSeenScale = 0.4f;

struct Seen {
  int ratio;  // 0: the window alone
  bool chooses;
  DType dtype;
  int kv_begin = 0;
  int dim = 16;
  int window = 6;
  KvFormat format = KvFormat::kPlain;
};

class AttendCompressedTest : public RowOpTest, public testing::WithParamInterface<Seen> {
 protected:
  using Row = std::vector<double>;
  static int dim() { return GetParam().dim; }
  // Codes of the published size have its number of turning elements, too.
  static int rope() { return GetParam().format != KvFormat::kPlain && dim() == 512 ? 64 : 4; }
  static std::vector<float> frequencies() {
    std::vector<float> all = {0.7f, 0.2f};
    while (all.size() < size_t(rope()) / 2) all.push_back(all.back() * 0.8f);
    return all;
  }
  // Entries as the cache has them, and what they stand for.
  struct Cache {
    std::vector<uint8_t> bytes;
    std::vector<float> values;
  };
  static Cache cache_of(const std::vector<float>& x) {
    const auto [format, dtype] = std::pair(GetParam().format, GetParam().dtype);
    if (format == KvFormat::kPlain) {
      const auto typed = typed_data(x, dtype);
      return {typed.bytes, typed.values};
    }
    const EntryForm form{format, dtype, dim(), rope()};
    const size_t each = size_t(form.bytes()), count = x.size() / size_t(dim());
    Cache cache{std::vector<uint8_t>(count * each), std::vector<float>(x.size())};
    for (size_t i = 0; i < count; ++i) {
      auto* entry = reinterpret_cast<std::byte*>(cache.bytes.data()) + i * each;
      const float* from = x.data() + i * size_t(dim());
      float* values = cache.values.data() + i * size_t(dim());
      if (dtype == DType::kF32) {
        cpu::store_coded_entry<float>(form, from, entry);
        cpu::widen_coded_entry<float>(form, entry, values);
      } else {
        cpu::store_coded_entry<uint16_t>(form, from, entry);
        cpu::widen_coded_entry<uint16_t>(form, entry, values);
      }
    }
    return cache;
  }
  static Row turned_by(Row head, int position) {
    const std::vector<float> by = frequencies();
    double* tail = head.data() + dim() - rope();
    for (size_t i = 0; i < by.size(); ++i) {
      const double angle = position * double(by[i]), a = tail[2 * i], b = tail[2 * i + 1];
      tail[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      tail[2 * i + 1] = b * std::cos(angle) + a * std::sin(angle);
    }
    return head;
  }
  static Row row_at(const std::vector<float>& all, size_t place) {
    const auto from = all.begin() + static_cast<ptrdiff_t>(place) * dim();
    return {from, from + dim()};
  }
  // What a head reads of these entries.
  static Row attended(const Row& q, double sink, const std::vector<Row>& entries) {
    std::vector<double> scores;
    for (const Row& entry : entries) {
      scores.push_back(double(kSeenScale) *
                       std::inner_product(q.begin(), q.end(), entry.begin(), 0.0));
    }
    double sum = std::exp(sink);
    Row out(static_cast<size_t>(dim()));
    for (size_t i = 0; i < entries.size(); ++i) {
      sum += std::exp(scores[i]);
      for (size_t c = 0; c < out.size(); ++c) out[c] += std::exp(scores[i]) * entries[i][c];
    }
    for (double& value : out) value /= sum;
    return out;
  }
};

TEST_P(AttendCompressedTest, RowsReadTheirWindowAndTheEntriesBehindIt) {
  const auto [ratio, chooses, dtype, kv_begin, dim, window, format] = GetParam();
  const std::vector<int32_t> positions = {0, 3, 17, 100, 30}, slots = {0, 0, 0, 1, 1};
  const int rows = 4, most = 5, max_blocks = 13;
  const auto q = typed_data(random_floats(size_t(most * kSeenHeads * dim), 1), dtype);
  const auto kv = cache_of(random_floats(size_t(kSeenBlocks * kSeenBlock * dim), 2));
  const int each = ratio > 0 ? entries_of_block(kSeenBlock, ratio) : 1;
  const auto entries = cache_of(random_floats(size_t(kSeenBlocks * each * dim), 3));
  const std::vector<float> sinks = {0.5f, -1.0f, 2.0f};
  std::vector<int32_t> window_tables, block_tables;
  for (int i = 0; i < 2 * max_blocks; ++i) {
    window_tables.push_back((i * 7 + 3) % kSeenBlocks);
    block_tables.push_back((i * 5 + 1) % kSeenBlocks);
  }
  std::vector<int32_t> chosen(size_t(most) * kSeenTop, 1 << 30);
  for (int r = 0; chooses && r < rows; ++r) {
    const int count = std::min(kSeenTop, (positions[size_t(r)] + 1) / ratio);
    for (int i = 0; i < count; ++i)
      chosen[size_t(r * kSeenTop + i)] = (r * 4 + i * 3) % kSeenBlocks;
  }
  const size_t bytes = q.bytes.size();
  uint8_t* out = marked(bytes);
  attend_compressed(queue(), {.counts = counts(rows),
                              .q = upload_typed(q),
                              .out = out,
                              .positions = to_device(positions),
                              .row_slot = to_device(slots),
                              .kv = to_device(kv.bytes),
                              .window_tables = to_device(window_tables),
                              .entries = ratio > 0 ? to_device(entries.bytes) : nullptr,
                              .block_tables = to_device(block_tables),
                              .chosen = chooses ? to_device(chosen) : nullptr,
                              .sinks = to_device(sinks),
                              .inv_freq = to_device(frequencies()),
                              .max_blocks = max_blocks,
                              .block_size = kSeenBlock,
                              .max_rows = most,
                              .num_heads = kSeenHeads,
                              .head_dim = dim,
                              .window = window,
                              .ratio = ratio,
                              .top = kSeenTop,
                              .rope_dim = rope(),
                              .scale = kSeenScale,
                              .scaling = 1,
                              .dtype = dtype,
                              .kv_begin = kv_begin,
                              .position_shift = -kv_begin,
                              .format = format});
  const auto raw = read(out, bytes);
  const auto got = to_floats(raw, dtype);
  // Tensor cores take weights of bfloat16.
  const double rest = dim == 512 && dtype == DType::kBF16 ? 4e-3 : 2e-5;
  for (int r = 0; r < rows; ++r) {
    const int position = positions[size_t(r)], table = slots[size_t(r)] * max_blocks;
    std::vector<Row> seen;
    for (int p = std::max(kv_begin, position + 1 - window); p <= position; ++p) {
      const int block = window_tables[size_t(table + p / kSeenBlock)];
      seen.push_back(row_at(kv.values, size_t(block * kSeenBlock + p % kSeenBlock)));
    }
    for (int w = 0; ratio > 0 && w < (position + 1) / ratio; ++w) {
      if (chooses && w == kSeenTop) break;
      const int end = (w + 1) * ratio - 1, block = block_tables[size_t(table + end / kSeenBlock)];
      const int place =
          chooses ? chosen[size_t(r * kSeenTop + w)] : block * each + end % kSeenBlock / ratio;
      seen.push_back(row_at(entries.values, size_t(place)));
    }
    for (int h = 0; h < kSeenHeads; ++h) {
      const size_t place = size_t(r * kSeenHeads + h);
      const Row want = turned_by(attended(row_at(q.values, place), double(sinks[size_t(h)]), seen),
                                 kv_begin - position);
      for (size_t c = 0; c < want.size(); ++c) {
        ASSERT_NEAR(got[place * size_t(dim) + c], want[c],
                    std::abs(want[c]) * storage_error(dtype) + rest)
            << "row " << r << " head " << h;
      }
    }
  }
  expect_marked(raw, size_t(rows * kSeenHeads * dim) * dtype_size(dtype));
}

// Of two ranks, which have every second entry each, and what both leave.
class SharedEntriesTest : public AttendCompressedTest {
 protected:
  static constexpr int kRanks = 2, kRows = 4, kMaxBlocks = 13;

  static int table_block(int slot, int index) { return ((slot * kMaxBlocks + index) * 5 + 1) % 24; }
  // Of `each` entries of a block those of a rank; a single one is on both.
  static std::vector<uint8_t> dealt(const std::vector<uint8_t>& all, int each, int rank) {
    const auto bytes =
        static_cast<size_t>(EntryForm{GetParam().format, GetParam().dtype, dim(), rope()}.bytes());
    std::vector<uint8_t> own;
    for (size_t entry = 0; entry * bytes < all.size(); ++entry) {
      const int place = static_cast<int>(entry) % each;
      if (each > 1 && place % kRanks != rank) continue;
      const auto from = all.begin() + static_cast<ptrdiff_t>(entry * bytes);
      own.insert(own.end(), from, from + static_cast<ptrdiff_t>(bytes));
    }
    return own;
  }
  // rank < 0: one has all.
  AttendCompressedArgs args_of(int rank) {
    const auto [ratio, chooses, dtype, kv_begin, dim, window, format] = GetParam();
    const int ranks = rank < 0 ? 1 : kRanks, own = std::max(rank, 0);
    const int each = ratio > 0 ? entries_of_block(kSeenBlock, ratio) : 1;
    const auto kv = cache_of(random_floats(size_t(kSeenBlocks * kSeenBlock * dim), 2)).bytes;
    const auto entries = cache_of(random_floats(size_t(kSeenBlocks * each * dim), 3)).bytes;
    std::vector<int32_t> tables, chosen(size_t(kRows) * kSeenTop), last;
    for (int i = 0; i < 2 * kMaxBlocks; ++i) tables.push_back(table_block(0, i));
    for (int r = 0; chooses && r < kRows; ++r) {
      int count = 0;
      for (int w = 0; w < std::min(kSeenTop, (positions_[size_t(r)] + 1) / ratio); ++w) {
        if (w % ranks != own) continue;
        const int end = (w + 1) * ratio - 1;
        const int block = table_block(slots_[size_t(r)], end / kSeenBlock);
        const int64_t slot = int64_t{block} * kSeenBlock + end % kSeenBlock;
        chosen[size_t(r * kSeenTop + count++)] =
            static_cast<int32_t>(compressed_entry(slot, kSeenBlock, ratio, ranks));
      }
      last.push_back((count - 1) * ranks + own);
    }
    AttendCompressedArgs args{};
    args.counts = counts(kRows);
    args.q = upload_typed(typed_data(random_floats(size_t(kRows * kSeenHeads * dim), 1), dtype));
    args.positions = to_device(positions_);
    args.row_slot = to_device(slots_);
    args.kv = to_device(rank < 0 ? kv : dealt(kv, kSeenBlock, own));
    args.window_tables = args.block_tables = to_device(tables);
    if (ratio > 0) args.entries = to_device(rank < 0 ? entries : dealt(entries, each, own));
    if (chooses) args.chosen = to_device(chosen);
    if (chooses && rank >= 0) args.chosen_last = to_device(last);
    args.inv_freq = to_device(frequencies());
    args.max_blocks = kMaxBlocks;
    args.block_size = kSeenBlock / ranks;
    args.max_rows = kRows;
    args.num_heads = kSeenHeads;
    args.head_dim = dim;
    args.window = window;
    args.ratio = ratio;
    args.top = kSeenTop;
    args.rope_dim = rope();
    args.scale = kSeenScale;
    args.scaling = 1;
    args.dtype = dtype;
    args.kv_begin = kv_begin;
    args.format = format;
    args.context_size = ranks;
    args.context_rank = own;
    return args;
  }
  std::vector<float> states_of(int rank) {
    AttendCompressedArgs args = args_of(rank);
    const size_t count = size_t(kRows * kSeenHeads) * size_t(attention_state_size(dim()));
    args.states = allocate<float>(static_cast<int64_t>(count));
    args.part_heads = kSeenHeads;
    attend_compressed(queue(), args);
    return read(args.states, count);
  }

  const std::vector<int32_t> positions_ = {0, 3, 17, 100}, slots_ = {0, 0, 0, 1};
  const std::vector<float> sinks_ = {0.5f, -1.0f, 2.0f};
};

TEST_P(SharedEntriesTest, TwoRanksSeeAllTogether) {
  AttendCompressedArgs whole = args_of(-1);
  const size_t bytes = size_t(kRows * kSeenHeads * dim()) * dtype_size(GetParam().dtype);
  uint8_t* out = marked(bytes);
  whole.out = out;
  whole.sinks = to_device(sinks_);
  attend_compressed(queue(), whole);
  const auto want = to_floats(read(out, bytes), GetParam().dtype);
  const std::vector<float> parts[] = {states_of(0), states_of(1)};
  const double rest = dim() == 512 && GetParam().dtype == DType::kBF16 ? 8e-3 : 1e-4;
  const auto size = static_cast<size_t>(attention_state_size(dim()));
  for (size_t i = 0; i < size_t(kRows * kSeenHeads); ++i) {
    double sum = std::exp(double(sinks_[i % kSeenHeads]));
    Row values(static_cast<size_t>(dim()));
    for (const std::vector<float>& part : parts) {
      const float* state = part.data() + i * size;
      if (state[dim() + 1] == 0) continue;
      const double scale = std::exp(double(state[dim()]));
      sum += double(state[dim() + 1]) * scale;
      for (size_t c = 0; c < values.size(); ++c) values[c] += double(state[c]) * scale;
    }
    for (double& value : values) value /= sum;
    values = turned_by(values, -positions_[i / kSeenHeads]);
    for (size_t c = 0; c < values.size(); ++c) {
      ASSERT_NEAR(want[i * values.size() + c], values[c],
                  std::abs(values[c]) * storage_error(GetParam().dtype) + rest)
          << "row " << i / kSeenHeads << " head " << i % kSeenHeads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedEntriesTest,
                         testing::Values(Seen{0, false, DType::kF32}, Seen{4, true, DType::kF32},
                                         Seen{4, true, DType::kBF16}, Seen{16, false, DType::kF32},
                                         Seen{2, false, DType::kBF16, 2},
                                         Seen{4, true, DType::kBF16, 0, 512, 90},
                                         Seen{2, false, DType::kF32, 2, 80, 6, KvFormat::kFp8}));

INSTANTIATE_TEST_SUITE_P(
    All, AttendCompressedTest,
    testing::Values(Seen{0, false, DType::kF32}, Seen{0, false, DType::kF32, 2},
                    Seen{4, true, DType::kF32}, Seen{4, true, DType::kBF16},
                    Seen{16, false, DType::kF32}, Seen{2, false, DType::kBF16},
                    Seen{0, false, DType::kBF16, 0, 512, 100},
                    Seen{4, true, DType::kBF16, 0, 512, 90},
                    Seen{2, false, DType::kBF16, 0, 512, 90}, Seen{2, false, DType::kF32, 0, 512},
                    Seen{4, true, DType::kF32, 0, 80, 6, KvFormat::kFp8},
                    Seen{2, false, DType::kBF16, 2, 16, 6, KvFormat::kFp8},
                    Seen{0, false, DType::kBF16, 0, 512, 100, KvFormat::kFp8},
                    Seen{4, true, DType::kBF16, 0, 512, 90, KvFormat::kFp8},
                    Seen{2, false, DType::kBF16, 0, 512, 90, KvFormat::kFp8},
                    Seen{4, true, DType::kF32, 0, 80, 6, KvFormat::kInt8},
                    Seen{2, false, DType::kBF16, 0, 512, 90, KvFormat::kInt8}));

}  // namespace
}  // namespace foretoken
