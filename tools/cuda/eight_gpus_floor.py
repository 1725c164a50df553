"""What eight_gpus.py needs to know of GPUs: the layers that fit, the least time of a step, what exchanges take, and
memory over time. Standard library only."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import floor  # noqa: E402 - of the folder above
import gpu_table  # noqa: E402

R1_LAYERS = 61
FP8 = floor.WeightBytes(1, 1, 2)
RESERVED_GIB = 12  # of a GPU: KV blocks, workspaces, graphs
EXCHANGES = ("all_reduce", "gather_", "dispatch_rows", "return_rows")
TINY = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 8, "vocab_size": 1024, "max_position_embeddings": 2048}


def gpus():
    """(name, bytes of memory) of each."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"],
                            capture_output=True, text=True, check=False)
    lines = [line.rsplit(",", 1) for line in listed.stdout.splitlines() if "," in line]
    return [(name.strip(), int(mib) << 20) for name, mib in lines]


def layers_that_fit(config, gpu_bytes, ranks):
    """Of R1's in FP8, its MTP module beside them, on GPUs of which each has all but the other ranks' experts."""
    hidden = config["hidden_size"]
    mixture = floor.Mixture(config)
    attention = floor.attention_of(config)[0]
    own = attention + mixture.always + mixture.count * mixture.expert // ranks
    num_dense = config["first_k_dense_replace"]
    dense = num_dense * (attention + 3 * hidden * config["intermediate_size"])
    embeddings = 2 * floor.BYTES * config["vocab_size"] * hidden
    mixtures = int((gpu_bytes - dense - embeddings - own) // own)
    return max(min(num_dense + mixtures, R1_LAYERS), num_dense + 1)


def write_shape(folder, config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    return folder


def write_latents(folder, found, ranks):
    """R1's shape with all layers that the GPUs hold; without GPUs a tiny one for as many ranks."""
    source = ROOT / "bench" / "configs" / "deepseek-r1-22l" / "config.json"
    config = json.loads(source.read_text(encoding="utf-8"))
    if not found:
        config.update(TINY, num_hidden_layers=4, kv_lora_rank=32, q_lora_rank=32, qk_nope_head_dim=16,
                      qk_rope_head_dim=16, v_head_dim=16, n_routed_experts=16, num_experts_per_tok=2, n_group=4,
                      topk_group=2, moe_intermediate_size=256, first_k_dense_replace=1, rope_scaling=None)
        return write_shape(folder / "r1-tiny", config)
    least = min(size for _, size in found[:ranks]) - (RESERVED_GIB << 30)
    config["num_hidden_layers"] = layers_that_fit(config, least, ranks)
    return write_shape(folder / f"r1-{config['num_hidden_layers']}l", config)


def write_tiny_llama(folder):
    common = dict(TINY, model_type="llama", bos_token_id=0, eos_token_id=1, hidden_act="silu", rms_norm_eps=1e-6,
                  torch_dtype="bfloat16", tie_word_embeddings=False, rope_theta=10000)
    target = write_shape(folder / "llama-tiny", dict(common, architectures=["LlamaForCausalLM"]))
    head = json.loads((ROOT / "bench/configs/llama-3-70b-eagle/config.json").read_text(encoding="utf-8"))
    return target, write_shape(folder / "llama-tiny-eagle",
                               dict(common, num_hidden_layers=1, architectures=head["architectures"]))


def rank_seconds(shape, layout, ranks, batch, rows_each, context, device):
    """The least time of a forward on the rank with most to do: bytes or operations, without exchange."""
    read_tb_s, tflops = gpu_table.device_of(device)[:2]
    mixture = shape.mixture
    rows = batch * rows_each
    experts = shape.expert_bytes * mixture.layers * mixture.touched(rows) * mixture.expert / ranks
    of_sequence = floor.BYTES * shape.kv * context
    if layout == "DP EP":
        own = -(-batch // ranks)
        read = shape.bytes + own * of_sequence
    else:
        # Latents are each rank's, unless the positions are dealt out.
        shared = ranks if layout == "TP DCP" or not shape.is_latent else 1
        read = shape.bytes / ranks + batch * of_sequence / shared
        own = batch / ranks
    flops = 2 * own * rows_each * shape.weights
    flops += (2 * rows * mixture.layers * mixture.top_k * mixture.expert + rows * shape.queries * context) / ranks
    return max((read + experts) / (read_tb_s * 1e12), flops / (tflops * 1e12))


def shape_of(folder, module, weight_bytes):
    shape = floor.Shape(folder, module=module, weight_bytes=weight_bytes)
    config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    shape.is_latent = bool(config.get("kv_lora_rank"))
    return shape


def floor_ms(place, folder, layout, batch, drafts, module, context):
    """The least ms per token of a sequence of the steps as they were, with what their exchanges were measured to
    take. `module`: true for MTP, the folder of a head, or nothing."""
    device = place.gpus[0][0]
    steps = max(drafts["steps"], 1)
    drafted = drafts["drafted_tokens"] / steps
    own = FP8 if folder == place.latents else floor.WeightBytes()
    target = shape_of(folder, False, own)
    seconds = rank_seconds(target, layout, place.ranks, batch, 1 + drafted, context, device)
    if module:
        head = shape_of(folder, True, own) if module is True else shape_of(module, False, own)
        seconds += drafted * rank_seconds(head, layout, place.ranks, batch, 1, context, device)
    if folder == place.latents:
        engines = place.ranks if layout == "DP EP" else 1
        seconds += exchange_seconds(place.exchange.get(layout, {}), -(-batch // engines) * (1 + drafted))
    return seconds * 1e3 * steps / drafts["output_tokens"]


def exchange_seconds(by_rows, rows):
    """Of the least number of rows measured that holds so many."""
    fitting = sorted(found for found in by_rows if found >= rows) or sorted(by_rows)[-1:]
    return sum(count * us for count, us in by_rows[fitting[0]].values()) * 1e-6 if fitting else 0


def lane_events(events, lane):
    ids = [event["tid"] for event in events
           if event.get("name") == "thread_name" and event["args"].get("name") == lane]
    return [event for event in events if event.get("tid") in ids and "dur" in event]


def exchange_us(trace):
    """{rows of a step: {op: (in a step, median us)}} of a profile of ops one by one, which is one engine's."""
    events = json.loads(pathlib.Path(trace).read_text(encoding="utf-8"))["traceEvents"]
    steps = lane_events(events, "device")
    ops = [op for op in lane_events(events, "device ops") if any(word in op["name"] for word in EXCHANGES)]
    rows_of = {step["args"]["step"]: step["args"]["rows"] for step in steps
               if step["name"] == "step" and step["args"]["prompt rows"] == 0 and step["args"]["rows"] > 0}
    found, counts = {}, {}
    for rows in rows_of.values():
        counts[rows] = counts.get(rows, 0) + 1
    for op in ops:
        rows = rows_of.get(op["args"]["step"])
        if rows is not None:
            found.setdefault(rows, {}).setdefault(op["name"], []).append(op["dur"])
    return {rows: {name: (len(times) / counts[rows], statistics.median(times)) for name, times in named.items()}
            for rows, named in found.items()}


def used_mib(process):
    """Of each GPU; of the process where there is none."""
    if shutil.which("nvidia-smi") is not None:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                               capture_output=True, text=True, check=False)
        return [int(line) for line in asked.stdout.split() if line.isdigit()]
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    except OSError:
        return []
    return [int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmRSS")]


def watch_memory(process, samples):
    while process.poll() is None:
        if found := used_mib(process):
            samples.append(found)
        time.sleep(0.3)


def most(samples):
    return [max(column) for column in zip(*samples)] if samples else []


def growth(samples):
    """MiB by which the fullest GPU of the last quarter is above the quarter before; nothing of few samples."""
    quarter = len(samples) // 4
    if quarter < 2:
        return None
    last, before = samples[3 * quarter:], samples[2 * quarter:3 * quarter]
    return max(a - b for a, b in zip(most(last), most(before)))
