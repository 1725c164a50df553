"""Makes tests/golden/gguf/encoders/ with llama.cpp's own converter: the encoders of tests/golden/encoders as
GGUF files with small vocabularies, and the ids of some texts by Hugging Face tokenizers.

    python3 tools/golden/converted/gen_encoder_ggufs.py LLAMA_CPP [--only bert]

LLAMA_CPP is a checkout of llama.cpp. Needs torch, transformers and safetensors; the states of the same ids stand in
tests/golden/encoders (gen_encoders.py).
"""

import argparse
import base64
import json
import pathlib
import shutil
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from gen_golden import GOLDEN, write_json  # noqa: E402

TEXTS = ["the cat sat", "  The Cats\tsit, and\nSAT!", "unhappy \u00e9t\u00e9", "\u732b cat", ""]
WORDS = ["the", "cat", "sat", "sit", "and", "un", "happy", "ete", ",", "!", "\u732b"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NOMIC = {"activation_function": "swiglu", "causal": False, "qkv_proj_bias": False,
         "mlp_fc1_bias": False, "mlp_fc2_bias": False, "prenorm": False, "rotary_emb_fraction": 1.0,
         "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_emb_base": 1000,
         "n_positions": 8192, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 48,
         "layer_norm_epsilon": 1e-12, "max_trained_positions": 2048}
# Kind of vocabulary, name of the pre-tokenizer, what config.json says beside.
MODELS = {"bert": ("WordPiece", "bert-bge", {}),
          "xlm_roberta": ("Unigram", "default", {}),
          "xlm_roberta_judge": ("Unigram", "default", {}),
          "nomic_bert": ("WordPiece", "bert-bge", NOMIC),
          "modern_bert": ("BPE", "modern-bert", {"global_attn_every_n_layers": 3}),
          "modern_bert_judge": ("BPE", "modern-bert", {"global_attn_every_n_layers": 3}),
          "jina_bert": ("WordPiece", "bert-bge", {"architectures": ["JinaBertModel"]}),
          "eurobert": ("BPE", "llama-bpe", {"classifier_pooling": None})}

# What the converter puts around texts whatever the tokenizer does, by ids of the folders' config.json.
MARKS = {"modern-bert": ([1], [2])}


def special(id, content):
    return {"id": id, "content": content, "special": True, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False}


def around(first, last, marks, ids):
    def mark(name, kind=0):
        return {"SpecialToken": {"id": name, "type_id": kind}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    other = {"Sequence": {"id": "B", "type_id": 1}}
    return {"type": "TemplateProcessing", "single": [mark(first), text, mark(last)],
            "pair": [mark(first), text, *[mark(last)] * marks, other, mark(last, 1)],
            "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]}
                               for name in (first, last)}}


def word_pieces(size):
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = marks + WORDS + list(LETTERS) + ["##" + c for c in LETTERS] + ["##s", "##happy"]
    pieces = list(dict.fromkeys(pieces))
    pieces += [f"[unused{i}]" for i in range(size - len(pieces))]
    ids = {piece: i for i, piece in enumerate(pieces)}
    return {"version": "1.0", "added_tokens": [special(ids[mark], mark) for mark in marks],
            "normalizer": {"type": "BertNormalizer", "clean_text": True,
                           "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": around("[CLS]", "[SEP]", 1, ids),
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": ids,
                      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}}


def unigram(size):
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [(mark, 0.0) for mark in marks]
    pieces += [("\u2581" + word, -2.0 - 0.1 * i) for i, word in enumerate(WORDS)]
    pieces += [("\u2581", -3.0), ("s", -2.5), ("happy", -3.5)]
    pieces += [(c, -6.0 - 0.01 * i) for i, c in enumerate(LETTERS + LETTERS.upper()) if c != "s"]
    pieces += [(f"\u2581unused{i}", -20.0) for i in range(size - 1 - len(pieces))] + [("<mask>", 0.0)]
    ids = {piece: i for i, (piece, _) in enumerate(pieces)}
    spaces = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    return {"version": "1.0",
            "added_tokens": [special(ids[mark], mark) for mark in [*marks, "<mask>"]],
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, spaces]},
            "post_processor": around("<s>", "</s>", 2, ids), "decoder": spaces,
            "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(piece) for piece in pieces]}}


def empty_charsmap():
    """A table that changes no character: one unit of a double array without children."""
    units = bytes(4 * 256)
    return base64.b64encode(len(units).to_bytes(4, "little") + units + b"\0").decode()


CHARSMAP = empty_charsmap()


def byte_pieces(size):
    letters = "abcdefghijklmnopqrstuvwxyz,!\u0120\u010a\u0109"
    pieces = [*letters, "th", "the", "\u0120c", "at", "\u0120cat"]
    pieces += [f"<|unused{i}|>" for i in range(size - len(pieces))]
    ids = {piece: i for i, piece in enumerate(pieces)}
    return {"version": "1.0", "added_tokens": [special(size - 1, pieces[-1])], "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True,
                              "trim_offsets": True},
            "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": ids, "ignore_merges": True,
                      "merges": ["t h", "th e", "\u0120 c", "a t", "\u0120c at"]}}


MAKERS = {"WordPiece": word_pieces, "Unigram": unigram, "BPE": byte_pieces}
ROLES = {"WordPiece": {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "cls_token": "[CLS]",
                       "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"},
         "Unigram": {"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>", "eos_token": "</s>",
                     "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>",
                     "pad_token": "<pad>", "mask_token": "<mask>"},
         "BPE": {"tokenizer_class": "PreTrainedTokenizerFast"}}


class PlainTokenizer:
    """What the converter asks of transformers' tokenizers, by a tokenizer.json alone."""

    add_prefix_space = True
    clean_up_tokenization_spaces = True

    def __init__(self, folder):
        self.json = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text())
        vocab = self.json["model"]["vocab"]
        self.pieces = list(vocab) if isinstance(vocab, dict) else [piece for piece, _ in vocab]
        self.vocab = {piece: i for i, piece in enumerate(self.pieces)}
        self.vocab_size = len(self.pieces)
        self.all_special_ids = [token["id"] for token in self.json["added_tokens"]]
        self.added_tokens_decoder = {
            token["id"]: types.SimpleNamespace(**token) for token in self.json["added_tokens"]}

    def get_vocab(self):
        return self.vocab

    def get_added_vocab(self):
        return {token["content"]: token["id"] for token in self.json["added_tokens"]}

    def encode(self, token, **_):
        return [token]

    def decode(self, tokens):
        return tokens[0]

    def _convert_id_to_token(self, id):
        return self.pieces[id]

    @classmethod
    def from_pretrained(cls, folder, **_):
        return cls(folder)


def load_converter(llama_cpp):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import transformers
    transformers.AutoTokenizer = PlainTokenizer
    model = types.ModuleType("sentencepiece.sentencepiece_model_pb2")
    module = types.ModuleType("sentencepiece")
    module.SentencePieceProcessor = type("SentencePieceProcessor", (), {})
    module.sentencepiece_model_pb2 = model
    sys.modules["sentencepiece"] = module
    sys.modules["sentencepiece.sentencepiece_model_pb2"] = model
    import conversion.base
    import convert_hf_to_gguf
    return convert_hf_to_gguf, conversion.base.TextModel


def generate(name, converter, text_model):
    kind, pre, fields = MODELS[name]
    source = GOLDEN / "encoders" / name
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        config = {**json.loads((source / "config.json").read_text()), **fields}
        (folder / "config.json").write_text(json.dumps(config))
        shutil.copy(source / "model.safetensors", folder)
        tokenizer = MAKERS[kind](config["vocab_size"])
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "tokenizer_config.json").write_text(json.dumps(ROLES[kind]))
        (folder / "modules.json").write_text(json.dumps([{"path": "pool", "type": "Pooling"}]))
        (folder / "pool").mkdir()
        (folder / "pool" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
        text_model.get_vocab_base_pre = lambda *_: pre
        out = GOLDEN / "gguf" / "encoders" / f"{name}.gguf"
        out.parent.mkdir(exist_ok=True)
        sys.argv = ["convert", str(folder), "--outfile", str(out), "--outtype", "bf16",
                    "--model-name", "tiny"]
        converter.main()
    import tokenizers
    plain = tokenizers.Tokenizer.from_str(json.dumps(tokenizer))
    first, last = MARKS.get(pre, ([], []))
    return [{"text": text, "ids": first + plain.encode(text).ids + last} for text in TEXTS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("llama_cpp", type=pathlib.Path)
    parser.add_argument("--only", choices=list(MODELS), nargs="*", help="some encoders")
    arguments = parser.parse_args()
    converter, text_model = load_converter(arguments.llama_cpp)
    texts = {name: generate(name, converter, text_model) for name in arguments.only or MODELS}
    if not arguments.only:
        write_json(GOLDEN / "gguf" / "encoders" / "texts.json", texts)


if __name__ == "__main__":
    main()
