#include "kernels/experts/expert_gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "base/thread_role.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/experts/cpu/expert_units.h"
#include "kernels/gemm/cpu/gated_row.h"
#include "kernels/gemm/cpu/packed_weight.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kBytesOfExpertSlices = 1 << 20;  // together, beside as many rows

// Memory of a thread for the rows of a unit, kept until it ends. Throws std::bad_alloc.
std::byte* gathered_memory(size_t bytes) {
  struct Freed {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  thread_local std::unique_ptr<std::byte, Freed> memory;
  thread_local size_t reserved = 0;
  if (bytes > reserved) {
    const ForeignAllocationScope once;
    memory.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
    reserved = bytes;
  }
  return memory.get();
}

template <class T>
FT_INLINE void scale_any(const T* from, float scale, int64_t k, T* to) {
  for (int64_t i = 0; i < k; ++i) store_one(to + i, load_one(from + i) * scale);
}
FT_HOT void scale_f32(const float* from, float scale, int64_t k, float* to) {
  scale_any(from, scale, k, to);
}
FT_HOT void scale_bf16(const uint16_t* from, float scale, int64_t k, uint16_t* to) {
  scale_any(from, scale, k, to);
}

FT_HOT void write_sums_f32(const float* from, const float* bias, float* to, int n) {
  for (int i = 0; i < n; ++i) to[i] = bias != nullptr ? from[i] + bias[i] : from[i];
}
FT_HOT void write_sums_bf16(const float* from, const float* bias, uint16_t* to, int n) {
  for (int i = 0; i < n; ++i) store_one(to + i, bias != nullptr ? from[i] + bias[i] : from[i]);
}

class ExpertProduct {
 public:
  ExpertProduct(const ExpertGemmArgs& args, const PackedWeight& weight)
      : a_(args), weight_(weight), row_bytes_(a_.k * static_cast<int64_t>(dtype_size(a_.dtype))) {}

  void run(CpuPool& pool) {
    const int slices = weight_.num_slices() / a_.lists.count;
    FT_CHECK(slices * a_.lists.count == weight_.num_slices());
    const auto together = static_cast<int>(
        std::clamp<int64_t>(kBytesOfExpertSlices / weight_.slice_row_bytes(0), 1, slices));
    auto& units = thread_scratch<ExpertUnits>();
    units.cut(a_.lists, {slices, together, kMaxTileRows});
    if (weight_.quantized() != nullptr) {
      kernels_ = &quant_kernels().front();
      quantize(pool);
    }
    pool.parallel_for(units.size(), [&](int64_t index, int) {
      const ExpertUnit unit = units.at(index);
      weight_.quantized() != nullptr ? multiply_quantized(unit) : multiply(unit);
    });
  }

 private:
  int64_t source_row(int32_t entry) const {
    return a_.by_entry != 0 ? entry : entry / a_.lists.top_k;
  }
  const std::byte* x_of(int32_t entry) const {
    return static_cast<const std::byte*>(a_.x) + source_row(entry) * row_bytes_;
  }

  // Copies the row, multiplied by what the entry weighs.
  void gather_row(int32_t entry, std::byte* to) const {
    const std::byte* from = x_of(entry);
    if (a_.x_scales == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(row_bytes_));
    } else if (a_.dtype == DType::kF32) {
      scale_f32(reinterpret_cast<const float*>(from), a_.x_scales[entry], a_.k,
                reinterpret_cast<float*>(to));
    } else {
      scale_bf16(reinterpret_cast<const uint16_t*>(from), a_.x_scales[entry], a_.k,
                 reinterpret_cast<uint16_t*>(to));
    }
  }

  void multiply(const ExpertUnit& unit) const {
    alignas(64) thread_local float tile[kMaxTileRows * kMaxSliceCols];
    const int32_t* entries = a_.lists.entries + unit.first_entry;
    const void* x = x_of(entries[0]);
    int64_t readable = 1;
    if (unit.num_entries > 1 || a_.x_scales != nullptr) {
      std::byte* rows = gathered_memory(static_cast<size_t>(kMaxTileRows * row_bytes_));
      for (int i = 0; i < unit.num_entries; ++i) gather_row(entries[i], rows + i * row_bytes_);
      x = rows;
      readable = kMaxTileRows;
    }
    for (int s = unit.first_slice; s < unit.first_slice + unit.num_slices; ++s) {
      weight_.multiply(s, x, tile, unit.num_entries, readable);
      write(unit, s, tile);
    }
  }

  // Quantises the rows of x once for all units where they fit; else each unit does its own.
  void quantize(CpuPool& pool) {
    const int live = live_rows(*a_.counts, RowKind::kToken, 0, a_.max_rows);
    const int64_t rows = a_.by_entry != 0 ? int64_t{live} * a_.lists.top_k : live;
    if (rows == 0 || rows > kMaxQuantizedRows || a_.x_scales != nullptr) return;
    rows_ = quantize_rows(pool, a_.x, a_.dtype, static_cast<int>(rows), a_.k, 1);
  }

  // The steps of the unit's rows in blocks, as QuantMatrix reads them.
  QuantRows gather_quantized(const ExpertUnit& unit) const {
    const int32_t* entries = a_.lists.entries + unit.first_entry;
    const int64_t steps = a_.k / kQuantStep;
    if (rows_.steps != nullptr && unit.num_entries == 1) {
      return {rows_.block(static_cast<int>(source_row(entries[0]))), steps, 1, kernels_->max_rows};
    }
    const size_t step_bytes = static_cast<size_t>(kMaxTileRows * steps) * sizeof(QuantStep);
    std::byte* memory = gathered_memory(step_bytes + static_cast<size_t>(row_bytes_));
    auto* to = reinterpret_cast<QuantStep*>(memory);
    const QuantRows rows{to, steps, unit.num_entries, kernels_->max_rows};
    for (int i = 0; i < unit.num_entries; ++i) {
      const int block = i / rows.block_rows;
      const int64_t stride = rows.rows_of_block(block);
      QuantStep* at = to + int64_t{block} * rows.block_rows * steps + i % rows.block_rows;
      if (rows_.steps != nullptr) {
        const QuantStep* from = rows_.block(static_cast<int>(source_row(entries[i])));
        for (int64_t s = 0; s < steps; ++s) at[s * stride] = from[s];
      } else if (a_.x_scales == nullptr) {
        quantize_row(x_of(entries[i]), a_.dtype, a_.k, stride, at);
      } else {
        gather_row(entries[i], memory + step_bytes);
        quantize_row(memory + step_bytes, a_.dtype, a_.k, stride, at);
      }
    }
    return rows;
  }

  void multiply_quantized(const ExpertUnit& unit) const {
    alignas(64) thread_local float tile[kMaxTileRows * kMaxSliceCols];
    const QuantRows rows = gather_quantized(unit);
    for (int s = unit.first_slice; s < unit.first_slice + unit.num_slices; ++s) {
      weight_.quantized()->multiply(*kernels_, s, rows, 0, unit.num_entries, tile);
      write(unit, s, tile);
    }
  }

  void write(const ExpertUnit& unit, int slice, const float* tile) const {
    const int32_t* entries = a_.lists.entries + unit.first_entry;
    const int cols = weight_.cols(slice);
    for (int r = 0; r < unit.num_entries; ++r) {
      const float* from = tile + int64_t{r} * cols;
      a_.gated != 0 ? write_gated_sums(slice, unit.expert, from, entries[r])
                    : write_sums(slice, unit.expert, from, entries[r]);
    }
  }

  void write_sums(int slice, int expert, const float* from, int32_t entry) const {
    const int64_t col = weight_.first_col(slice);  // among those of all experts
    const float* bias = a_.bias != nullptr ? a_.bias + col : nullptr;
    const int64_t to = int64_t{entry} * a_.n + col - int64_t{expert} * a_.n;
    if (a_.dtype == DType::kF32) {
      write_sums_f32(from, bias, static_cast<float*>(a_.y) + to, weight_.cols(slice));
    } else {
      write_sums_bf16(from, bias, static_cast<uint16_t*>(a_.y) + to, weight_.cols(slice));
    }
  }

  void write_gated_sums(int slice, int expert, const float* from, int32_t entry) const {
    const int64_t size = a_.n / 2;
    const int64_t col = weight_.first_col(slice);
    const int cols = weight_.cols(slice) / 2;
    const float* gate_bias = a_.bias != nullptr ? a_.bias + col : nullptr;
    const float* up_bias = a_.bias != nullptr ? gate_bias + a_.lists.count * size : nullptr;
    const GatedRow row{from, from + cols, gate_bias, up_bias, cols, a_.clamp};
    const int64_t to = entry * size + col - expert * size;
    if (a_.dtype == DType::kF32) {
      write_gated(a_.activation, row, static_cast<float*>(a_.y) + to);
    } else {
      write_gated(a_.activation, row, static_cast<uint16_t*>(a_.y) + to);
    }
  }

  const ExpertGemmArgs& a_;
  const PackedWeight& weight_;
  const int64_t row_bytes_;
  const QuantKernels* kernels_ = nullptr;
  QuantRows rows_{};  // of the step, a block each; without steps: each unit quantises its own
};

}  // namespace

void expert_gemm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ExpertGemmArgs*>(args);
  const auto& weight = *static_cast<const PackedWeight*>(a.weight);
  FT_CHECK(weight.n() == int64_t{a.lists.count} * a.n && weight.k() == a.k);
  FT_CHECK(weight.dtype() == a.dtype);
  FT_CHECK((weight.order() == WeightOrder::kGateUp) == (a.gated != 0));
  if (a.shared.weight != nullptr) {
    const GemmArgs shared = shared_product(a);
    gemm(&shared, pool);
  }
  ExpertProduct(a, weight).run(pool);
}

}  // namespace foretoken::cpu
