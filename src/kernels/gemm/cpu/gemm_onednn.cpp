#include "kernels/gemm/cpu/gemm_onednn.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/thread_role.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr int kNumBuckets = 7;  // 1, 2, 4, ..., 64 rows
static_assert(1 << (kNumBuckets - 1) == kMaxTileRows);

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::atomic<size_t> largest_scratchpad{0};

// The primitives of all weight slices of one shape.
struct Shape {
  memory::desc weights;
  std::array<dnnl::matmul, kNumBuckets> matmuls;
};

memory::data_type data_type_of(DType dtype) {
  return dtype == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

Shape make_shape(int cols, int64_t k, DType dtype) {
  Shape shape;
  shape.weights = memory::desc({k, cols}, data_type_of(dtype), Tag::any);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  for (int bucket = kNumBuckets - 1; bucket >= 0; --bucket) {
    const int64_t rows = int64_t{1} << bucket;
    const memory::desc x({rows, k}, data_type_of(dtype), Tag::ab);
    const memory::desc y({rows, cols}, memory::data_type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc pd({x, shape.weights, y}, attr, cpu_engine());
    // The largest bucket chooses the layout; another kind of kernel would bring other bits.
    shape.weights = pd.weights_desc();
    if (std::string(pd.impl_info_str()).rfind("brg:", 0) != 0) {
      throw std::runtime_error(std::string("oneDNN chose ") + pd.impl_info_str());
    }
    shape.matmuls[static_cast<size_t>(bucket)] = dnnl::matmul(pd);
    const size_t scratch = pd.scratchpad_desc().get_size();
    if (scratch > largest_scratchpad.load()) largest_scratchpad.store(scratch);
  }
  return shape;
}

std::shared_ptr<const Shape> shape_of(int cols, int64_t k, DType dtype) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int64_t, DType>, std::weak_ptr<const Shape>> shapes;
  std::lock_guard lock(mutex);
  std::weak_ptr<const Shape>& cached = shapes[{cols, k, dtype}];
  std::shared_ptr<const Shape> shape = cached.lock();
  if (shape == nullptr) {
    shape = std::make_shared<const Shape>(make_shape(cols, k, dtype));
    cached = shape;
  }
  return shape;
}

// What a thread needs to run primitives. The memory objects only carry addresses: a primitive takes
// shapes from its own descriptors.
class ThreadState {
 public:
  ThreadState()
      : stream(cpu_engine()),
        x(byte_desc(), cpu_engine(), nullptr),
        y(byte_desc(), cpu_engine(), nullptr),
        scratch(byte_desc(), cpu_engine(), nullptr) {}
  ~ThreadState() { ::operator delete[](scratch_memory_, kAlignment); }
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  void reserve_scratch() {
    const size_t wanted = largest_scratchpad.load(std::memory_order_relaxed);
    if (wanted <= scratch_bytes_) return;
    ::operator delete[](scratch_memory_, kAlignment);
    scratch_memory_ = ::operator new[](wanted, kAlignment);
    scratch_bytes_ = wanted;
    scratch.set_data_handle(scratch_memory_);
  }

  dnnl::stream stream;
  memory x;
  memory y;
  memory scratch;

 private:
  static constexpr std::align_val_t kAlignment{4096};
  static memory::desc byte_desc() { return {{1}, memory::data_type::u8, Tag::a}; }

  void* scratch_memory_ = nullptr;
  size_t scratch_bytes_ = 0;
};

ThreadState& thread_state() {
  thread_local ThreadState state;
  state.reserve_scratch();
  return state;
}

class Slice final : public OnednnSlice {
 public:
  Slice(std::shared_ptr<const Shape> shape, memory weights)
      : shape_(std::move(shape)), weights_(std::move(weights)) {}

  void multiply(const void* x, float* y, int rows) const override {
    ThreadState& state = thread_state();
    state.x.set_data_handle(const_cast<void*>(x));
    state.y.set_data_handle(y);
    // The C interface takes the arguments as an array, so nothing is built on the heap here.
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, state.x.get()},
                                    {DNNL_ARG_WEIGHTS, weights_.get()},
                                    {DNNL_ARG_DST, state.y.get()},
                                    {DNNL_ARG_SCRATCHPAD, state.scratch.get()}};
    const auto bucket = static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(rows)));
    const ForeignAllocationScope onednn;
    const dnnl_status_t status =
        dnnl_primitive_execute(shape_->matmuls[bucket].get(), state.stream.get(), 4, args);
    if (status != dnnl_success) throw std::runtime_error("oneDNN matmul failed");
  }

 private:
  std::shared_ptr<const Shape> shape_;
  memory weights_;
};

}  // namespace

bool onednn_is_batch_invariant(DType dtype) {
  static const dnnl::cpu_isa isa = [] {
    // AMX tiles group the sum in their own way; the variable of oneDNN itself wins over this.
    if (std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    }
    return dnnl::get_effective_cpu_isa();
  }();
  if (cpu_isa() < CpuIsa::kAvx512) return false;
  if (isa == dnnl::cpu_isa::avx512_core_bf16) return true;
  // Processors without instructions for bfloat16 have other kernels for it.
  return dtype == DType::kF32 &&
         (isa == dnnl::cpu_isa::avx512_core || isa == dnnl::cpu_isa::avx512_core_vnni);
}

size_t onednn_slice_bytes(int cols, int64_t k, DType dtype) {
  const SingleThreadScope single_thread;
  return (shape_of(cols, k, dtype)->weights.get_size() + 63) / 64 * 64;
}

std::unique_ptr<OnednnSlice> pack_onednn_slice(const void* rows, int cols, int64_t k, DType dtype,
                                               std::byte* to) {
  FT_CHECK(cols > 0 && cols <= kMaxSliceCols);
  const SingleThreadScope single_thread;
  std::shared_ptr<const Shape> shape = shape_of(cols, k, dtype);
  memory packed(shape->weights, cpu_engine(), to);
  memory plain({{k, cols}, data_type_of(dtype), Tag::ba}, cpu_engine(), const_cast<void*>(rows));
  dnnl::stream stream(cpu_engine());
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  return std::make_unique<Slice>(std::move(shape), std::move(packed));
}

}  // namespace foretoken::cpu
