"""Writes Hugging Face folders, complete at any moment and optionally packed into one tar file."""

import json
import os
import shutil
import tarfile

from safetensors.torch import save_file

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}{{- '<|assistant|>' -}}"
    "{%- else -%}{{- '<|user|>' -}}{%- endif -%}"
    "{{- message['content'] -}}{{- '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}")


def write_json(path, value, indent=2):
    path.write_text(json.dumps(value, indent=indent) + "\n")


def export_folder(weights, config, tokenizer, out, report=None):
    """`weights` by their published names; `tokenizer` is a tokenizer.json."""
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    os.chmod(out / "model.safetensors", 0o644)
    write_json(out / "config.json", config.to_hugging_face())
    write_json(out / "generation_config.json", {"bos_token_id": 0, "eos_token_id": [0, 3], "do_sample": False})
    write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False, "add_eos_token": False,
        "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
        "model_max_length": config.max_position_embeddings})
    shutil.copyfile(tokenizer, out / "tokenizer.json")
    if report is not None:
        write_json(out / "training.json", report, indent=1)


def export(model, tokenizer, out, report=None, pack=None):
    """`pack`: a tar file to hold the folder as well, replaced at once."""
    export_folder(model.hugging_face_weights(), model.config, tokenizer, out, report)
    if pack:
        unfinished = pack.with_name(pack.name + ".part")
        with tarfile.open(unfinished, "w") as archive:
            archive.add(out, out.name)
        os.replace(unfinished, pack)
