#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "check.h"
#include "group/socket_link.h"
#include "kernels/activation_math.h"
#include "kernels/comm/all_reduce_norm.h"
#include "kernels/comm/collectives.h"
#include "kernels/comm/expert_exchange.h"
#include "kernels/comm/stage_exchange.h"

namespace foretoken::check {
namespace {

constexpr uint64_t kSeed = 900;
constexpr unsigned kMaxSeconds = 300;  // of a process, which is ended where it hangs

// One process of a group whose ranks take turns on device 0.
class RankCheck {
 public:
  RankCheck(Gpu& gpu, const Communicator& comm, const Communicator& ring)
      : gpu_(gpu), pool_(gpu), comm_(comm), ring_(ring), route_(comm.route()) {}

  // Each of them is enqueued, captured, and replayed twice.
  void run() {
    for (const auto& [rows, live, cols] :
         {Size{1, 1, 64}, {5, 3, 4096}, {40, 37, 2500}, {700, 700, 4096}, {2100, 1999, 4096}}) {
      all_reduce_of(rows, live, cols);
    }
    for (const auto& [rows, live, cols] :
         {Size{1, 1, 64}, {5, 3, 4096}, {40, 37, 2500}, {700, 699, 4096}, {1100, 1001, 4096}}) {
      all_reduce_norm_of(rows, live, cols);
    }
    gather_columns_of({3, 2, 1000});
    gather_columns_of({90, 77, 128256});
    gather_argmax_of(1, 1);
    gather_argmax_of(700, 650);
    around_the_ring({40, 37, 2500});
    // Through NCCL the last ones are several messages.
    for (const auto& size : {Size{1, 1, 64}, {5, 0, 64}, {40, 37, 2048}, {1100, 1001, 4096}}) {
      experts_of(size);
    }
  }

 private:
  struct Size {
    int rows;
    int live;
    int cols;
  };

  void verdict(bool ok, const char* op, const Size& size) {
    if (ok && comm_.rank() != 0) return;
    report(ok, op,
           text("%s, %d ranks, rank %d, %d of %d x %d", route_.c_str(), comm_.size(), comm_.rank(),
                size.live, size.rows, size.cols));
  }
  std::vector<float> values(int rank, size_t count) const {
    std::vector<float> all(count);
    for (size_t i = 0; i < count; ++i) {
      all[i] = noise(kSeed + static_cast<uint64_t>(rank), i, 1.0f);
    }
    return all;
  }
  const StepCounts* counts_of(int live) {
    return pool_.upload(std::vector<StepCounts>{{live, live, 1, 0}});
  }
  // How often `enqueue` runs, as it is and in a graph.
  static constexpr int kRuns = 4;
  static constexpr int kTopK = 6;
  void enqueue_and_replay(const std::function<void()>& enqueue) {
    for (int i = 0; i < 2; ++i) enqueue();
    gpu_.drain("ops between ranks");
    gpu_.queue->begin_capture();
    enqueue();
    const std::unique_ptr<Graph> graph = gpu_.queue->end_capture();
    if (graph == nullptr) return report(false, "capture", route_);
    for (int i = 2; i < kRuns; ++i) gpu_.queue->replay(*graph);
    gpu_.drain("replayed ops between ranks");
  }

  // Sums of sums: the ranks have equal values from the second time on.
  void all_reduce_of(int rows, int live, int cols) {
    const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(cols);
    const size_t checked = static_cast<size_t>(live) * static_cast<size_t>(cols);
    std::vector<float> expected = values(0, count);
    for (int rank = 1; rank < comm_.size(); ++rank) {
      const std::vector<float> part = values(rank, count);
      for (size_t i = 0; i < count; ++i) expected[i] += part[i];
    }
    for (int run = 1; run < kRuns; ++run) {
      for (float& value : expected) {
        const float part = value;
        for (int rank = 1; rank < comm_.size(); ++rank) value += part;
      }
    }
    float* x = pool_.upload(values(comm_.rank(), count));
    const StepCounts* counts = counts_of(live);
    enqueue_and_replay([&] {
      all_reduce(*gpu_.queue, {.comm = comm_.handle(),
                               .counts = counts,
                               .x = x,
                               .row_kind = RowKind::kToken,
                               .row_offset = 0,
                               .max_rows = rows,
                               .cols = cols});
    });
    const std::vector<float> found = download(gpu_, x, checked);
    verdict(std::memcmp(found.data(), expected.data(), checked * sizeof(float)) == 0, "all_reduce",
            {rows, live, cols});
  }

  // As the two ops that it stands for, which write to other memory; with the residual dealt out
  // between two of them.
  void all_reduce_norm_of(int rows, int live, int cols) {
    const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(cols);
    const size_t checked = static_cast<size_t>(live) * static_cast<size_t>(cols);
    const auto* given = pool_.upload(values(comm_.rank(), count));
    AllReduceNormArgs args{.comm = comm_.handle(),
                           .counts = counts_of(live),
                           .delta = nullptr,
                           .residual = nullptr,
                           .weight = pool_.upload(values(60, static_cast<size_t>(cols))),
                           .out = nullptr,
                           .max_rows = rows,
                           .hidden = cols,
                           .eps = 1e-5f,
                           .out_dtype = DType::kBF16};
    std::vector<float> residuals[2];
    std::vector<uint16_t> normed[2];
    for (const bool fused : {false, true}) {
      args.delta = pool_.array<float>(count);
      args.residual = pool_.upload(values(50, count));
      auto* out = pool_.array<uint16_t>(count);
      args.out = out;
      const AllReduceNormOps ops = all_reduce_norm_ops(args);
      enqueue_and_replay([&] {
        for (const bool last : {false, true}) {
          gpu_.queue->copy(args.delta, given, count * sizeof(float));
          args.deals_residual = last ? 0 : 1;
          if (fused) {
            all_reduce_norm(*gpu_.queue, args);
          } else {
            all_reduce(*gpu_.queue, ops.sum);
            rms_norm(*gpu_.queue, ops.norm);
          }
        }
      });
      residuals[fused] = download(gpu_, args.residual, checked);
      normed[fused] = download(gpu_, out, checked);
    }
    const bool same =
        std::memcmp(residuals[0].data(), residuals[1].data(), checked * sizeof(float)) == 0;
    verdict(same && normed[0] == normed[1], "all_reduce_norm", {rows, live, cols});
  }

  void gather_columns_of(const Size& size) {
    const size_t cols = static_cast<size_t>(size.cols);
    const std::vector<float> whole = values(0, static_cast<size_t>(size.rows) * cols);
    const ColumnPart own = column_part(size.cols, comm_.rank(), comm_.size());
    std::vector<float> part;
    for (int row = 0; row < size.rows; ++row) {
      const float* from = whole.data() + static_cast<size_t>(row) * cols + own.begin;
      part.insert(part.end(), from, from + own.count);
    }
    float* out = pool_.array<float>(whole.size());
    const float* mine = pool_.upload(part);
    const StepCounts* counts = counts_of(size.live);
    enqueue_and_replay([&] {
      gather_columns(*gpu_.queue, {.comm = comm_.handle(),
                                   .counts = counts,
                                   .part = mine,
                                   .out = out,
                                   .row_offset = 0,
                                   .max_rows = size.rows,
                                   .cols = size.cols});
    });
    const size_t checked = static_cast<size_t>(size.live) * cols;
    const std::vector<float> found = download(gpu_, out, checked);
    verdict(std::memcmp(found.data(), whole.data(), checked * sizeof(float)) == 0, "gather_columns",
            size);
  }

  void gather_argmax_of(int rows, int live) {
    const auto key = [](int rank, int row) {
      return argmax_key(static_cast<uint32_t>((row * 7 + rank * 5) % 11 + 1), row * 8 + rank);
    };
    std::vector<uint64_t> keys;
    std::vector<int32_t> expected;
    for (int row = 0; row < rows; ++row) {
      keys.push_back(key(comm_.rank(), row));
      uint64_t best = 0;
      for (int rank = 0; rank < comm_.size(); ++rank) best = std::max(best, key(rank, row));
      expected.push_back(row_of_argmax_key(best));
    }
    const uint64_t* mine = pool_.upload(keys);
    int32_t* ids = pool_.array<int32_t>(static_cast<size_t>(rows));
    const StepCounts* counts = counts_of(live);
    enqueue_and_replay([&] {
      gather_argmax(*gpu_.queue, {.comm = comm_.handle(),
                                  .counts = counts,
                                  .keys = mine,
                                  .id_map = nullptr,
                                  .ids = ids,
                                  .max_rows = rows});
    });
    expected.resize(static_cast<size_t>(live));
    verdict(download(gpu_, ids, static_cast<size_t>(live)) == expected, "gather_argmax",
            {rows, live, 1});
  }

  // Rank 0's rows come to all and back to it.
  void around_the_ring(const Size& size) {
    const size_t count = static_cast<size_t>(size.rows) * static_cast<size_t>(size.cols);
    const std::vector<float> given = values(0, count);
    float* x = pool_.upload(given);
    float* back = pool_.array<float>(count);
    const StepCounts* counts = counts_of(size.live);
    const auto receive = [&](float* to) {
      receive_rows(*gpu_.queue, {ring_.handle(), counts, to, size.rows, size.cols});
    };
    const auto send = [&] {
      send_rows(*gpu_.queue, {ring_.handle(), counts, x, size.rows, size.cols});
    };
    if (comm_.rank() != 0) gpu_.queue->fill(x, 0, count * sizeof(float));
    enqueue_and_replay([&] {
      if (comm_.rank() != 0) receive(x);
      send();
      if (comm_.rank() == 0) receive(back);
    });
    const size_t checked = static_cast<size_t>(size.live) * static_cast<size_t>(size.cols);
    const std::vector<float> found = download(gpu_, comm_.rank() == 0 ? back : x, checked);
    verdict(std::memcmp(found.data(), given.data(), checked * sizeof(float)) == 0, "ring of rows",
            size);
  }

  // Every third rank has no rows, and each of the others one less than the one before.
  static int live_of(int rank, const Size& size) {
    return rank % 3 == 1 ? 0 : std::max(size.live - rank, 0);
  }
  static std::vector<int32_t> choices(int rank, const Size& size) {
    std::vector<int32_t> ids;
    for (int i = 0; i < size.rows * kTopK; ++i) ids.push_back(rank * 1000000 + i);
    return ids;
  }
  ExchangedRows room_for(const Size& size) {
    const auto all = static_cast<size_t>(comm_.size()) * static_cast<size_t>(size.rows);
    return {.counts = pool_.array<StepCounts>(1),
            .begins = pool_.array<int32_t>(static_cast<size_t>(comm_.size()) + 1),
            .x = pool_.array<float>(all * static_cast<size_t>(size.cols)),
            .ids = pool_.array<int32_t>(all * kTopK),
            .weights = pool_.array<float>(all * kTopK)};
  }

  // Rows of all ranks come to each of them; what each makes of all rows goes back.
  void experts_of(const Size& size) {
    const auto cols = static_cast<size_t>(size.cols), rows = static_cast<size_t>(size.rows);
    const ExchangedRows out = room_for(size);
    const StepCounts* counts = counts_of(live_of(comm_.rank(), size));
    const float* x = pool_.upload(values(comm_.rank(), rows * cols));
    const int32_t* ids = pool_.upload(choices(comm_.rank(), size));
    const float* weights = pool_.upload(values(20 + comm_.rank(), rows * kTopK));
    const auto dispatch = [&] {
      dispatch_rows(*gpu_.queue, {.comm = comm_.handle(),
                                  .counts = counts,
                                  .x = x,
                                  .ids = ids,
                                  .weights = weights,
                                  .out = out,
                                  .max_rows = size.rows,
                                  .capacity_rows = size.rows,
                                  .hidden = size.cols,
                                  .top_k = kTopK,
                                  .dtype = DType::kF32});
    };
    enqueue_and_replay(dispatch);
    verdict(has_rows_of_all(out, size), "dispatch_rows", size);
    returns_of(out, size);
  }

  template <class T>
  bool holds(const T* pointer, const std::vector<T>& expected) {
    return expected.empty() || download(gpu_, pointer, expected.size()) == expected;
  }

  bool has_rows_of_all(const ExchangedRows& out, const Size& size) {
    std::vector<int32_t> begins = {0}, ids;
    std::vector<float> x, weights;
    const auto append = [](auto& all, const auto& part, size_t count) {
      all.insert(all.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(count));
    };
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const auto live = static_cast<size_t>(live_of(rank, size));
      append(x, values(rank, live * static_cast<size_t>(size.cols)),
             live * static_cast<size_t>(size.cols));
      append(ids, choices(rank, size), live * kTopK);
      append(weights, values(20 + rank, live * kTopK), live * kTopK);
      begins.push_back(begins.back() + static_cast<int32_t>(live));
    }
    const StepCounts counts = download(gpu_, out.counts, 1)[0];
    return holds(out.begins, begins) && counts.num_rows == begins.back() && counts.num_spans == 0 &&
           holds(static_cast<const float*>(out.x), x) && holds(out.ids, ids) &&
           holds(out.weights, weights);
  }

  // After the dispatch of `all`. Each run adds the same sum once more.
  void returns_of(const ExchangedRows& all, const Size& size) {
    const auto cols = static_cast<size_t>(size.cols);
    const std::vector<int32_t> begins =
        download(gpu_, all.begins, static_cast<size_t>(comm_.size()) + 1);
    const size_t count = static_cast<size_t>(size.rows) * cols;
    const auto live = static_cast<size_t>(live_of(comm_.rank(), size));
    const size_t own = static_cast<size_t>(begins[static_cast<size_t>(comm_.rank())]) * cols;
    const size_t of_all = std::max<size_t>(static_cast<size_t>(begins.back()) * cols, 1);
    const std::vector<float> shared = values(60, count);
    const std::vector<float> gate = values(61, static_cast<size_t>(size.rows));
    std::vector<std::vector<float>> sums;
    for (int rank = 0; rank < comm_.size(); ++rank) sums.push_back(values(40 + rank, of_all));
    std::vector<float> expected = values(62, count);
    expected.resize(live * cols);
    for (size_t i = 0; i < expected.size(); ++i) {
      float sum = shared[i] * activation_math::sigmoid(gate[i / cols]);
      for (const std::vector<float>& of_rank : sums) sum += of_rank[own + i];
      for (int run = 0; run < kRuns; ++run) expected[i] += sum;
    }
    float* out = pool_.upload(values(62, count));
    const ReturnRowsArgs args{.comm = comm_.handle(),
                              .begins = all.begins,
                              .sums = pool_.upload(sums[static_cast<size_t>(comm_.rank())]),
                              .scratch = pool_.array<float>(2 * count),
                              .shared = pool_.upload(shared),
                              .shared_gate = pool_.upload(gate),
                              .out = out,
                              .max_rows = size.rows,
                              .hidden = size.cols,
                              .add = 1};
    enqueue_and_replay([&] { return_rows(*gpu_.queue, args); });
    verdict(holds(out, expected), "return_rows", size);
  }

  Gpu& gpu_;
  Pool pool_;
  const Communicator& comm_;
  const Communicator& ring_;
  const std::string route_;
};

// Connections between all ranks, [rank][peer].
std::vector<std::vector<group::Socket>> connect(size_t size) {
  std::vector<std::vector<group::Socket>> sockets(size);
  for (auto& row : sockets) row.resize(size);
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = a + 1; b < size; ++b) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(1);
      sockets[a][b] = group::Socket(ends[0]);
      sockets[b][a] = group::Socket(ends[1]);
    }
  }
  return sockets;
}

// A rank's process; NCCL takes each for a host of its own.
using Connections = std::vector<std::vector<std::vector<group::Socket>>>;  // [link][rank][peer]

[[noreturn]] void run_rank(int rank, int size, bool nccl, Connections& connections) {
  num_failures = 0;
  setenv("NCCL_HOSTID", text("host %d", rank).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  alarm(kMaxSeconds);
  auto device = open_cuda_device(0);
  if (!device.ok()) std::_Exit(77);
  Gpu gpu{std::move(device).value(), nullptr};
  auto shared = std::make_shared<group::LinkShared>();
  shared->layout = {.tp = size};
  shared->rank = rank;
  std::vector<std::unique_ptr<group::SocketLink>> links;
  std::vector<std::unique_ptr<Communicator>> made;
  for (auto& sockets : connections) {
    links.push_back(
        std::make_unique<group::SocketLink>(shared, std::move(sockets[static_cast<size_t>(rank)])));
    auto comm = gpu.device->make_communicator(*links.back(), {.avoids_peer_memory = nccl});
    if (!comm.ok()) {
      report(false, "communicator", comm.status().message());
      std::_Exit(1);
    }
    made.push_back(std::move(comm).value());
  }
  gpu.queue = gpu.device->make_queue().value();
  RankCheck(gpu, *made[0], *made[1]).run();
  gpu.queue.reset();
  made.clear();
  std::_Exit(num_failures == 0 ? 0 : 1);
}

void check_group(int size, bool nccl) {
  Connections connections;
  for (int link = 0; link < 2; ++link) connections.push_back(connect(static_cast<size_t>(size)));
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t process = fork();
    if (process == 0) run_rank(rank, size, nccl, connections);
    processes.push_back(process);
  }
  for (const pid_t process : processes) {
    int state = 0;
    waitpid(process, &state, 0);
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : 1;
    if (code != 0 && code != 77) report(false, "ranks", text("a process ended with %d", code));
  }
}

}  // namespace

void check_ranks() {
  for (const int size : {2, 3, 4}) {
    check_group(size, false);
    check_group(size, true);
  }
}

}  // namespace foretoken::check
