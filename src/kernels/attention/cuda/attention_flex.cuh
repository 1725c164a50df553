#pragma once
#include <memory>
#include <string>

#include "kernels/attention/cuda/attention_common.cuh"

// Attention with a program of a user's own (kernels/flex/flex_program.h), compiled for
// the current device when it is first asked for.
namespace foretoken::cuda {

// Compiled kernels that are kept of a process when nobody holds them, at most.
inline constexpr int kKeptFlexKernels = 64;

// Compiles what an op with this program, type and format launches, if it is not there yet; as long
// as `kernel` is held, it is kept. Null with a sentence in `error` where that cannot be.
// Thread-safe.
std::shared_ptr<const void> hold_flex_kernel(const FlexProgram& program, DType dtype,
                                             KvFormat format, std::string& error);

// Launches it, compiled now where nobody has before: not while a stream is captured. What goes
// wrong is the runtime's last error.
void launch_attention_flex(const AttentionArgs& args, cudaStream_t stream);

// Compilations and kernels in memory so far, for tests.
struct FlexKernelCounts {
  long compiled;
  long kept;
};
FlexKernelCounts flex_kernel_counts();

}  // namespace foretoken::cuda
