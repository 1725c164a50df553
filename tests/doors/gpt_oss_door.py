#!/usr/bin/env python3
"""A folder as gpt-oss is published: its config.json, its chat template and tokens for the markers of
Harmony, with random weights. Which parsers read its texts is left to the program."""

import json
import pathlib
import unittest

import door

TEMPLATE = door.ROOT / "tests" / "text" / "data" / "chat_templates" / "openai-gpt-oss-120b.jinja"
MARKERS = ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>"]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"place": {"enum": ["here", "there"]}}, "required": ["place"],
    "additionalProperties": False}}}


def gpt_oss_folder():
    """The markers' ids, and a folder with the bundled tokenizer whose last tokens they are."""
    file = pathlib.Path(door.BUNDLED) / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    vocab = tokenizer["model"]["vocab"]
    last = [text for text, _ in sorted(vocab.items(), key=lambda item: item[1])[-len(MARKERS):]]
    ids = {}
    for text, marker in zip(last, MARKERS):
        ids[marker] = vocab.pop(text)
        tokenizer["added_tokens"].append({
            "id": ids[marker], "content": marker, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True})
        vocab[marker] = ids[marker]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge
             for merge in tokenizer["model"]["merges"]]
    tokenizer["model"]["merges"] = [pair for pair in pairs if "".join(pair) not in last]
    config = {
        "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": True,
        "eos_token_id": ids["<|return|>"], "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
        "initial_context_length": 64, "intermediate_size": 32,
        "layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 2048,
        "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "num_local_experts": 4, "rms_norm_eps": 1e-5,
        "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                         "original_max_position_embeddings": 64, "rope_type": "yarn",
                         "truncate": False},
        "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0,
        "tie_word_embeddings": False, "vocab_size": 3072,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}
    return ids, door.model_copy(
        tokenizer__json=tokenizer, config__json=config,
        chat_template__jinja=TEMPLATE.read_text(encoding="utf-8"),
        tokenizer_config__json={"tokenizer_class": "PreTrainedTokenizerFast",
                                "eos_token": "<|return|>", "model_max_length": 2048},
        generation_config__json={"eos_token_id": [ids["<|return|>"], ids["<|call|>"]]})


class GptOss(door.DoorCase):
    flags = ("--load-format", "dummy")

    @classmethod
    def setUpClass(cls):
        cls.ids, cls.folder = gpt_oss_folder()
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def chat(self, **more):
        return self.post("/v1/chat/completions", {"messages": door.USER, "max_tokens": 200, **more})

    def soon(self):
        """Makes the end of a message likely, which random weights hardly ever choose."""
        return {"logit_bias": {str(self.ids["<|end|>"]): 12}}

    def test_forced_tool(self):
        for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
            for seed in range(3):
                answer = self.chat(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False,
                                   seed=seed, **self.soon()).json["choices"][0]
                call = answer["message"]["tool_calls"][0]["function"]
                self.assertEqual(call["name"], "weather", answer)
                self.assertIn(json.loads(call["arguments"])["place"], ("here", "there"))

    def test_forms_are_the_final_message(self):
        form = {"structured_outputs": {"choice": ["yes", "no"]}, **self.soon()}
        self.assertIn(self.chat(**form).json["choices"][0]["message"]["content"], ("yes", "no"))
        events = self.chat(**form, stream=True).events
        text = "".join(e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"])
        self.assertIn(text, ("yes", "no"))

    def test_effort_reaches_the_template(self):
        def prompt(effort):
            body = {"messages": door.USER, "chat_template_kwargs": {"reasoning_effort": effort}}
            ids = self.post("/tokenize", body).json["tokens"]
            return len(ids), self.post("/detokenize", {"tokens": ids}).json["prompt"]
        for effort in ("low", "medium", "high"):
            length, text = prompt(effort)
            self.assertIn("Reasoning: " + effort, text)
            used = self.chat(max_tokens=1, reasoning_effort=effort).json["usage"]["prompt_tokens"]
            self.assertEqual(used, length, effort)

    def test_markers_are_no_content(self):
        for seed in range(4):
            message = self.chat(max_tokens=60, seed=seed).json["choices"][0]["message"]
            for text in (message["content"] or "", message["reasoning"] or ""):
                for marker in MARKERS:
                    self.assertNotIn(marker, text)


if __name__ == "__main__":
    door.main()
