#pragma once
#include <cuda_runtime.h>

#include "device/cuda/nccl_exchange.h"
#include "kernels/comm/collectives.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/comm/expert_exchange.h"
#include "kernels/comm/shared_sampling.h"
#include "kernels/comm/stage_exchange.h"

// The ops between ranks through NCCL. The host must know how much is exchanged, so that these move
// max_rows rows, padding included, where the kernels over peer memory move the live ones.
namespace foretoken::cuda {

void nccl_all_reduce(const AllReduceArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_gather_columns(const GatherColumnsArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_gather_argmax(const GatherArgmaxArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_deal_logits(const DealLogitsArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_gather_samples(const GatherSamplesArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_share_masks(const ShareMasksArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_share_logits(const ShareLogitsArgs& args, NcclExchange& nccl, cudaStream_t stream);

void nccl_dispatch_rows(const DispatchRowsArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_return_rows(const ReturnRowsArgs& args, NcclExchange& nccl, cudaStream_t stream);

void nccl_gather_parts(const GatherPartsArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_merge_partials(const MergePartialsArgs& args, NcclExchange& nccl, cudaStream_t stream);

void nccl_send_step(const SendStepArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_receive_step(const ReceiveStepArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_send_rows(const SendRowsArgs& args, NcclExchange& nccl, cudaStream_t stream);
void nccl_receive_rows(const ReceiveRowsArgs& args, NcclExchange& nccl, cudaStream_t stream);

}  // namespace foretoken::cuda
