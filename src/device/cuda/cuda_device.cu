#include "device/cuda/cuda_device.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "device/cuda/cuda_communicator.h"
#include "device/cuda/cuda_queue.h"
#include "device/cuda/mapped_memory.h"
#include "device/cuda/nvtx_ranges.h"

namespace foretoken::cuda {
namespace {

constexpr int kMinComputeMajor = 8;

// Where the plug-in has code for a device, it has this.
__global__ void code_probe() {}

class CudaDevice final : public Device, public AttentionFamilies {
 public:
  CudaDevice(const CudaKernels& kernels, int ordinal, std::string name)
      : kernels_(kernels), ordinal_(ordinal), name_(std::move(name)) {}
  ~CudaDevice() override { deallocate(failure_, MemoryKind::kPinned); }

  DeviceType type() const override { return DeviceType::kCuda; }
  std::string name() const override { return name_; }
  int num_workers() const override { return 1; }
  int64_t free_memory() const override { return static_cast<int64_t>(memory().free); }
  int64_t total_memory() const override { return static_cast<int64_t>(memory().total); }
  void* allocate(size_t bytes, MemoryKind kind) override;
  void deallocate(void* pointer, MemoryKind kind) override;
  Status allow_sleep() override;
  MemoryRole take_for(MemoryRole role) override {
    return mapped_ != nullptr ? mapped_->take_for(role) : MemoryRole::kStays;
  }
  Result<int64_t> give_back(const GivenBack& what) override {
    return mapped_ != nullptr ? mapped_->give_back(what) : int64_t{0};
  }
  Status bring_back(MemoryRole role) override {
    return mapped_ != nullptr ? mapped_->bring_back(role) : Status();
  }
  void begin_again() override {
    if (mapped_ != nullptr) mapped_->ledger().begin_again();
  }
  bool end_again() override { return mapped_ == nullptr || mapped_->ledger().end_again(); }
  Result<std::unique_ptr<Queue>> make_queue() override;
  Result<std::unique_ptr<Communicator>> make_communicator(
      group::RankLink& link, const CommunicatorOptions& options) override {
    {
      std::lock_guard lock(mutex_);
      FT_RETURN_IF_ERROR(take_failure());
    }
    return cuda::make_communicator(link, ordinal_, options, failure_);
  }
  const AttentionFamilies* attention_families() const override { return this; }
  bool has_attention(AttentionFamily family) const override;
  Result<std::shared_ptr<const void>> hold_flex(const FlexProgram& program, DType dtype,
                                                KvFormat format) const override;
  ProfilerRanges use_profiler_ranges(bool always) override;
  // Any row can be found by itself; groups of 8 are never of two units.
  void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order,
                    int64_t unit_rows) override;
  int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order,
                            int64_t /*unit_rows*/) const override {
    return kernels_.weight_slice_rows(n, k, dtype, order);
  }
  void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order,
                    int64_t unit_rows) override;
  void free_weight(void* weight) override;
  int64_t rows_of_a_wave(int64_t num_outputs) const override {
    cudaSetDevice(ordinal_);
    return kernels_.rows_of_a_wave(num_outputs);
  }
  int64_t quantized_weight_bytes(const void* weight) const override {
    return kernels_.quantized_weight_bytes(weight);
  }
  bool keeps_quantized(const QuantForm& form, int64_t k, DType dtype) const override {
    cudaSetDevice(ordinal_);
    return dtype == DType::kBF16 && kernels_.keeps_quantized(form, k);
  }
  bool keeps_together(std::span<const QuantizedPart> parts, int64_t unit_rows) const override {
    return kernels_.keeps_together(parts, unit_rows);
  }
  QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k,
                                        DType /*dtype*/, WeightOrder order,
                                        int64_t unit_rows) override {
    cudaSetDevice(ordinal_);
    return kernels_.make_quantized_weight(parts, k, order, unit_rows);
  }

 private:
  struct Memory {
    size_t free = 0;
    size_t total = 0;
  };
  Memory memory() const;
  Status take_failure();

  const CudaKernels kernels_;
  const int ordinal_;
  const std::string name_;
  std::unique_ptr<MappedMemory> mapped_;  // null: nothing is given back
  std::mutex mutex_;                      // of start-up work
  PlanFailure* failure_ = nullptr;
  ProfilerRanges ranges_;
};

CudaDevice::Memory CudaDevice::memory() const {
  cudaSetDevice(ordinal_);
  Memory memory;
  if (cudaMemGetInfo(&memory.free, &memory.total) != cudaSuccess) return {};
  return memory;
}

void* CudaDevice::allocate(size_t bytes, MemoryKind kind) {
  cudaSetDevice(ordinal_);
  void* memory = nullptr;
  const size_t size = bytes == 0 ? 1 : bytes;
  if (kind == MemoryKind::kPinned) {
    // Unified addressing: the host pointer is the device pointer.
    if (cudaHostAlloc(&memory, size, cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    std::memset(memory, 0, size);
    return memory;
  }
  if (take_device_memory(&memory, size) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  if (cudaMemset(memory, 0, size) != cudaSuccess || cudaStreamSynchronize(nullptr) != cudaSuccess) {
    free_device_memory(memory);
    return nullptr;
  }
  return memory;
}

void CudaDevice::deallocate(void* pointer, MemoryKind kind) {
  if (pointer == nullptr) return;
  cudaSetDevice(ordinal_);
  if (kind == MemoryKind::kPinned) {
    cudaFreeHost(pointer);
  } else {
    free_device_memory(pointer);
  }
}

// NCCL may register what captured steps send, and would go on with memory that was given back.
Status CudaDevice::allow_sleep() {
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
  FT_ASSIGN_OR_RETURN(mapped_, MappedMemory::make(ordinal_));
  return {};
}

Result<std::unique_ptr<Queue>> CudaDevice::make_queue() {
  std::lock_guard lock(mutex_);
  cudaSetDevice(ordinal_);
  FT_RETURN_IF_ERROR(take_failure());
  *failure_ = PlanFailure{};
  kernels_.report_failures_to(failure_);
  return CudaQueue::make(kernels_, ordinal_, failure_, ranges_);
}

Status CudaDevice::take_failure() {
  if (failure_ != nullptr) return {};
  failure_ = static_cast<PlanFailure*>(allocate(sizeof(PlanFailure), MemoryKind::kPinned));
  if (failure_ == nullptr) return resource_exhausted("no pinned host memory for a CUDA queue");
  return {};
}

bool CudaDevice::has_attention(AttentionFamily family) const {
  cudaSetDevice(ordinal_);
  return kernels_.has_attention(family);
}

Result<std::shared_ptr<const void>> CudaDevice::hold_flex(const FlexProgram& program, DType dtype,
                                                          KvFormat format) const {
  cudaSetDevice(ordinal_);
  std::string error;
  std::shared_ptr<const void> held = kernels_.hold_flex(program, dtype, format, error);
  if (held == nullptr) return unsupported(error);
  return held;
}

ProfilerRanges CudaDevice::use_profiler_ranges(bool always) {
  std::lock_guard lock(mutex_);
  ranges_ = nvtx_ranges(always);
  return ranges_;
}

void* CudaDevice::make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order,
                              int64_t /*unit_rows*/) {
  cudaSetDevice(ordinal_);
  return kernels_.make_weight(n, k, dtype, order);
}

void* CudaDevice::pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype,
                              WeightOrder order, int64_t /*unit_rows*/) {
  std::lock_guard lock(mutex_);
  cudaSetDevice(ordinal_);
  return kernels_.pack_weight(parts, k, dtype, order);
}

void CudaDevice::free_weight(void* weight) {
  cudaSetDevice(ordinal_);
  kernels_.free_weight(weight);
}

std::string capability_text(const cudaDeviceProp& properties) {
  return std::string(properties.name) + " has compute capability " +
         std::to_string(properties.major) + "." + std::to_string(properties.minor);
}

}  // namespace

std::unique_ptr<Device> open_device(const CudaKernels& kernels, int ordinal, std::string& error) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    error = driver == 0 ? "no NVIDIA driver on this machine; install one"
                        : "the NVIDIA driver is too old for CUDA 13; update it";
    return nullptr;
  }
  if (status != cudaSuccess || count == 0) {
    error = std::string("no usable CUDA device (") +
            cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status) +
            "); check nvidia-smi and CUDA_VISIBLE_DEVICES";
    return nullptr;
  }
  if (ordinal < 0 || ordinal >= count) {
    error = "device " + std::to_string(ordinal) + " does not exist; choose 0 to " +
            std::to_string(count - 1);
    return nullptr;
  }
  cudaDeviceProp properties;
  cudaError_t opened = cudaGetDeviceProperties(&properties, ordinal);
  if (opened == cudaSuccess && properties.major < kMinComputeMajor) {
    error = capability_text(properties) + "; 8.0 or newer is needed";
    return nullptr;
  }
  if (opened == cudaSuccess) opened = cudaSetDevice(ordinal);
  if (opened == cudaSuccess) opened = cudaFree(nullptr);
  if (opened != cudaSuccess) {
    error = "device " + std::to_string(ordinal) + " cannot be opened (" +
            cudaGetErrorString(opened) + "); check that no other process holds it";
    return nullptr;
  }
  // Of a plug-in for several architectures the runtime takes the device's own code, or that of an
  // older minor number.
  cudaFuncAttributes code;
  if (cudaFuncGetAttributes(&code, code_probe) == cudaErrorNoKernelImageForDevice) {
    (void)cudaGetLastError();
    error = capability_text(properties) + ", and this CUDA plug-in was built for " +
            FORETOKEN_CUDA_ARCHS +
            "; build it with FORETOKEN_CUDA_ARCHS=" + std::to_string(properties.major) +
            std::to_string(properties.minor) + "-real, or all";
    return nullptr;
  }
  return std::make_unique<CudaDevice>(kernels, ordinal, properties.name);
}

}  // namespace foretoken::cuda
