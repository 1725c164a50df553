"""What MTP modules of several layouts share, and those of targets whose residual has several streams (gen_mtp_modules.py)."""

import torch
from transformers.models.glm5_next import modeling_glm5_next as glm5_next
from transformers.models.hy_v4 import modeling_hy_v4 as hy_v4


class Module(torch.nn.Module):
    """What both layouts share. `hidden` of an entry is normed, joined to the embedding and brought through a layer."""

    def __init__(self, config, norm):
        super().__init__()
        eps = getattr(config, "rms_norm_eps", None) or config.layer_norm_epsilon
        make = lambda: norm(config.hidden_size, eps)
        self.enorm, self.hnorm, self.before, self.between, self.last = (make() for _ in range(5))
        self.projection = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)

    def forward(self, embedded, hidden, positions):
        x = self.projection(torch.cat((self.enorm(embedded), self.hnorm(hidden)), -1))[None]
        x = x + self.attend(self.before(x), positions)
        return self.last(x + self.mlp(self.between(x)))[0]


class HyV4Module(Module):
    """A layer without streams, which pairs with what leaves those of the model."""

    together = {}
    own = {"enorm": "mtp_layers.0.enorm", "hnorm": "mtp_layers.0.hnorm", "projection": "mtp_layers.0.eh_proj",
           "before": "mtp_layers.0.input_layernorm", "between": "mtp_layers.0.post_attention_layernorm",
           "attention.sinks": "mtp_layers.0.self_attn.learnable_sink_param",
           "attention.gate_proj": "mtp_layers.0.self_attn.linear_gate", "attention": "mtp_layers.0.self_attn",
           "mlp": "mtp_layers.0.mlp", "last": "mtp_layers.0.final_layernorm"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, hy_v4.HYV4RMSNorm)
        self.rope = model.model.rotary_emb
        self.attention, self.mlp = hy_v4.HYV4Attention(config, 0), hy_v4.HYV4MoE(config)

    def attend(self, x, positions):
        mask = torch.full((x.shape[1],) * 2, torch.finfo(torch.float32).min).triu(1)[None, None]
        return self.attention(x, position_embeddings=self.rope(x, positions), attention_mask=mask)[0]


class Glm5NextModule(Module):
    """The same behind GLM 5.3's layers. Its indexer chooses all of a short text."""

    together = {}
    layer = "model.language_model.layers.3."
    own = {"enorm": layer + "enorm", "hnorm": layer + "hnorm", "projection": layer + "eh_proj",
           "before": layer + "input_layernorm", "between": layer + "post_attention_layernorm",
           "attention": layer + "self_attn", "mlp": layer + "mlp", "last": layer + "shared_head.norm"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, glm5_next.Glm5NextTextRMSNorm)
        number = config.layer_types.index("indexed_attention")
        self.attention, self.mlp = glm5_next.Glm5NextTextAttention(config, number), glm5_next.Glm5NextTextMoE(config)

    def attend(self, x, positions):
        return self.attention(x, attention_mask=torch.ones(1, x.shape[1], dtype=torch.bool))[0]
