#include <algorithm>

#include "check.h"
#include "kernels/gemm/head_argmax.h"

namespace foretoken::check {
namespace {

struct HeadCase {
  int n;
  int k;
  int max_rows;
  bool mapped;
};

// A head on the device, some of whose rows are equal, and states of which one is not a number.
struct Head {
  Head(Pool& pool, const HeadCase& shape, DType dtype) {
    auto weights = random_floats(int64_t{shape.n} * shape.k, 61);
    for (int n = 3; n < shape.n; n += 5) {
      std::copy_n(&weights[int64_t{n / 2} * shape.k], shape.k, &weights[int64_t{n} * shape.k]);
    }
    auto states = random_floats(int64_t{shape.max_rows} * shape.k, 62);
    if (shape.max_rows > 2) states[int64_t{2} * shape.k] = NAN;
    if (shape.mapped) {
      for (int n = 0; n < shape.n; ++n) map.push_back(n % 7 == 0 || n < shape.n / 3 ? -1 : 3 * n);
    }
    weight = pool.weight(store_as(weights, dtype).bytes.data(), shape.n, shape.k, dtype);
    x = pool.upload(store_as(states, dtype).bytes);
    id_map = shape.mapped ? pool.upload(map) : nullptr;
    workspace = pool.take(head_argmax_bytes(shape.max_rows, shape.n));
  }

  HeadArgmaxArgs args(const HeadCase& shape, DType dtype, const StepCounts* counts, int max_rows,
                      int32_t* ids) const {
    return {counts, x, weight, id_map, ids, workspace, max_rows, shape.n, shape.k, dtype};
  }

  std::vector<int32_t> map;
  void* weight;
  void* x;
  int32_t* id_map;
  void* workspace;
};

int32_t best_id(const float* products, const std::vector<int32_t>& map, int n) {
  int best = -1;
  for (int i = 0; i < n; ++i) {
    if ((!map.empty() && map[i] < 0) || !(products[i] > -INFINITY)) continue;
    if (best < 0 || products[i] > products[best]) best = i;
  }
  return best < 0 || map.empty() ? best : map[best];
}

// The ids are those of the gemm op's products, in every bucket and with dead rows.
void check_case(Gpu& gpu, const HeadCase& shape, DType dtype) {
  Pool pool(gpu);
  const Head head(pool, shape, dtype);
  auto* products = pool.array<float>(int64_t{shape.max_rows} * shape.n);
  gpu.queue->launch(GemmArgs{device_counts(pool, 0, shape.max_rows), head.x, head.weight, products,
                             nullptr, RowKind::kLogits, 0, shape.max_rows, shape.n, shape.k, dtype,
                             DType::kF32});
  const auto host = download(gpu, products, int64_t{shape.max_rows} * shape.n);
  std::vector<int32_t> want(shape.max_rows);
  parallel(shape.max_rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      want[r] = best_id(&host[r * shape.n], head.map, shape.n);
    }
  });
  auto* ids = pool.array<int32_t>(shape.max_rows);
  int different = 0;
  int count = 0;
  for (const int rows : {1, 2, 7, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 300, 1024}) {
    if (rows > shape.max_rows) break;
    for (const int live : {rows, std::max(1, rows - 3)}) {
      gpu.queue->fill(ids, 0x11, shape.max_rows * sizeof(int32_t));
      gpu.queue->launch(head.args(shape, dtype, device_counts(pool, 0, live), rows, ids));
      const auto got = download(gpu, ids, shape.max_rows);
      for (int r = 0; r < shape.max_rows; ++r) {
        different += got[r] != (r < live ? want[r] : 0x11111111);
        ++count;
      }
    }
  }
  report(different == 0 && (shape.max_rows <= 2 || want[2] == -1), "head argmax",
         text("%s n %d k %d rows %d%s: %d of %d ids differ", dtype_name(dtype), shape.n, shape.k,
              shape.max_rows, shape.mapped ? " mapped" : "", different, count));
}

// Beside the product that writes its logits.
void time_head(Gpu& gpu, const HeadCase& shape) {
  Pool pool(gpu);
  const Head head(pool, shape, DType::kBF16);
  auto* products = pool.array<float>(int64_t{shape.max_rows} * shape.n);
  auto* ids = pool.array<int32_t>(shape.max_rows);
  for (const int rows : {1, 16, 64, 256}) {
    if (rows > shape.max_rows) break;
    const StepCounts* counts = device_counts(pool, 0, rows);
    const double argmax = microseconds(gpu, head.args(shape, DType::kBF16, counts, rows, ids));
    const double product =
        microseconds(gpu, GemmArgs{counts, head.x, head.weight, products, nullptr, RowKind::kLogits,
                                   0, rows, shape.n, shape.k, DType::kBF16, DType::kF32});
    report(true, "time",
           text("head argmax n %d k %d, %d rows: %.1f us, gemm %.1f us", shape.n, shape.k, rows,
                argmax, product));
  }
}

}  // namespace

void check_head(Gpu& gpu, bool large) {
  if (!large) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      for (const bool mapped : {false, true}) {
        check_case(gpu, {1, 32, 3, false}, dtype);
        check_case(gpu, {40, 64, 17, mapped}, dtype);
        check_case(gpu, {259, 72, 70, mapped}, dtype);
        check_case(gpu, {1000, 61, 130, mapped}, dtype);
        check_case(gpu, {4107, 256, 300, mapped}, dtype);
      }
    }
    return;
  }
  check_case(gpu, {8192, 1024, 1024, true}, DType::kBF16);
  check_case(gpu, {32003, 512, 300, false}, DType::kBF16);
  check_case(gpu, {128256, 256, 130, true}, DType::kBF16);
  time_head(gpu, {32000, 4096, 256, false});
  time_head(gpu, {128256, 4096, 256, false});
}

}  // namespace foretoken::check
