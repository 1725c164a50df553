"""Adapters (LoRA): by the model's name, loaded and unloaded while the server runs."""

import concurrent.futures
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import unittest
import unittest.mock

import door

CLIENTS = len(sys.argv) > 2
if CLIENTS:
    door.use_clients("openai")
    import openai

CONFIG = json.loads((pathlib.Path(door.BUNDLED) / "config.json").read_text())
PROMPT = "Once upon a time there was a little"
DRAFTS = ('{"method": "ngram", "num_speculative_tokens": 3, "length_policy": "fixed"}')


def write_adapter(folder, seed, rank=4, modules=("q_proj", "v_proj", "down_proj"), **fields):
    """A PEFT folder with random matrices for the bundled model."""
    folder.mkdir()
    hidden, inner, dim = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["head_dim"]
    sizes = {"q_proj": (hidden, CONFIG["num_attention_heads"] * dim),
             "v_proj": (hidden, CONFIG["num_key_value_heads"] * dim), "down_proj": (inner, hidden)}
    generator = random.Random(seed)
    header, data = {}, b""
    for layer in range(CONFIG["num_hidden_layers"]):
        for module in modules:
            part = "mlp" if module == "down_proj" else "self_attn"
            inputs, outputs = sizes[module]
            for letter, shape, scale in (("A", (rank, inputs), inputs ** -0.5),
                                         ("B", (outputs, rank), 0.4)):
                count = shape[0] * shape[1]
                block = struct.pack(f"<{count}f",
                                    *(generator.gauss(0, scale) for _ in range(count)))
                name = f"base_model.model.model.layers.{layer}.{part}.{module}.lora_{letter}.weight"
                header[name] = {"dtype": "F32", "shape": list(shape),
                                "data_offsets": [len(data), len(data) + len(block)]}
                data += block
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "bias": "none",
              "target_modules": list(modules), **fields}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return str(folder)


HOLDER = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(HOLDER.name)
SQL = write_adapter(FOLDER / "sql", 1)
POEMS = write_adapter(FOLDER / "poems", 2, modules=("q_proj", "v_proj"))
BIASED = write_adapter(FOLDER / "biased", 3, lora_bias=True)


class AdapterCase(door.DoorCase):
    """The two adapters beside the bundled model."""

    flags = ("--enable-lora", "--max-loras", "2", "--lora-modules", f"sql={SQL}",
             json.dumps({"name": "poems", "path": POEMS, "base_model_name": "bundled"}),
             "--speculative-config", DRAFTS)

    def complete(self, model=None, path="/v1/completions", **more):
        body = {"prompt": PROMPT, "max_tokens": 24, "temperature": 0, "ignore_eos": True, **more}
        if model is not None:
            body["model"] = model
        return self.post(path, body).json

    def text(self, model=None, **more):
        return self.complete(model, **more)["choices"][0]["text"]


class ByName(AdapterCase):
    def test_the_list_of_models_tells_of_adapters(self):
        models = {model["id"]: model for model in self.get("/v1/models").json["data"]}
        self.assertEqual(list(models), ["foretoken-7m", "sql", "poems"])
        self.assertEqual((models["sql"]["root"], models["sql"]["parent"]), (SQL, "foretoken-7m"))
        self.assertEqual(models["poems"]["parent"], "bundled")
        self.assertIsNone(models["foretoken-7m"]["parent"])
        self.assertEqual(self.get("/v1/models/sql").json["root"], SQL)

    def test_each_name_has_its_text(self):
        texts = {name: self.text(name) for name in ("foretoken-7m", "sql", "poems")}
        self.assertEqual(len(set(texts.values())), 3, texts)
        self.assertEqual(self.complete("sql")["model"], "sql")
        for name, text in texts.items():
            self.assertEqual(self.text(name), text, name)
            plain = self.text(name, speculative={"enabled": False})
            self.assertEqual(plain, text, name + " without drafts")
        self.assertEqual(self.text(), texts["foretoken-7m"])
        error = self.post("/v1/completions", {"model": "sqll", "prompt": PROMPT}, 404).json
        self.assertIn("did you mean 'sql'", error["error"]["message"])

    def test_other_apis_take_the_name(self):
        chat = {"model": "sql", "messages": door.USER, "max_tokens": 12, "temperature": 0}
        adapted = self.post("/v1/chat/completions", chat).json
        base = self.post("/v1/chat/completions", {**chat, "model": "foretoken-7m"}).json
        self.assertNotEqual(adapted["choices"][0]["message"], base["choices"][0]["message"])
        message = self.post("/v1/messages", chat).json
        self.assertEqual(message["content"][0]["text"],
                         adapted["choices"][0]["message"]["content"])
        vectors = [self.post("/v1/embeddings", {"model": name, "input": PROMPT}).json["data"][0]
                   for name in ("sql", "poems")]
        self.assertNotEqual(vectors[0]["embedding"], vectors[1]["embedding"])
        self.post("/tokenize", {"model": "sql", "prompt": PROMPT})

    @unittest.skipUnless(CLIENTS, "needs the clients' environment")
    def test_the_official_client(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key="none")
        self.assertIn("poems", [model.id for model in client.models.list()])
        stream = client.completions.create(model="poems", prompt=PROMPT, max_tokens=24,
                                           temperature=0, stream=True,
                                           extra_body={"ignore_eos": True})
        text = "".join(event.choices[0].text for event in stream)
        self.assertEqual(text, self.text("poems"))
        with self.assertRaises(openai.NotFoundError):
            client.completions.create(model="prose", prompt=PROMPT)

    def test_many_at_once_have_the_same_texts(self):
        names = ["sql", "foretoken-7m", "poems"] * 4
        texts = {name: self.text(name) for name in set(names)}
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertEqual(list(pool.map(self.text, names)), [texts[name] for name in names])

    def test_a_name_that_peft_gives_is_not_the_base_model(self):
        self.post("/v1/completions", {"model": "default", "prompt": PROMPT}, 404)
        self.post("/v1/completions", {"model": "tgi", "prompt": PROMPT, "max_tokens": 1})

    def test_nothing_is_loaded_unless_it_is_allowed(self):
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            error = self.post(path, {"lora_name": "x", "lora_path": SQL}, 404).json["error"]
            self.assertIn("VLLM_ALLOW_RUNTIME_LORA_UPDATING", error["message"])

    def test_metrics_tell_routers_of_them(self):
        """gateway-api-inference-extension 2900, llm-d-router 926"""
        page = self.get("/metrics").text
        self.assertIn('vllm:lora_requests_info{max_lora="2",running_lora_adapters="",'
                      'waiting_lora_adapters=""} ', page)

    def test_llama_servers_list(self):
        listed = self.get("/lora-adapters").json
        self.assertEqual([(item["id"], item["path"], item["scale"]) for item in listed],
                         [(0, SQL, 0.0), (1, POEMS, 0.0)])
        poems = self.text("poems")
        answer = self.complete(path="/completion", n_predict=24, lora=[{"id": 1, "scale": 1.0}])
        self.assertEqual(answer["content"], poems)
        base = self.text()
        self.post("/lora-adapters", [{"id": 0, "scale": 0}, {"id": 1, "scale": 1}])
        try:
            self.assertEqual(self.text(), poems)
            self.assertEqual(self.text("foretoken-7m"), base)
            self.assertEqual(self.get("/lora-adapters").json[1]["scale"], 1.0)
        finally:
            self.post("/lora-adapters", [])
        self.assertEqual(self.text(), base)
        for wrong in ([{"id": 7, "scale": 1}], [{"id": 0, "scale": 0.5}], {"id": 0}, [3],
                      [{"id": 0, "scale": 1}, {"id": 1, "scale": 1}]):
            self.post("/lora-adapters", wrong, 400)


class WhileItRuns(AdapterCase):
    @classmethod
    def setUpClass(cls):
        with unittest.mock.patch.dict(os.environ, {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}):
            super().setUpClass()

    def load(self, name, path, status=200, **more):
        return self.post("/v1/load_lora_adapter",
                         {"lora_name": name, "lora_path": path, **more}, status)

    def test_loaded_and_unloaded(self):
        answer = self.load("more", POEMS)
        self.assertEqual(answer.text, "Success: LoRA adapter 'more' added successfully.")
        self.assertEqual(self.text("more"), self.text("poems"))
        error = self.load("more", SQL, 400).json["error"]["message"]
        self.assertIn("already been loaded", error)
        self.load("more", SQL, load_inplace=True)
        self.assertEqual(self.text("more"), self.text("sql"))
        answer = self.post("/v1/unload_lora_adapter", {"lora_name": "more"})
        self.assertEqual(answer.text, "Success: LoRA adapter 'more' removed successfully.")
        self.post("/v1/completions", {"model": "more", "prompt": PROMPT}, 404)
        self.post("/v1/unload_lora_adapter", {"lora_name": "more"}, 404)
        self.load("more", POEMS)
        self.assertEqual(self.text("more"), self.text("poems"))
        self.post("/v1/unload_lora_adapter", {"lora_name": "more"})

    def test_as_sagemaker_calls_them(self):
        self.post("/adapters", {"name": "poet", "src": POEMS})
        answer = self.post("/invocations", {"prompt": PROMPT, "max_tokens": 24,
                                            "temperature": 0, "ignore_eos": True},
                           headers={"X-Amzn-SageMaker-Adapter-Identifier": "poet"}).json
        self.assertEqual(answer["model"], "poet")
        self.assertEqual(answer["choices"][0]["text"], self.text("poems"))
        self.assertEqual(self.send("DELETE", "/adapters/poet").status, 200)
        self.assertEqual(self.send("DELETE", "/adapters/poet").status, 404)
        self.post("/adapters", {"name": "poet", "src": "/nowhere"}, 404)
        self.post("/adapters", {"name": "poet"}, 400)

    def test_what_cannot_be_loaded(self):
        self.load("x", "/nowhere", 404)
        self.load("", SQL, 400)
        self.load("foretoken-7m", SQL, 400)
        error = self.load("x", BIASED, 501).json["error"]["message"]
        self.assertIn("lora_bias", error)
        self.post("/v1/unload_lora_adapter", {}, 400)
        self.assertEqual(self.text("sql"), self.text("sql"))

    def test_running_requests_keep_their_adapter(self):
        self.load("short", SQL)
        expected = self.text("short", max_tokens=200)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.text, "short", max_tokens=200)
            while self.get("/load").json["server_load"] == 0 and not running.done():
                pass
            self.post("/v1/unload_lora_adapter", {"lora_name": "short"})
            self.assertEqual(running.result(), expected)


class AtTheStart(unittest.TestCase):
    def refused(self, *flags):
        ended = door.run_program("serve", door.BUNDLED, *flags)
        self.assertNotEqual(ended.returncode, 0)
        return ended.stderr

    def test_what_is_wrong_is_said(self):
        self.assertIn("add --enable-lora", self.refused("--lora-modules", f"a={SQL}"))
        self.assertIn("lora_bias", self.refused("--enable-lora", "--lora-modules", f"a={BIASED}"))
        self.assertIn("twice", self.refused("--enable-lora", "--lora-modules", f"a={SQL}",
                                            f"a={POEMS}"))
        self.assertIn("--max-lora-rank is 2", self.refused(
            "--enable-lora", "--max-lora-rank", "2", "--lora-modules", f"a={SQL}"))
        self.assertIn("--enable-lora --lora-modules NAME=FOLDER", self.refused("--lora", "x.gguf"))
        self.assertIn("not read from GGUF files", self.refused(
            "--enable-lora", "--lora-modules", "a=x.gguf"))

    def test_an_adapter_is_no_model(self):
        ended = door.run_program("generate", "--model", SQL, "Once")
        self.assertIn("is a LoRA adapter and no model", ended.stderr)


class Lines(unittest.TestCase):
    """foretoken generate --jsonl: "model" of a line."""

    def texts(self, *lines):
        file = FOLDER / "lines.jsonl"
        file.write_text("".join(json.dumps({"prompt": PROMPT, "max_tokens": 24, **line}) + "\n"
                                for line in lines))
        ended = door.run_program("generate", "--model", door.BUNDLED, "--jsonl", str(file), "--json",
                                 "--temperature", "0", "--enable-lora", "--lora-modules",
                                 f"sql={SQL}")
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def test_each_line_has_its_adapter(self):
        plain, sql, other = self.texts({}, {"model": "sql"}, {"model": "nosuch"})
        self.assertNotEqual(plain["text"], sql["text"])
        self.assertIn("no adapter of --lora-modules (sql)", json.dumps(other))


if __name__ == "__main__":
    door.main()
