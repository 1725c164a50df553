#pragma once
#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/recurrent_config.h"

namespace foretoken {

// The names that a family's files have for the sizes of Mamba 2's layers.
struct StateSpaceNames {
  const char* heads = "mamba_n_heads";
  const char* head_dim = "mamba_d_head";
  const char* groups = "mamba_n_groups";
  const char* state_size = "mamba_d_state";
  const char* conv_width = "mamba_d_conv";
  const char* conv_bias = "mamba_conv_bias";
  const char* bias = "mamba_proj_bias";
};

// Reads them, and time_step_limit. Heads that the file does not say the size of ("auto") divide
// `inner` channels among them. InvalidArgument names the field at fault; Unsupported where a
// convolution is wider than kernels take.
Status read_state_space(const ConfigFields& fields, const StateSpaceNames& names, int64_t inner,
                        RecurrentConfig* out);

// The same of Mamba 1.
struct SelectiveNames {
  const char* state_size = "mamba_d_state";
  const char* conv_width = "mamba_d_conv";
  const char* conv_bias = "mamba_conv_bias";
  const char* bias = "mamba_proj_bias";
  const char* step_rank = "mamba_dt_rank";
};

// Reads them for `inner` channels, of layers `hidden` wide. Errors as above; Unsupported also where
// a channel has more numbers than kernels take.
Status read_selective(const ConfigFields& fields, const SelectiveNames& names, int32_t inner,
                      int32_t hidden, RecurrentConfig* out);

}  // namespace foretoken
