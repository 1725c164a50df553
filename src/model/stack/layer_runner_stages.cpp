#include "kernels/comm/stage_exchange.h"
#include "model/stack/layer_runner.h"

namespace foretoken {

void LayerRunner::send_residual(const LayerRows& rows, const void* comm) const {
  send_rows(rows.queue, {comm, rows.counts, residual_, rows.max_rows, config_.hidden_size});
}

void LayerRunner::receive_residual(const LayerRows& rows, const void* comm) const {
  receive_rows(rows.queue, {comm, rows.counts, residual_, rows.max_rows, config_.hidden_size});
}

}  // namespace foretoken
