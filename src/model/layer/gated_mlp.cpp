#include "model/layer/gated_mlp.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm/gated_act.h"

namespace foretoken {
namespace {

// The rows of the rank's inner columns.
std::vector<TensorPart> gate_up_parts(const std::string& base, const GatedMlpSpec& whole,
                                      const Sharding& sharding) {
  const int64_t inner = whole.inner;
  const ShardRange own = shard_of(inner, sharding);
  if (!whole.fused) {
    return {{base + "gate_proj", inner, own.begin, own.count},
            {base + "up_proj", inner, own.begin, own.count}};
  }
  const std::string fused = base + whole.gate_up;
  if (!sharding.is_cut()) return {{fused, 2 * inner}};
  return {{fused, 2 * inner, own.begin, own.count},
          {fused, 2 * inner, inner + own.begin, own.count}};
}

// Adapters change gates and ups before these meet.
void expand_adapted(const GatedMlp& mlp, const LayerRows& rows, const void* x, void* gated) {
  float* raw = rows.lora->raw_gates;
  GemmArgs product = product_of(rows, x, mlp.gate_up, raw, mlp.dtype);
  product.bias = nullptr;
  product.gated = GemmArgs::kRawGates;
  gemm(rows.queue, product);
  add_lora(rows.queue, *rows.lora, mlp.gate_up.lora,
           {.x = x,
            .y = raw,
            .inputs = mlp.gate_up.inputs,
            .y_stride = raw_gates_stride(mlp.gate_up.outputs),
            .dtype = mlp.dtype,
            .gate_up = mlp.gate_up.weight.get()},
           rows.max_rows);
  gated_act(rows.queue, {.counts = rows.counts,
                         .gate_up = raw,
                         .out = gated,
                         .max_rows = rows.max_rows,
                         .size = mlp.spec.inner,
                         .activation = mlp.spec.activation,
                         .out_dtype = mlp.dtype,
                         .weight = mlp.gate_up.weight.get(),
                         .bias = mlp.gate_up.bias});
}

}  // namespace

Status GatedMlp::load(PartLoader& loader, const std::string& layer, const GatedMlpSpec& whole) {
  const std::string base = layer + whole.base;
  if (!has_gated_form(whole.activation)) {
    return unsupported(loader.config().architecture +
                       ": an MLP with a gate cannot have the activation that config.json names; "
                       "set hidden_act to silu, gelu or gelu_pytorch_tanh");
  }
  spec = part_of(whole, loader.sharding());
  dtype = loader.config().dtype;
  FT_RETURN_IF_ERROR(loader.load_linear(gate_up_parts(base, whole, loader.sharding()),
                                        loader.config().hidden_size, whole.bias, &gate_up,
                                        WeightOrder::kGateUp));
  return loader.load_summed(base + whole.down, whole.inner, whole.bias, &down);
}

void GatedMlp::Scratch::fit(const GatedMlpSpec& part) { inner_ = std::max(inner_, part.inner); }

Status GatedMlp::Scratch::take(const ScratchSource& source) {
  if (inner_ == 0) return {};
  FT_ASSIGN_OR_RETURN(gated, source.act(inner_));
  return {};
}

void GatedMlp::expand(const LayerRows& rows, const void* x, const Scratch& scratch) const {
  if (rows.lora != nullptr && gate_up.lora.matrices != nullptr) {
    return expand_adapted(*this, rows, x, scratch.gated);
  }
  GemmArgs product = product_of(rows, x, gate_up, scratch.gated, dtype);
  product.out_dtype = dtype;
  product.gated = 1;
  product.activation = spec.activation;
  gemm(rows.queue, product);
}

}  // namespace foretoken
