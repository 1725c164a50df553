#include "kernels/comm/context_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bfloat16.h"
#include "device/device.h"
#include "group/local_link.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/devices/open_device.h"
#include "kernels/flex/flex_program.h"
#include "kernels/latent/latent_kv.h"
#include "support/nccl.h"
#include "support/random_data.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int kPositions = 700, kOwnHeads = 2, kBlock = 16;

// A rank with device and queue of its own, in a group of the ranks of a communicator; without links
// it is alone, on the CPU, whose results are the reference.
class ContextRank {
 public:
  explicit ContextRank(const group::LaneLinks* links, int size, bool nccl = false) {
    device_ = links == nullptr
                  ? open_device(DeviceType::kCpu, 0, 1).value()
                  : open_rank_device(link_of(*links, group::Lane::kCollectives).rank());
    memory_ = static_cast<char*>(device_->allocate(kRankBytes, MemoryKind::kPinned));
    if (links != nullptr) {
      comm_ = device_
                  ->make_communicator(link_of(*links, group::Lane::kCollectives),
                                      {.avoids_peer_memory = nccl})
                  .value();
      const int place = comm_->rank() % size;
      ranks = {comm_->handle(), comm_->rank() - place, place, size};
    }
    queue_ = device_->make_queue().value();
  }
  ~ContextRank() {
    queue_.reset();
    comm_.reset();
    device_->deallocate(memory_, MemoryKind::kPinned);
  }

  template <class T>
  T* array(size_t count) {
    void* taken = memory_ + used_;
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    EXPECT_LE(used_, kRankBytes);
    return static_cast<T*>(taken);
  }
  template <class T>
  T* copy(const std::vector<T>& values) {
    T* memory = array<T>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  StepCounts* counts(int rows) { return copy<StepCounts>({{rows, 0, 0, 0}}); }
  Queue& queue() { return *queue_; }
  void drain() { ASSERT_TRUE(queue_->drain().ok()); }

  ContextRanks ranks;

 private:
  // Taken before ranks wait for each other: a device may take memory only between its kernels.
  static constexpr size_t kRankBytes = 8 << 20;

  std::unique_ptr<Device> device_;
  char* memory_ = nullptr;
  size_t used_ = 0;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Queue> queue_;
};

void on_groups_by(bool nccl, int num_groups, int size,
                  const std::function<void(ContextRank&, int)>& body) {
  const auto links = group::make_local_links(num_groups * size);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < links.size(); ++i) {
    threads.emplace_back([&, i] {
      ContextRank rank(&links[i], size, nccl);
      body(rank, static_cast<int>(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Runs body(rank, its number among all) on `num_groups` groups of `size` ranks, on GPUs by both
// routes.
void on_groups(int num_groups, int size, const std::function<void(ContextRank&, int)>& body) {
  if (!missing_devices(num_groups * size).empty()) return;
  on_groups_by(false, num_groups, size, body);
  const bool on_gpus = test_device() != nullptr && test_device()->type() != DeviceType::kCpu;
  if (on_gpus && has_nccl()) on_groups_by(true, num_groups, size, body);
}

// Rows that take several exchanges, read by an index, in pieces that are interleaved by rank.
TEST(ContextExchange, PiecesOfAllRanksComeTogether) {
  constexpr int kRows = 90, kPieces = 3, kWords = 700;
  const auto word = [](int rank, int row, int piece, int i) {
    return ((rank * 1000 + row) * kPieces + piece) * kWords + i;
  };
  on_groups(2, 2, [&](ContextRank& rank, int number) {
    std::vector<int32_t> rows;
    for (int row = 0; row < kRows; ++row) {
      for (int p = 0; p < kPieces; ++p) {
        for (int i = 0; i < kWords; ++i) rows.push_back(word(number, row, p, i));
      }
    }
    std::vector<int32_t> from(kRows);
    for (int row = 0; row < kRows; ++row) from[static_cast<size_t>(row)] = kRows - 1 - row;
    auto* out = rank.array<int32_t>(size_t{kRows} * kPieces * 2 * kWords);
    for (const int live : {0, 1, kRows - 1}) {
      out[size_t(live) * kPieces * 2 * kWords] = -1;
      gather_parts(rank.queue(), {.counts = rank.counts(live),
                                  .in = rank.copy(rows),
                                  .from = rank.copy(from),
                                  .out = out,
                                  .ranks = rank.ranks,
                                  .max_rows = kRows,
                                  .pieces = kPieces,
                                  .piece_bytes = kWords * 4});
      rank.drain();
      const int32_t* at = out;
      for (int row = 0; row < live; ++row) {
        for (int p = 0; p < kPieces; ++p) {
          for (int r = 0; r < 2; ++r) {
            for (int i = 0; i < kWords; ++i, ++at) {
              ASSERT_EQ(*at, word(rank.ranks.first + r, kRows - 1 - row, p, i));
            }
          }
        }
      }
      EXPECT_EQ(*at, -1) << "rows that are not live";
    }
  });
}

struct Form {
  const char* name;
  DType dtype = DType::kF32;
  KvFormat format = KvFormat::kPlain;
  int head_dim = 32;
  int value_dim = 0;  // of latents
  int window = 0;
  int kv_begin = 0;
  bool sinks = false;
  bool slopes = false;
  const char* mask = "";  // of a program, with a score
  double error = 2e-5;

  int value_size() const { return value_dim > 0 ? value_dim : head_dim; }
  bool sees_prompts() const { return std::string(mask).find("prompt") != std::string::npos; }
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

// Attention of `rank` over a cache that ranks (or it alone) have written together.
class Attending {
 public:
  Attending(ContextRank& rank, const Form& form, int num_parts)
      : rank_(rank), form_(form), num_parts_(num_parts) {
    const int size = rank.ranks.size;
    const int block = kBlock * num_parts / size;
    const int num_blocks = (kPositions + kBlock * num_parts - 1) / (kBlock * num_parts) + 1;
    kv_ = {.k = nullptr,
           .v = nullptr,
           .num_kv_heads = 1,
           .block_size = block,
           .head_dim = form.head_dim,
           .dtype = form.dtype,
           .format = form.format,
           .value_dim = form.value_dim};
    kv_.context_size = size;
    kv_.context_rank = rank.ranks.rank;
    const auto bytes = static_cast<size_t>(num_blocks * block * kv_entry_bytes(kv_));
    kv_.k = rank.array<char>(bytes);
    kv_.v = form.value_dim > 0 ? kv_.k : rank.array<char>(bytes);
    for (int i = 0; i < num_blocks - 1; ++i) table_.push_back(num_blocks - 1 - i);
    if (*form.mask != '\0')
      program_ = parse_flex(form.mask, "score - 0.01 * (h + 1) * (q - kv)").value();
    write();
  }

  // Of rows `first`, ... of all queries; [rows, heads of the rank, value_size].
  std::vector<float> run(const std::vector<int32_t>& positions, size_t first) {
    const auto rows = static_cast<int>(positions.size());
    const int own = rank_.ranks.are_several() ? kOwnHeads : kOwnHeads * num_parts_;
    AttentionArgs args{};
    args.counts = rank_.counts(rows);
    args.positions = rank_.copy(positions);
    args.row_slot = rank_.copy(std::vector<int32_t>(positions.size()));
    args.block_tables = rank_.copy(table_);
    args.max_blocks = static_cast<int32_t>(table_.size());
    args.max_rows = rows + 3;
    args.kv = kv_;
    args.window = form_.window;
    args.kv_begin = form_.kv_begin;
    args.scale = 0.2f;
    const size_t count = positions.size() * static_cast<size_t>(own * form_.value_size());
    auto* out = rank_.array<char>(count * dtype_size(form_.dtype));
    args.q = queries(positions.size(), first, own);
    args.num_heads = own;
    args.out = out;
    args.sinks = sinks();
    args.slopes = slopes();
    if (*form_.mask != '\0') {
      args.flex = &program_;
      args.family = AttentionFamily::kFlex;
    }
    if (rank_.ranks.are_several()) {
      merge(args, own);
    } else {
      attention(rank_.queue(), args);
    }
    rank_.drain();
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = form_.dtype == DType::kF32 ? reinterpret_cast<const float*>(out)[i]
                                             : bf16_to_float(reinterpret_cast<uint16_t*>(out)[i]);
    }
    return values;
  }

 private:
  void write();
  void merge(AttentionArgs args, int own);
  const float* sinks() {
    if (!form_.sinks) return nullptr;
    std::vector<float> all;
    const int first = rank_.ranks.are_several() ? rank_.ranks.rank * kOwnHeads : 0;
    for (int h = 0; h < kOwnHeads * num_parts_; ++h) all.push_back(static_cast<float>(first + h));
    return rank_.copy(all);
  }
  // Those of all heads: of one rank, too.
  const float* slopes() {
    if (!form_.slopes) return nullptr;
    std::vector<float> all;
    for (int h = 0; h < kOwnHeads * num_parts_; ++h)
      all.push_back(0.5f / static_cast<float>(h + 1));
    return rank_.copy(all);
  }
  const void* queries(size_t rows, size_t first, int own) {
    const auto width = static_cast<size_t>(kOwnHeads * num_parts_ * form_.head_dim);
    const auto part = static_cast<size_t>(own * form_.head_dim);
    const std::vector<float> all = random_floats(64 * width, 3);
    std::vector<float> mine;
    for (size_t row = first; row < first + rows; ++row) {
      const auto begin =
          all.begin() +
          static_cast<ptrdiff_t>(row * width + static_cast<size_t>(rank_.ranks.rank) * part);
      mine.insert(mine.end(), begin, begin + static_cast<ptrdiff_t>(part));
    }
    return rank_.copy(typed_data(mine, form_.dtype).bytes);
  }

  ContextRank& rank_;
  const Form form_;
  const int num_parts_;
  KvLayer kv_{};
  std::vector<int32_t> table_;
  FlexProgram program_;
};

// All positions in one op. The null block takes what is not asked for.
void Attending::write() {
  const int block = kBlock * num_parts_;
  std::vector<int32_t> positions, slots;
  for (int p = 0; p < kPositions; ++p) {
    positions.push_back(p);
    slots.push_back(table_[static_cast<size_t>(p / block)] * block + p % block);
  }
  const auto width = static_cast<size_t>(3 * form_.head_dim);
  const float* x = rank_.copy(random_floats(kPositions * width, 1));
  if (form_.value_dim > 0) {
    latent_kv(rank_.queue(),
              {.counts = rank_.counts(kPositions),
               .x = x,
               .q_out = nullptr,
               .positions = rank_.copy(positions),
               .kv_slot = rank_.copy(slots),
               .inv_freq = nullptr,
               .kv_norm = rank_.copy(std::vector<float>(static_cast<size_t>(form_.value_dim), 1)),
               .q_norm = nullptr,
               .kv = kv_,
               .max_rows = kPositions,
               .q_size = 2 * form_.head_dim,
               .kv_rank = form_.value_dim,
               .rope_dim = form_.head_dim - form_.value_dim,
               .scaling = 1,
               .norm_eps = 1e-6f});
  } else {
    rope_kv(rank_.queue(), {.counts = rank_.counts(kPositions),
                            .qkv = x,
                            .q_out = rank_.array<float>(kPositions * width),
                            .positions = rank_.copy(positions),
                            .kv_slot = rank_.copy(slots),
                            .inv_freq = nullptr,
                            .kv = kv_,
                            .max_rows = kPositions,
                            .num_heads = 1,
                            .rotary_dim = 0,
                            .scaling = 1});
  }
  rank_.drain();
}

void Attending::merge(AttentionArgs args, int own) {
  const ContextRanks& ranks = rank_.ranks;
  const auto rows = static_cast<size_t>(args.max_rows);
  const auto heads = static_cast<size_t>(own * ranks.size);
  void* const out = args.out;
  const float* const of_sinks = args.sinks;
  const auto bytes = static_cast<int32_t>(dtype_size(form_.dtype));
  void* gathered = rank_.array<float>(rows * heads * static_cast<size_t>(form_.head_dim));
  gather_parts(rank_.queue(), {.counts = args.counts,
                               .in = args.q,
                               .from = nullptr,
                               .out = gathered,
                               .ranks = ranks,
                               .max_rows = args.max_rows,
                               .pieces = 1,
                               .piece_bytes = own * form_.head_dim * bytes});
  args.q = gathered;
  args.out = nullptr;
  args.sinks = nullptr;
  args.num_heads = own * ranks.size;
  args.part_heads = own;
  args.states = rank_.array<float>(rows * heads *
                                   static_cast<size_t>(attention_state_size(form_.value_size())));
  attention(rank_.queue(), args);
  merge_partials(rank_.queue(), {.counts = args.counts,
                                 .states = args.states,
                                 .out = out,
                                 .sinks = of_sinks,
                                 .ranks = ranks,
                                 .max_rows = args.max_rows,
                                 .num_heads = own,
                                 .value_size = form_.value_size(),
                                 .dtype = form_.dtype});
}

class SharedContext : public testing::TestWithParam<Form> {};

// First positions, of which some ranks see nothing; runs as of verified drafts, far and near.
const std::vector<int32_t>& seen_from() {
  static const std::vector<int32_t> positions = {0,   1,   2,   3,   4,   5,   600, 601,
                                                 602, 603, 699, 255, 256, 257, 40,  513};
  return positions;
}

TEST_P(SharedContext, IsAttentionOverAllPositions) {
  const Form& form = GetParam();
  for (const int size : {2, 4}) {
    ContextRank alone(nullptr, 1);
    const std::vector<float> want = Attending(alone, form, size).run(seen_from(), 0);
    const int num_groups = missing_devices(2 * size).empty() ? 2 : 1;
    on_groups(num_groups, size, [&](ContextRank& rank, int) {
      const std::vector<float> got = Attending(rank, form, size).run(seen_from(), 0);
      const auto part = static_cast<size_t>(kOwnHeads * form.value_size());
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t row = i / part, at = i % part;
        const size_t place = static_cast<size_t>(rank.ranks.rank) * part + at;
        const float wanted = want[row * part * static_cast<size_t>(size) + place];
        ASSERT_NEAR(got[i], wanted, form.error * (1 + std::abs(wanted)))
            << "row " << row << " of rank " << rank.ranks.rank << " of " << size;
      }
    });
  }
}

TEST_P(SharedContext, RowsAreBitEqualAloneAndAmongOthers) {
  const Form& form = GetParam();
  if (form.sees_prompts()) GTEST_SKIP() << "a row of a prompt sees other rows";
  on_groups(1, 4, [&](ContextRank& rank, int) {
    Attending attending(rank, form, 4);
    const std::vector<float> together = attending.run(seen_from(), 0);
    const auto part = static_cast<size_t>(kOwnHeads * form.value_size());
    for (size_t row = 0; row < seen_from().size(); ++row) {
      const std::vector<float> one = attending.run({seen_from()[row]}, row);
      ASSERT_EQ(std::memcmp(one.data(), together.data() + row * part, part * sizeof(float)), 0)
          << row;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedContext,
    testing::Values(
        Form{.name = "F32"}, Form{.name = "Window", .window = 37, .kv_begin = 1},
        Form{.name = "Sinks", .kv_begin = 3, .sinks = true},
        Form{.name = "Slopes", .window = 300, .slopes = true},
        Form{.name = "SlopesBf16",
             .dtype = DType::kBF16,
             .head_dim = 64,
             .slopes = true,
             .error = 1e-2},
        Form{.name = "SlopesInt8", .format = KvFormat::kInt8, .slopes = true, .error = 2e-4},
        Form{.name = "Mask", .mask = "kv <= q and kv % 5 == 2 and (q - kv < 300 or h == 1)"},
        Form{.name = "MaskWindowBf16",
             .dtype = DType::kBF16,
             .head_dim = 64,
             .window = 200,
             .sinks = true,
             .slopes = true,
             .mask = "kv <= q and kv % 3 != 1",
             .error = 1e-2},
        Form{.name = "MaskFp8", .format = KvFormat::kFp8, .mask = "kv <= q and q - kv < 90"},
        Form{.name = "Prompt", .mask = "kv <= q or prompt"},
        Form{.name = "Bf16", .dtype = DType::kBF16, .head_dim = 64, .error = 1e-2},
        Form{.name = "Int8", .format = KvFormat::kInt8, .error = 2e-4},
        Form{.name = "Fp8", .format = KvFormat::kFp8},
        Form{.name = "Latent", .head_dim = 40, .value_dim = 32},
        Form{.name = "LatentBf16",
             .dtype = DType::kBF16,
             .head_dim = 96,
             .value_dim = 64,
             .error = 1e-2},
        Form{.name = "LatentFp8", .format = KvFormat::kFp8, .head_dim = 160, .value_dim = 128}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace foretoken
