"""Makes tests/text/data/vocabularies: tokenizers in forms other than tokenizer.json, and what the libraries that the
forms come from say of them.

    python3 tools/golden/gen_vocabularies.py CORPUS.txt.gz

Needs sentencepiece, tiktoken, mistral-common, transformers and tokenizers. CORPUS is that of gen_tokenizers.py, whose
texts are used too; NAME/golden.json has its fields over the first 2,000 of them, without those `skipped` (as if they
had no ids), which the crate's normalizer reads otherwise. Special tokens in a text become their
ids, and what lies between them is encoded for itself: the libraries are called for each piece.
"""

import base64
import gzip
import io
import itertools
import json
import pathlib
import re
import sys
import unicodedata

import sentencepiece
import tiktoken
import transformers
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from gen_tokenizers import FOLDER as TOKENIZERS, PER_DIGEST, fnv, texts

FOLDER = TOKENIZERS.parent / "vocabularies"
NUM_TEXTS, NUM_IN_FULL = 2000, 20
# Composed letters, a ligature, other spaces: a normalizer of its own is smaller than NFKC's.
RULES = [("fi", "ﬁ"), ("IV", "Ⅳ"), (" ", "\u00a0"), (" ", "\u3000"), (" ", "\t"), ("é", "e\u0301")]


def pieces_of(text, special):
    """[(text, is special)]"""
    if not special:
        return [(text, False)]
    parts = re.split("(" + "|".join(re.escape(token) for token in sorted(special, key=len, reverse=True)) + ")", text)
    return [(part, i % 2 == 1) for i, part in enumerate(parts) if part]


def in_pieces(encode, special):
    def all_ids(text):
        ids = []
        for part, is_special in pieces_of(text, special):
            ids += [special[part]] if is_special else encode(part)
        return ids
    return all_ids


def is_read_otherwise(text):
    """The crate's normalizer takes a character with the marks behind it for one, and drops those where it maps it."""
    mapped = {source for _, source in RULES}
    return any(a in mapped and (b == "\u200d" or unicodedata.category(b)[0] == "M") for a, b in zip(text, text[1:]))


def golden(encode, decode, around, normalizes):
    everything = list(itertools.islice(texts(), NUM_TEXTS))
    skipped = [i for i, text in enumerate(everything) if normalizes and is_read_otherwise(text)]
    ids = [[] if i in skipped else encode(text) for i, text in enumerate(everything)]
    pack = lambda row: b"".join(id.to_bytes(4, "little") for id in row) + b"\xff\xff\xff\xff"
    chunks = range(0, NUM_TEXTS, PER_DIGEST)
    out = {"texts": fnv(b"".join(text.encode() + b"\xff" for text in everything)), "special": around(encode("Hi")),
           "skipped": skipped,
           "ids": [fnv(b"".join(map(pack, ids[at:at + PER_DIGEST]))) for at in chunks],
           "first": [[everything[i], ids[i]] for i in range(NUM_IN_FULL) if i not in skipped]}
    if decode:
        decoded = [decode(row) for row in ids]
        out["decoded"] = [fnv(b"".join(text.encode() + b"\xff" for text in decoded[at:at + PER_DIGEST]))
                          for at in chunks]
    return out


def write(name, files, encode, decode, around=lambda ids: ids, normalizes=False):
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "golden.json").write_text(json.dumps(golden(encode, decode, around, normalizes), ensure_ascii=False) + "\n")
    print(name)


def as_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


THINK = {"content": "<think>", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
         "special": False}


def train_pieces(corpus, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, hard_vocab_limit=False, character_coverage=0.9995,
        minloglevel=2, num_threads=1, **options)
    return model.getvalue()


def pieces(name, model, config, skip_decode=False):
    """SentencePiece, with one added token behind its pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    special = {token: processor.piece_to_id(token) for token in ("<unk>", "<s>", "</s>")}
    special["<think>"] = processor.get_piece_size()
    config = {**config, "added_tokens_decoder": {str(special["<think>"]): THINK}}

    def encode(text):
        ids, first = [], True
        for part, is_special in pieces_of(text, special):
            if is_special:
                ids.append(special[part])
            elif config.get("legacy", True) or (first and part[0] not in " ▁"):
                ids += processor.encode(part)
            else:
                # As transformers without "legacy": words behind a special token or a blank get no space of their own.
                ids += processor.encode("\x01" + part)[len(processor.encode("\x01")):]
            first = False
        return ids

    def decode(ids):
        return "".join("<think>" if is_added else processor.decode(list(run)) for is_added, run in
                       itertools.groupby(ids, lambda id: id == special["<think>"]))

    write(name, {"tokenizer.model": model, "tokenizer_config.json": as_json(config)}, encode,
          None if skip_decode else decode, lambda ids: [special["<s>"]] + ids, normalizes=name.startswith("unigram"))


def ranks_of(name):
    """The tokens of a byte-level tokenizer as bytes, in the order of its merges."""
    data = json.loads((TOKENIZERS / name / "tokenizer.json").read_text())
    added = {token["content"] for token in data["added_tokens"]}
    table = bytes_to_unicode()
    back = {character: byte for byte, character in table.items()}
    vocab = sorted((id, token) for token, id in data["model"]["vocab"].items() if token not in added)
    return [bytes(back[c] for c in token) for _, token in vocab]


def tiktoken_text(ranks):
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranks))


def ranked(name, file, pattern, special, ranks, config=None, composes=False, before=()):
    encoding = tiktoken.Encoding(name, pat_str=pattern, special_tokens=special,
                                 mergeable_ranks={token: rank for rank, token in enumerate(ranks)})
    named = {**special, "<think>": THINK_ID} if config is not None else special
    if config is not None:
        config = {**config, "added_tokens_decoder": {str(THINK_ID): THINK}}
    normal = (lambda text: unicodedata.normalize("NFC", text)) if composes else (lambda text: text)
    skipped = set(special.values())

    def decode(ids):
        out = b""
        for id in ids:
            out += b"" if id in skipped else b"<think>" if id == THINK_ID else encoding.decode_single_token_bytes(id)
        return out.decode("utf-8", errors="replace")

    files = {file: tiktoken_text(ranks)}
    if config is not None:
        files["tokenizer_config.json"] = as_json(config)
    write(name, files, in_pieces(lambda part: encoding.encode_ordinary(normal(part)), named), decode,
          lambda ids: [special[token] for token in before] + ids)


THINK_ID = 2000  # behind all special tokens of a family
LETTERS = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join([LETTERS + f"[{UPPER}]*[{LOWER}]+" + SHORT, LETTERS + f"[{UPPER}]+[{LOWER}]*" + SHORT, r"\p{N}{1,3}",
                  r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
KIMI = "|".join([r"[\p{Han}]+", LETTERS + rf"[{UPPER}&&[^\p{{Han}}]]*[{LOWER}&&[^\p{{Han}}]]+" + SHORT,
                 LETTERS + rf"[{UPPER}&&[^\p{{Han}}]]+[{LOWER}&&[^\p{{Han}}]]*" + SHORT, r"\p{N}{1,3}",
                 r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
# As tiktoken_ext/openai_public.py has it.
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"""
          r"""\s*[\r\n]|\s+(?!\S)|\s""")
QWEN = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"""
        r"""\s+(?!\S)|\s+""")


def all_ranked():
    ranks = ranks_of("llama3")
    n = len(ranks)
    ranked("cl100k", "cl100k_base.tiktoken", CL100K, {
        "<|endoftext|>": n + 1, "<|fim_prefix|>": n + 2, "<|fim_middle|>": n + 3, "<|fim_suffix|>": n + 4,
        "<|endofprompt|>": n + 20}, ranks)
    ranked("o200k", "o200k_base.tiktoken", O200K, {"<|endoftext|>": n + 1, "<|endofprompt|>": n + 20}, ranks)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)]
    ranked("qwen", "qwen.tiktoken", QWEN, {token: n + i for i, token in enumerate(special)}, ranks,
           {"tokenizer_class": "QWenTokenizer"}, composes=True)
    kimi = {f"<|reserved_token_{163584 + i}|>": n + i for i in range(256)}
    ranked("kimi", "tiktoken.model", KIMI, kimi, ranks, {"tokenizer_class": "TikTokenTokenizer"})
    glm = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>",
           "<|assistant|>", "<|observation|>", "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>",
           "<|end_of_video|>"]
    ranked("glm4", "tokenizer.model", QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|"), {token: n + i for i, token in enumerate(glm)}, ranks,
           {"tokenizer_class": "ChatGLM4Tokenizer"}, before=("[gMASK]", "<sop>"))


def tekken():
    ranks, special = ranks_of("llama3"), ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    ranks.sort(key=lambda token: (len(token) > 1, token if len(token) == 1 else b""))  # bytes come first, in order
    # The vocabulary is larger than what the configuration takes of it.
    kept = len(ranks) - 10
    data = {"config": {"pattern": O200K.replace(SHORT, "").replace("{1,3}", ""), "num_vocab_tokens": len(ranks),
                       "default_vocab_size": kept + 8, "default_num_special_tokens": 8, "version": "v11"},
            "vocab": [{"rank": i, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
                      for i, token in enumerate(ranks)],
            "special_tokens": [{"rank": i, "token_str": token, "is_control": True}
                               for i, token in enumerate(special)]}
    file = FOLDER / "tekken" / "tekken.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(as_json(data))
    tokenizer = Tekkenizer.from_file(file)
    named = {token: i for i, token in enumerate(special)} | {f"<SPECIAL_{i}>": i for i in range(5, 8)}
    write("tekken", {}, in_pieces(lambda part: tokenizer.encode(part, bos=False, eos=False), named),
          lambda ids: tokenizer.decode(ids), lambda ids: [1] + ids)


def merges(name, class_name):
    data = json.loads((TOKENIZERS / name / "tokenizer.json").read_text())
    lines = ["#version: 0.2"] + [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<|end|>", "pad_token": "<|end|>"}
    added = {str(token["id"]): {key: token[key] for key in THINK} for token in data["added_tokens"]}
    config = {"tokenizer_class": class_name, "add_prefix_space": False, "added_tokens_decoder": added, **special}
    folder = FOLDER / ("merges_" + name)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"vocab.json": as_json(data["model"]["vocab"]), "merges.txt": "\n".join(lines) + "\n",
             "tokenizer_config.json": as_json(config)}
    for file, content in files.items():
        (folder / file).write_text(content)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    write("merges_" + name, {}, lambda text: tokenizer.encode(text, add_special_tokens=False),
          lambda ids: tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def main():
    corpus = gzip.open(sys.argv[1], "rt").read()[:300000].split("\n")
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    bpe = train_pieces(corpus, model_type="bpe", vocab_size=900, byte_fallback=True,
                       user_defined_symbols=["[user]", "\n\n", "Python"], **plain)
    pieces("bpe", bpe, {"tokenizer_class": "LlamaTokenizer", "legacy": True})
    pieces("bpe_not_legacy", bpe, {"tokenizer_class": "LlamaTokenizer", "legacy": False})
    pieces("bpe_no_prefix", train_pieces(corpus, model_type="bpe", vocab_size=900, byte_fallback=True,
                                         add_dummy_prefix=False, **plain), {"tokenizer_class": "GemmaTokenizer"})
    rules = FOLDER / "rules.tsv"
    FOLDER.mkdir(parents=True, exist_ok=True)
    rules.write_text("".join(" ".join(f"{ord(c):X}" for c in source) + "\t" +
                             " ".join(f"{ord(c):X}" for c in target) + "\n" for target, source in RULES))
    custom = {"normalization_rule_tsv": str(rules)}
    pieces("unigram", train_pieces(corpus, model_type="unigram", vocab_size=900, byte_fallback=True, **custom),
           {"tokenizer_class": "T5Tokenizer"}, skip_decode=True)
    pieces("unigram_unknown", train_pieces(corpus, model_type="unigram", vocab_size=600, **custom), {},
           skip_decode=True)
    rules.unlink()
    all_ranked()
    tekken()
    merges("gpt2", "GPT2Tokenizer")
    merges("qwen2", "Qwen2Tokenizer")


if __name__ == "__main__":
    main()
