#pragma once
#include <foretoken/config.h>

#include "attention/flex_choice.h"
#include "base/result.h"
#include "compat/compat.h"
#include "device/device.h"
#include "engine/start/speculation_rules.h"
#include "kernels/attention/kv_layer.h"
#include "model/config/config.h"
#include "sched/scheduler.h"

namespace foretoken {

// The device that a configuration names, with its op table.
Result<std::unique_ptr<Device>> open_configured_device(const EngineConfig& config);

// A configuration in which every automatic choice is made. The texts of what has a type here are
// for messages alone.
struct ResolvedConfig : EngineConfig {
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  KvFormat kv_format = KvFormat::kPlain;
  AttentionChoice attention;
  bool whole_prompts = false;  // as of SchedulerConfig
  // Those of all drafters; without one: kOff and kCoupled.
  LengthMode length_mode = LengthMode::kOff;
  AcceptanceMethod acceptance = AcceptanceMethod::kCoupled;
  Combination parts;  // that the engine is put together from; what is learnt later joins them
};

// How the configuration of its model is read.
ConfigOptions config_options(const EngineConfig& config);

// `config` with every automatic choice made for this device and model, or the first contradiction
// found. What it chose is logged at info. A max_model_len of -1 stays: it takes the loaded model to
// choose it (see kv_budget.h).
Result<ResolvedConfig> resolve_config(const EngineConfig& config, const Device& device,
                                      const ModelConfig& model);

}  // namespace foretoken
