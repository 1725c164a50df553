#include "model/stack/decoder_layer.h"

#include "model/layer/feed_forward/expert_faults.h"

namespace foretoken {
namespace {

// Makes the part of `spec` and loads it.
Status load_part(PartLoader& loader, const std::string& base, const GqaSpec& spec, Mixer* out) {
  return out->emplace<Gqa>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const LatentSpec& spec, Mixer* out) {
  return out->emplace<Latent>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const ShortConvSpec& spec,
                 Mixer* out) {
  return out->emplace<ShortConv>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const LinearSpec& spec, Mixer* out) {
  return out->emplace<LinearMixer>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const SelectiveSpec& spec,
                 Mixer* out) {
  return out->emplace<SelectiveMixer>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const WkvSpec& spec, Mixer* out) {
  return out->emplace<WkvMixer>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const CompressedSpec& spec,
                 Mixer* out) {
  return out->emplace<Compressed>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const GatedMlpSpec& spec,
                 FeedForward* out) {
  return out->emplace<GatedMlp>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const PlainMlpSpec& spec,
                 FeedForward* out) {
  return out->emplace<PlainMlp>().load(loader, base, spec);
}
Status load_part(PartLoader& loader, const std::string& base, const ExpertsSpec& spec,
                 FeedForward* out) {
  return out->emplace<Experts>().load(loader, base, spec);
}
template <class Parts>
Status load_part(PartLoader&, const std::string&, const Absent& spec, Parts* out) {
  *out = spec;
  return {};
}

// A norm that a layer may lack.
Status load_norm_of(PartLoader& loader, const std::string& base, const char* name, Norm* to) {
  return name == nullptr ? Status()
                         : loader.load_norm(base + name, loader.config().hidden_size, to);
}

// The norms around the mixer and the feed-forward part, and the factors of the residual.
Status load_norms(PartLoader& loader, const std::string& base, const LayerSpec& spec,
                  DecoderLayer* out) {
  const auto norm = [&](const char* name, Norm* to, float offset = 0) {
    PartLoader own = loader.with_offset(offset);
    return load_norm_of(own, base, name, to);
  };
  FT_RETURN_IF_ERROR(norm(spec.mixer_norm, &out->mixer_norm));
  FT_RETURN_IF_ERROR(norm(spec.mixer_post_norm, &out->mixer_post_norm, spec.mixer_post_offset));
  FT_RETURN_IF_ERROR(norm(spec.feed_forward_norm, &out->feed_forward_norm));
  FT_RETURN_IF_ERROR(norm(spec.feed_forward_post_norm, &out->feed_forward_post_norm,
                          spec.feed_forward_post_offset));
  out->mixer_post_norm.eps = out->feed_forward_post_norm.eps = spec.post_norm_eps;
  const auto factors = [&](const char* name, const float** to) {
    return name == nullptr ? Status()
                           : loader.load_vector({{base + name, loader.config().hidden_size}}, to);
  };
  FT_RETURN_IF_ERROR(factors(spec.mixer_residual, &out->mixer_residual));
  FT_RETURN_IF_ERROR(factors(spec.feed_forward_shift, &out->feed_forward_shift));
  return factors(spec.feed_forward_residual, &out->feed_forward_residual);
}

Status load_beside(PartLoader& loader, const std::string& base, const BesideSpec& spec,
                   Beside* out) {
  FT_RETURN_IF_ERROR(load_norm_of(loader, base, spec.norm, &out->norm));
  FT_RETURN_IF_ERROR(load_norm_of(loader, base, spec.post_norm, &out->post_norm));
  FT_RETURN_IF_ERROR(load_norm_of(loader, base, spec.other_post_norm, &out->other_post_norm));
  return out->experts.load(loader, base, spec.experts);
}

}  // namespace

Status load_layer(PartLoader& loader, const std::string& base, const LayerSpec& spec,
                  DecoderLayer* out) {
  FT_RETURN_IF_ERROR(load_norms(loader, base, spec, out));
  out->joints = joints_of(spec);
  out->parallel = spec.parallel;
  out->norms_sums = spec.norms_sums;
  out->norms_residual = spec.norms_residual;
  out->mixer_residual_scale = spec.mixer_residual_scale;
  out->feed_forward_residual_scale = spec.feed_forward_residual_scale;
  if (spec.input_size > 0) {
    FT_RETURN_IF_ERROR(out->input.load(loader, base, spec.input_size));
  }
  if (spec.beside) {
    FT_RETURN_IF_ERROR(load_beside(loader, base, *spec.beside, &out->beside.emplace()));
  }
  out->joins_shortcut = spec.joins_shortcut;
  if (spec.shortcut) {
    FT_RETURN_IF_ERROR(out->shortcut.emplace().load(loader, base, *spec.shortcut));
  }
  if (spec.laurel_rank > 0) {
    FT_RETURN_IF_ERROR(out->laurel.load(loader, base, spec.laurel_rank));
  }
  if (spec.hyper.exist()) {
    const StreamWeights learned = learned_of(spec.hyper);
    FT_RETURN_IF_ERROR(out->mixer_streams.load(loader, base + spec.hyper.of_mixer, learned));
    FT_RETURN_IF_ERROR(
        out->feed_forward_streams.load(loader, base + spec.hyper.of_feed_forward, learned));
  }
  if (spec.streams.exist()) {
    FT_RETURN_IF_ERROR(out->streams.load(loader, base, spec.streams));
  }
  FT_RETURN_IF_ERROR(out->mixer_gate.load(loader, base, spec.mixer_gate));
  FT_RETURN_IF_ERROR(out->feed_forward_gate.load(loader, base, spec.feed_forward_gate));
  if (spec.depth.exists) FT_RETURN_IF_ERROR(out->depth.load(loader, base, spec.depth));
  if (spec.scaled) {
    FT_ASSIGN_OR_RETURN(out->scale, loader.weights().number(base + "layer_scalar"));
  }
  if (spec.side) FT_RETURN_IF_ERROR(out->side.emplace().load(loader, base, *spec.side));
  FT_RETURN_IF_ERROR(out->shared.load(loader, base, spec.shared));
  const std::string of_mixer = spec.shared.exists() ? shared_base(loader, base, spec.shared) : base;
  FT_RETURN_IF_ERROR(
      std::visit([&](const auto& mixer) { return load_part(loader, of_mixer, mixer, &out->mixer); },
                 spec.mixer));
  const Status loaded = std::visit(
      [&](const auto& part) { return load_part(loader, base, part, &out->feed_forward); },
      spec.feed_forward);
  const bool has_others = spec.beside.has_value() || spec.shortcut.has_value();
  const auto* experts = std::get_if<ExpertsSpec>(&spec.feed_forward);
  return has_others ? loaded : with_expert_fields(loader, base, experts, loaded);
}

int32_t kept_window(const DecoderLayer& layer) {
  const auto say = [](const auto& mixer) -> int32_t {
    if constexpr (requires { mixer.kept_window(); }) return mixer.kept_window();
    return 0;
  };
  return std::visit(say, layer.mixer);
}

bool turns_rows(const DecoderLayer& layer) {
  const auto say = [](const auto& mixer) {
    if constexpr (requires { mixer.turns_rows(); }) return mixer.turns_rows();
    return true;
  };
  return std::visit(say, layer.mixer);
}

}  // namespace foretoken
