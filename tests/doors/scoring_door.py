#!/usr/bin/env python3
"""Scores, rankings and pooled vectors over HTTP."""

import base64
import json
import math
import pathlib
import struct
import tempfile

import door

QUERY = "a cat that sleeps"
TEXTS = ["The dog ran to the park.", "a cat that sleeps", "One day the little cat was tired."]


class Scoring(door.DoorCase):
    flags = ("--max-model-len", "256")

    def vectors(self, texts, **more):
        data = self.post("/v1/embeddings", {"input": texts, **more}).json["data"]
        return [item["embedding"] for item in data]

    def scores(self):
        """As the Python package has them: the products of embeddings of length 1."""
        query, *others = self.vectors([QUERY, *TEXTS])
        return [sum(x * y for x, y in zip(query, other)) for other in others]

    def assert_near(self, got, wanted, places=6):
        self.assertEqual(len(got), len(wanted))
        for one, other in zip(got, wanted):
            self.assertAlmostEqual(one, other, places=places)

    def test_score_names_its_texts_as_vllm(self):
        for first, second in (("text_1", "text_2"), ("data_1", "data_2"), ("queries", "documents"),
                              ("queries", "items")):
            for path in ("/v1/score", "/score"):
                answer = self.post(path, {first: QUERY, second: TEXTS}).json
                self.assertEqual(answer["object"], "list")
                self.assertEqual([item["index"] for item in answer["data"]], [0, 1, 2])
                self.assertEqual({item["object"] for item in answer["data"]}, {"score"})
                self.assert_near([item["score"] for item in answer["data"]], self.scores())
                self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])

    def test_score_in_pairs(self):
        answer = self.post("/v1/score", {"text_1": TEXTS, "text_2": TEXTS}).json
        self.assert_near([item["score"] for item in answer["data"]], [1, 1, 1])
        answer = self.post("/v1/score", {"text_1": TEXTS[:2], "text_2": TEXTS}, 400).json
        self.assertIn("equally many", answer["error"]["message"])
        self.post("/v1/score", {"text_1": QUERY}, 400)

    def test_rank(self):
        wanted = sorted(enumerate(self.scores()), key=lambda pair: -pair[1])
        for path in ("/v1/rerank", "/rerank", "/v2/rerank", "/reranking", "/v1/reranking"):
            answer = self.post(path, {"model": "foretoken-7m", "query": QUERY,
                                      "documents": TEXTS}).json
            results = answer["results"]
            self.assertEqual([r["index"] for r in results], [index for index, _ in wanted])
            self.assert_near([r["relevance_score"] for r in results], [s for _, s in wanted])
            self.assertEqual([r["document"]["text"] for r in results],
                             [TEXTS[index] for index, _ in wanted])
            self.assertEqual(results[0]["index"], 1)
            self.assertGreater(answer["usage"]["total_tokens"], 0)

    def test_rank_top_n_and_documents(self):
        body = {"query": QUERY, "documents": [{"text": text} for text in TEXTS]}
        self.assertEqual(len(self.post("/v1/rerank", {**body, "top_n": 2}).json["results"]), 2)
        self.assertEqual(len(self.post("/v1/rerank", {**body, "top_n": 9}).json["results"]), 3)
        bare = self.post("/v1/rerank", {**body, "return_documents": False}).json["results"]
        self.assertNotIn("document", bare[0])
        parts = {"content": [{"type": "text", "text": TEXTS[1]}]}
        answer = self.post("/v1/rerank", {"query": QUERY, "documents": [parts]}).json
        self.assert_near([answer["results"][0]["relevance_score"]], [1])
        self.post("/v1/rerank", {"query": QUERY, "documents": []}, 400)
        self.post("/v1/rerank", {"documents": TEXTS}, 400)

    def test_documents_and_texts_are_cut(self):
        long = " ".join(["One day the little cat was tired."] * 60)  # more than the context
        ids = self.post("/tokenize", {"prompt": long, "add_special_tokens": False}).json["tokens"]
        begin = self.post("/detokenize", {"tokens": ids[:9]}).json["prompt"]
        body = {"query": QUERY, "documents": [TEXTS[0], long]}
        for path in ("/v1/rerank", "/rerank"):
            self.post(path, body, 400)
            cut = self.post(path, {**body, "max_tokens_per_doc": 9}).json["results"]
            self.assertEqual({r["document"]["text"] for r in cut}, {TEXTS[0], long})
            same = self.post(path, {**body, "documents": [TEXTS[0], begin]}).json["results"]
            self.assertEqual([r["index"] for r in cut], [r["index"] for r in same])
            self.assert_near([r["relevance_score"] for r in cut],
                             [r["relevance_score"] for r in same])
            self.assertEqual(len(self.post(path, {**body, "truncate_prompt_tokens": 20})
                                 .json["results"]), 2)
        self.post("/v1/rerank", {"query": QUERY, "documents": TEXTS, "max_tokens_per_doc": 0})
        self.assertIn("max_tokens_per_doc", self.post(
            "/v1/rerank", {**body, "max_tokens_per_doc": -1}, 400).json["error"]["message"])
        for path in ("/v1/score", "/score"):
            score = {"text_1": QUERY, "text_2": long}
            self.post(path, score, 400)
            self.assertEqual(len(self.post(path, {**score, "truncate_prompt_tokens": -1})
                                 .json["data"]), 1)
            cut = self.post(path, {"text_1": long, "text_2": long, "max_tokens_per_query": 9,
                                   "max_tokens_per_doc": 9, "truncation_side": "left"}).json
            self.assertNotIn("warnings", cut)
            self.assert_near([cut["data"][0]["score"]], [1])

    def test_text_embeddings_inference(self):
        """As huggingface_hub's InferenceClient, LangChain and LlamaIndex send it"""
        wanted = self.vectors(TEXTS)
        for path in ("/embed", "/"):
            self.assertEqual(self.post(path, {"inputs": TEXTS}).json, wanted)
        short, = self.post("/embed", {"inputs": TEXTS[0], "dimensions": 16, "truncate": True}).json
        self.assert_near(short, self.vectors([TEXTS[0]], dimensions=16)[0])
        compared = {"inputs": {"source_sentence": QUERY, "sentences": TEXTS}}
        for path, more in (("/similarity", {}), ("/", {"parameters": {}})):
            self.assert_near(self.post(path, {**compared, **more}).json, self.scores(), places=5)
        for path in ("/rerank", "/"):
            ranking = self.post(path, {"query": QUERY, "texts": TEXTS, "return_text": True}).json
            self.assertEqual([ranking[0]["index"], ranking[0]["text"]], [1, TEXTS[1]])
        tokens, = self.post("/tokenize", {"inputs": QUERY, "add_special_tokens": False}).json
        self.assertEqual(self.post("/decode", {"ids": [token["id"] for token in tokens]}).json, [QUERY])
        long = " ".join(TEXTS * 40)
        self.post("/embed", {"inputs": long})
        for wrong in ({"truncate": False}, {"truncation_direction": "up"}):
            answer = self.post("/embed", {"inputs": long, **wrong}, 400).json
            self.assertEqual(answer["error_type"], "Validation")
        for wrong in ({"texts": []}, {"texts": [long], "truncate": False}, {"texts": TEXTS, "top_n": -1},
                      {"texts": TEXTS, "model": "none"}):
            answer = self.send("POST", "/rerank", {"query": QUERY, **wrong})
            self.assertEqual((answer.status // 100, sorted(answer.json)), (4, ["error", "error_type"]))
        self.assertIn("message", self.post("/rerank", {"query": QUERY, "documents": []}, 400)
                      .json["error"])
        self.assertIn("no classes", self.post("/predict", {"inputs": QUERY}, 404).json["error"])

    def test_words_of_other_services(self):
        """NIM's and Voyage's clients: what is too long is cut, and fewer documents are told"""
        long = " ".join(TEXTS * 40)
        for path, body in (("/v1/embeddings", {"input": [long], "truncate": "END"}),
                           ("/v1/embeddings", {"input": [long], "truncation": True}),
                           ("/v1/rerank", {"query": QUERY, "documents": [long], "truncation": True})):
            self.assertNotIn("warnings", self.post(path, body).json)
            self.post(path, {key: body[key] for key in body if not key.startswith("trunc")}, 400)
        told = self.post("/v1/rerank", {"query": QUERY, "documents": TEXTS, "top_k": 1}).json
        self.assertEqual([one["index"] for one in told["results"]], [1])
        self.assertEqual([sorted(one) for one in told["data"]], [["index", "relevance_score"]])
        body = {"query": {"text": QUERY}, "passages": [{"text": text} for text in (*TEXTS, long)]}
        ranked = self.post("/v1/ranking", {**body, "truncate": "END"}).json["rankings"]
        self.assertEqual(len(ranked), 4)
        self.assertEqual((ranked[0]["index"], sorted(ranked[0])), (1, ["index", "logit"]))
        self.post("/v1/ranking", {**body, "truncate": "NONE"}, 400)
        hosted = self.post("/v1/retrieval/nvidia/reranker/reranking", {**body, "truncate": "END"}).json
        self.assertEqual(hosted["rankings"], ranked)

    def test_pooling(self):
        wanted = self.vectors(TEXTS)
        answer = self.post("/pooling", {"input": TEXTS, "task": "embed"}).json
        self.assertEqual([item["object"] for item in answer["data"]], ["pooling"] * 3)
        self.assertEqual([item["data"] for item in answer["data"]], wanted)
        packed = self.post("/pooling", {"input": TEXTS[0], "encoding_format": "base64"}).json
        data = base64.b64decode(packed["data"][0]["data"])
        self.assert_near(struct.unpack(f"<{len(data) // 4}f", data), wanted[0])
        # vLLM's clients choose how many bytes a number has, and in which order they come.
        packed = self.post("/pooling", {"input": TEXTS[0], "encoding_format": "base64",
                                        "embed_dtype": "float16", "endianness": "big"}).json
        data = base64.b64decode(packed["data"][0]["data"])
        self.assert_near(struct.unpack(f">{len(data) // 2}e", data), wanted[0], places=3)
        self.post("/v1/embeddings", {"input": "a", "embed_dtype": "fp8_e4m3"}, 400)
        raw, = self.vectors([TEXTS[0]], use_activation=False)
        self.assertEqual([raw], self.vectors([TEXTS[0]], normalize=False))
        self.assertNotEqual(raw, wanted[0])
        self.post("/pooling", {"messages": door.USER})
        self.assertIn("one vector", self.post(
            "/pooling", {"input": "a", "task": "token_classify"}, 501).json["error"]["message"])

    def test_dimensions_keep_the_first_numbers(self):
        whole, = self.vectors([QUERY])
        short, = self.vectors([QUERY], dimensions=16)
        length = math.sqrt(sum(x * x for x in whole[:16]))
        self.assert_near(short, [x / length for x in whole[:16]])
        raw, = self.vectors([QUERY], normalize=False)
        self.assertEqual(self.vectors([QUERY], normalize=False, dimensions=16), [raw[:16]])
        self.assertEqual(self.vectors([QUERY], dimensions=len(whole)), [whole])
        answer = self.post("/v1/embeddings", {"input": QUERY, "dimensions": len(whole) + 1}, 400)
        self.assertIn(str(len(whole)), answer.json["error"]["message"])

    def test_messages_make_embeddings(self):
        prompt = self.post("/apply-template", {"messages": door.USER}).json["prompt"]
        by_chat = self.post("/v1/embeddings", {"messages": door.USER}).json["data"][0]
        by_text, = self.vectors([prompt], add_special_tokens=False)
        self.assertEqual(by_chat["embedding"], by_text)


def write_judge(folder):
    """A model that judges pairs, of made-up weights, with a vocabulary of a few words."""
    golden = door.ROOT / "tests" / "golden" / "encoders" / "bert_judge"
    for name in ("config.json", "model.safetensors"):
        (folder / name).symlink_to(golden / name)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "dog", "rain", "the"]
    marks = {word: {"id": word, "ids": [words.index(word)], "tokens": [word]} for word in words[2:4]}
    text, first, last = ({"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                         {"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    added = [{"id": i, "content": word, "special": True, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False} for i, word in enumerate(words[:4])]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": None, "decoder": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "special_tokens": marks,
                           "single": [first, text, last], "pair": [first, text, last]},
        "model": {"type": "WordLevel", "unk_token": "[UNK]",
                  "vocab": {word: i for i, word in enumerate(words)}}}))


class Judges(door.DoorCase):
    """A batch file has the scores and rankings of a server, which go by pairs."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        write_judge(pathlib.Path(cls.folder.name))
        cls.model = cls.folder.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_batches_judge_pairs_as_a_server_does(self):
        bodies = {"/v1/rerank": {"query": "a cat", "documents": ["the dog", "a cat", "the rain"]},
                  "/v1/score": {"text_1": "a cat", "text_2": ["the dog", "a cat"]}}
        lines = [{"custom_id": url, "method": "POST", "url": url, "body": body}
                 for url, body in bodies.items()]
        with tempfile.TemporaryDirectory() as folder:
            given, told = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, "out.jsonl")
            given.write_text("\n".join(map(json.dumps, lines)))
            result = door.run_program("run-batch", "-i", str(given), "-o", str(told), "--model",
                                      self.model)
            self.assertEqual(result.returncode, 0, result.stderr)
            answers = {line["custom_id"]: line["response"]["body"]
                       for line in map(json.loads, told.read_text().splitlines())}
        for url, body in bodies.items():
            wanted = self.post(url, body).json
            for part in ("results", "data", "usage"):
                self.assertEqual(answers[url].get(part), wanted.get(part))


if __name__ == "__main__":
    door.main()
