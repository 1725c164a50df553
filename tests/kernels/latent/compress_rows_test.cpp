#include "kernels/latent/compress_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/latent/cpu/coded_entry.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kEntryDim = 16, kEntryRope = 4, kEntryBlock = 8, kEntryBlocks = 6;
constexpr float kEntryEps = 1e-6f;

struct Windows {
  int ratio;
  bool overlaps;
  KvFormat format = KvFormat::kPlain;
};

// Two sequences in slots 0 and 2, whose positions lie in blocks of their own.
class CompressRowsTest : public RowOpTest, public testing::WithParamInterface<Windows> {
 protected:
  static constexpr int kLength = 24, kBack = 3;
  int ratio() const { return GetParam().ratio; }
  int width() const { return GetParam().overlaps ? 2 * kEntryDim : kEntryDim; }
  int span() const { return GetParam().overlaps ? 2 * ratio() : ratio(); }
  static EntryForm form() { return {GetParam().format, DType::kF32, kEntryDim, kEntryRope}; }
  static size_t entry_bytes() { return static_cast<size_t>(form().bytes()); }
  int entries_each() const { return entries_of_block(kEntryBlock, ratio()); }

  void SetUp() override {
    RowOpTest::SetUp();
    if (test_device() == nullptr) return;
    bias_ = random_floats(size_t(ratio()) * size_t(width()), 1);
    norm_ = random_floats(kEntryDim, 2);
    for (const int slot : {0, 2}) {
      inputs_[slot] =
          random_floats(size_t{kLength} * size_t(2 * width()), 3 + uint64_t(slot), 2.0f);
    }
    history_rows_ = span() - 1 + kBack;
    history_ = allocate<float>(3 * size_t(history_rows_) * size_t(2 * width()));
    const size_t bytes = size_t{kEntryBlocks} * size_t(entries_each()) * entry_bytes();
    entries_ = marked(bytes);
  }
  static int block_of(int slot, int position) {
    return (slot == 0 ? 0 : 3) + position / kEntryBlock;
  }

  struct Run {
    int slot;
    int begin;
    int end;
  };
  // One step with these runs, whose inputs may be taken from another text.
  void step(const std::vector<Run>& runs, float wrong = 0) {
    std::vector<float> x;
    std::vector<int32_t> positions, slots, kv_slots;
    for (const Run& run : runs) {
      for (int p = run.begin; p < run.end; ++p) {
        const float* from = &inputs_.at(run.slot)[size_t(p) * size_t(2 * width())];
        for (int i = 0; i < 2 * width(); ++i) x.push_back(from[i] + wrong);
        positions.push_back(p);
        slots.push_back(run.slot);
        kv_slots.push_back(block_of(run.slot, p) * kEntryBlock + p % kEntryBlock);
      }
    }
    const auto rows = static_cast<int>(positions.size());
    compress_rows(queue(), {.counts = counts(rows),
                            .x = to_device(x),
                            .bias = to_device(bias_),
                            .norm = to_device(norm_),
                            .inv_freq = to_device(std::vector<float>{0.7f, 0.2f}),
                            .positions = to_device(positions),
                            .row_slot = to_device(slots),
                            .kv_slot = to_device(kv_slots),
                            .history = history_,
                            .entries = entries_,
                            .x_stride = 2 * width(),
                            .history_rows = history_rows_,
                            .history_stride = 2 * width(),
                            .block_size = kEntryBlock,
                            .max_rows = rows,
                            .head_dim = kEntryDim,
                            .ratio = ratio(),
                            .overlaps = GetParam().overlaps ? 1 : 0,
                            .rope_dim = kEntryRope,
                            .scaling = 1,
                            .norm_eps = kEntryEps,
                            .dtype = DType::kF32,
                            .format = GetParam().format});
  }
  std::vector<float> entry(int slot, int window) {
    const int end = (window + 1) * ratio() - 1;
    const int64_t place =
        int64_t{block_of(slot, end)} * entries_each() + end % kEntryBlock / ratio();
    const auto raw = read(entries_ + place * form().bytes(), entry_bytes());
    const auto* from = reinterpret_cast<const std::byte*>(raw.data());
    std::vector<float> values(kEntryDim);
    if (form().has_codes()) {
      cpu::widen_coded_entry<float>(form(), from, values.data());
    } else {
      std::memcpy(values.data(), from, entry_bytes());
    }
    return values;
  }
  std::vector<double> expected(int slot, int window) const {
    const int end = (window + 1) * ratio() - 1, begin = std::max(0, end + 1 - span());
    std::vector<double> made(kEntryDim);
    for (int c = 0; c < kEntryDim; ++c) {
      double sum = 0, weighted = 0;
      for (int p = begin; p <= end; ++p) {
        const bool own = GetParam().overlaps && p > end - ratio();
        const size_t column = size_t(c + (own ? kEntryDim : 0));
        const float* in = &inputs_.at(slot)[size_t(p) * size_t(2 * width())];
        const double gate = double(in[size_t(width()) + column]) +
                            double(bias_[size_t(p % ratio()) * size_t(width()) + column]);
        sum += std::exp(gate);
        weighted += std::exp(gate) * double(in[column]);
      }
      made[size_t(c)] = weighted / sum;
    }
    double squares = 0;
    for (const double value : made) squares += value * value / kEntryDim;
    for (size_t c = 0; c < made.size(); ++c) {
      made[c] *= double(norm_[c]) / std::sqrt(squares + double(kEntryEps));
    }
    const double frequencies[] = {0.7f, 0.2f};
    double* tail = made.data() + kEntryDim - kEntryRope;
    for (size_t i = 0; i < 2; ++i) {
      const double angle = window * ratio() * frequencies[i], a = tail[2 * i], b = tail[2 * i + 1];
      tail[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      tail[2 * i + 1] = b * std::cos(angle) + a * std::sin(angle);
    }
    return made;
  }
  void expect_entries(int slot, int length) {
    for (int window = 0; window < length / ratio(); ++window) {
      const auto got = entry(slot, window);
      const auto want = expected(slot, window);
      double highest = 0;
      for (size_t c = 0; c < kEntryDim - kEntryRope; ++c) {
        highest = std::max(highest, std::abs(want[c]));
      }
      const bool integers = GetParam().format == KvFormat::kInt8;
      for (size_t c = 0; c < want.size(); ++c) {
        // Half a step of codes, whose largest of a group reaches at least half as far as they do.
        const bool is_code = form().has_codes() && c < kEntryDim - kEntryRope;
        const double of_floats = std::abs(want[c]) / 16 + 0x1p-10;
        const double step = !is_code ? 0 : integers ? highest / 253 : of_floats;
        ASSERT_NEAR(got[c], want[c], 2e-5 + step) << "slot " << slot << " window " << window;
      }
    }
  }
  std::vector<float> all_entries(int slot) {
    std::vector<float> all;
    for (int window = 0; window < kLength / ratio(); ++window) {
      const auto one = entry(slot, window);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  std::vector<float> bias_, norm_;
  std::map<int, std::vector<float>> inputs_;
  int history_rows_ = 0;
  float* history_ = nullptr;
  uint8_t* entries_ = nullptr;
};

TEST_P(CompressRowsTest, EntriesAreWeightedMeansOfTheirWindows) {
  step({{0, 0, kLength}, {2, 0, kLength - 1}});
  expect_entries(0, kLength);
  expect_entries(2, kLength - 1);
  // A window that is not full has no entry.
  const size_t each = entry_bytes();
  const size_t last = size_t(block_of(2, kLength - 1) + 1) * size_t(entries_each()) * each;
  const auto raw = read(entries_, last);
  for (size_t b = last - each; b < last; ++b) ASSERT_EQ(raw[b], 0x5a);
}

// The same bits whatever steps the rows come in, and whatever was taken back between them.
TEST_P(CompressRowsTest, StepsAndRejectedRowsLeaveNoTrace) {
  step({{0, 0, kLength}});
  const auto whole = all_entries(0);
  for (const int cut : {1, 2, 3, 5}) {
    for (int p = 0; p < kLength; p += cut) {
      const int end = std::min(p + cut, kLength);
      step({{2, 0, 5}, {0, p, std::min(p + kBack, kLength)}}, 3.0f);  // drafts that are rejected
      step({{0, p, end}});
    }
    EXPECT_EQ(all_entries(0), whole) << cut;
  }
}

// Each entry has a place on one rank, and those of a block lie in front of the next block's.
TEST(CompressedPlaces, EntriesAreDealtToTheRanks) {
  for (const int ranks : {1, 2, 4}) {
    for (const int ratio : {4, 16, 64}) {
      const int block = 16 * ranks, each = entries_of_block(block, ratio, ranks);
      EXPECT_EQ(each, std::max(1, 16 / ratio));
      std::vector<int64_t> next(static_cast<size_t>(ranks), -1);
      for (int p = ratio - 1; p < 512; p += ratio) {
        int holders = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          CompressRowsArgs args{};
          args.ratio = ratio;
          args.context_size = ranks;
          args.context_rank = rank;
          EXPECT_FALSE(makes_entry(args, p - 1));
          if (!makes_entry(args, p)) continue;
          ++holders;
          const int64_t place = compressed_entry(p, block, ratio, ranks);
          EXPECT_GT(place, next[size_t(rank)]);
          EXPECT_EQ(place / each, p / block);
          next[size_t(rank)] = place;
        }
        EXPECT_EQ(holders, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompressRowsTest,
                         testing::Values(Windows{4, true}, Windows{8, false}, Windows{2, true},
                                         Windows{12, false}, Windows{4, true, KvFormat::kFp8},
                                         Windows{8, false, KvFormat::kFp8},
                                         Windows{4, true, KvFormat::kInt8}),
                         [](const auto& test) {
                           return std::to_string(test.param.ratio) +
                                  (test.param.overlaps ? "Overlapping" : "Apart") +
                                  (test.param.format == KvFormat::kFp8    ? "Codes"
                                   : test.param.format == KvFormat::kInt8 ? "Integers"
                                                                          : "");
                         });

}  // namespace
}  // namespace foretoken
