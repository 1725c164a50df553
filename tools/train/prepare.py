"""Turns a corpus folder into token arrays and a byte-level BPE tokenizer.

Needs numpy and tokenizers. Everything follows from the corpus, the mix file and the seed:

    python3 prepare.py --corpus DATA --mix mix.json --out build/tokens

Without --mix every *.txt, *.txt.gz, *.jsonl and *.jsonl.gz below DATA is read, one source a file,
weighted by its size. README.md describes the mix file and the output.
"""

import argparse
import collections
import fnmatch
import gzip
import hashlib
import json
import pathlib
import random
import re

import numpy as np

import arithmetic
import augment
import smalltalk
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|user|>", "<|assistant|>", "<|end|>"]
QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "...",
                        "\u2029": "\n", "\u2003": " ", "\u00a0": " ", "\u2060": "", "\r": ""})


def read(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        return file.read()


def clean(text):
    text = text.translate(QUOTES).replace("<|", "< |")
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


def unwrap(text):
    """Joins lines that were broken inside a sentence; blank lines keep dividing paragraphs."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = []
        for line in paragraph.split("\n"):
            if lines and not re.search(r"[.!?:;\"')]$", lines[-1]):
                lines[-1] += " " + line.strip()
            else:
                lines.append(line.strip())
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def chat(*turns):
    roles = ("<|user|>", "<|assistant|>")
    return "".join(roles[i % 2] + clean(turn) + "<|end|>" for i, turn in enumerate(turns))


def from_text(text, options):
    documents = [clean(part) for part in re.split(r"(?m)^<\|endoftext\|>\n?", text)]
    return [unwrap(part) if options.get("unwrap") else part for part in documents if part]


def from_dialogue(record, _):
    turns = [message["content"] for message in record["messages"]]
    if record["messages"][0]["role"] == "user" and len(turns) > 1:
        yield chat(*turns[:len(turns) // 2 * 2])


def from_instruction(record, _):
    question = "\n\n".join(part for part in (record["instruction"], record.get("input")) if part)
    yield chat(question, record["output"])


def from_question(record, _):
    answer = re.sub(r"<<[^>]*>>", "", record["answer"])
    yield chat(record["question"], re.sub(r"#### *", "The answer is ", answer))


def from_reading(record, options):
    if record.get("split", "train") == "train" and len(record["context"]) < options["max_context"]:
        yield chat(record["context"] + "\n\n" + record["question"], record["answer"])


RECORDS = {"dialogue": from_dialogue, "instruction": from_instruction, "question": from_question,
           "reading": from_reading}


def guess_format(text):
    record = json.loads(text.split("\n", 1)[0])
    for keys, name in ((("messages",), "dialogue"), (("instruction", "output"), "instruction"),
                       (("context", "question", "answer"), "reading"),
                       (("question", "answer"), "question")):
        if all(key in record for key in keys):
            return name
    raise SystemExit(f"unknown record keys {sorted(record)}: name a format in the mix file")


def split_long(document, limit):
    """Cuts a document at paragraph (else sentence) ends into pieces of at most `limit` chars."""
    if len(document) <= limit or document.startswith("<|user|>"):
        return [document]
    pieces, current = [], ""
    for part in re.split(r"(?<=\n\n)|(?<=[.!?]) (?=[A-Z\"])", document):
        if current and len(current) + len(part) > limit:
            pieces.append(current.strip())
            current = ""
        current += part if part.endswith("\n\n") else part + " "
    return pieces + [current.strip()]


def load_source(corpus, source):
    paths = sorted(path for path in corpus.rglob("*") if path.is_file() and any(
        fnmatch.fnmatch(path.relative_to(corpus).as_posix(), glob) for glob in source["files"]))
    if not paths:
        raise SystemExit(
            f"source {source['name']}: no file below {corpus} matches {source['files']}")
    documents = []
    for path in paths:
        text = read(path)
        if ".jsonl" not in path.name:
            documents += from_text(text, source)
            continue
        convert = RECORDS[source.get("format") or guess_format(text)]
        for line in text.splitlines():
            documents += convert(json.loads(line), {"max_context": 1200, **source})
    return list(dict.fromkeys(documents))


def default_mix(corpus):
    found = [path for path in corpus.rglob("*") if re.search(r"\.(txt|jsonl)(\.gz)?$", path.name)]
    total = sum(path.stat().st_size for path in found)
    return {"sources": [{"name": path.name.split(".")[0] + str(i),
                         "weight": path.stat().st_size / total,
                         "files": [path.relative_to(corpus).as_posix()]}
                        for i, path in enumerate(sorted(found))], "evaluate": []}


def is_held_out(document, share):
    """Decides by the opening (of a dialogue: the first turn), so variants stay on one side."""
    key = hashlib.sha256(document.split("<|end|>")[0][:200].encode()).digest()
    return int.from_bytes(key[:4], "big") < share * 2**32


STORY_REQUESTS = ("Tell me a story about {}.", "Write a short story about {}.", "Please tell me a story about {}.",
                  "Can you write a little story about {}?", "Write a story about {}.", "I would like a story about {}.")


def telling_words(story, frequency, rarity):
    """Up to three words that this story uses like nouns, more than once, and few others use."""
    counts = collections.Counter(re.findall(r"\b(?:an?|the|his|her|their|my) ([a-z]{3,})\b", story))
    usable = [word for word, n in counts.items() if n > 1 and 20 < frequency[word] * rarity < 800]
    return sorted(usable, key=lambda word: (frequency[word] / counts[word], word))[:3]


def story_prompts(stories, seed):
    """Makes a request for each story, answered by the story itself."""
    generator = random.Random(seed + 1)
    frequency = collections.Counter(word for story in stories
                                    for word in set(re.findall(r"\b[a-z]{3,}\b", story)))
    dialogues, rarity = [], 3500 / max(1, len(stories))
    for story in stories:
        named = re.search(r"\b(an? (?:\w+ ){1,3}named \w+)", story[:300])
        words = telling_words(story, frequency, rarity)
        first, _, rest = story.partition(". ")
        options = []
        if named:
            ask = generator.choice(STORY_REQUESTS)
            options += [(ask.format(named[1]), story), (ask.format(re.sub(r" named .*", "", named[1])), story)]
        if words:
            article = "an" if words[0][0] in "aeiou" else "a"
            options.append((generator.choice(STORY_REQUESTS).format(f"{article} {words[0]}"), story))
        if not named:
            options.append((generator.choice(("Tell me a story.", "Write a short story.", "Please tell me a story.")), story))
        if len(words) == 3:
            options.append(("Write a story with the words {}, {} and {}.".format(*words), story))
        if 30 < len(first) < 200 and len(rest) > 100:
            options.append((f"Continue this story: {first}.", rest))
        if options:
            dialogues.append(chat(*generator.choice(options)))
    return dialogues


def train_tokenizer(texts, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=SPECIAL, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


class Encoder:
    """A tokenizer, and the marks that stand for <|user|>, <|assistant|> and <|end|> where it is another model's."""

    def __init__(self, tokenizer, marks=SPECIAL):
        self.tokenizer, self.marks = tokenizer, marks
        ids = [tokenizer.encode(mark, add_special_tokens=False).ids for mark in marks]
        if len(ids[0]) != 1:
            raise SystemExit(f"--marks: {marks[0]!r} must be one token of the tokenizer, not {len(ids[0])}")
        self.summary = {"end_of_text": ids[0][0], "assistant": ids[2]}
        self.end, self.dtype = ids[0][0], np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.uint32

    def marked(self, text):
        for own, mark in zip(SPECIAL[1:], self.marks[1:]):
            text = text.replace(own, mark)
        return text

    def encode(self, documents):
        """All ids, each document closed by the end-of-text mark, and where each begins."""
        encodings = self.tokenizer.encode_batch_fast([self.marked(text) for text in documents], add_special_tokens=False)
        ids = [encoding.ids + [self.end] for encoding in encodings]
        offsets = np.cumsum([0] + [len(row) for row in ids]).astype(np.int64)
        return np.fromiter((token for row in ids for token in row), dtype=self.dtype, count=offsets[-1]), offsets


def split_source(source, documents, share, held_text):
    train, held = [], []
    for document in documents:
        (held if is_held_out(document, share) else train).append(document)
    if source.get("leaves_out_held_contexts"):
        train = [text for text in train if text[8:108] not in held_text]
        held = []
    limit = source.get("max_chars", 6000)
    return ([piece for text in train for piece in split_long(text, limit)],
            [piece for text in held for piece in split_long(text, limit)])


def generated(source, share, seed):
    """Documents that are made rather than read, and those held out."""
    if source["generate"] == "arithmetic":
        return tuple([chat(*pair) for pair in part]
                     for part in arithmetic.problems(source["count"], seed, share))
    return [chat(*turns) for turns in smalltalk.dialogues(source["count"], seed)], []


def collect(corpus, mix, share, seed):
    sources, held_text = {}, ""
    for source in mix["sources"]:
        if "prompts_from" in source:
            train, held = story_prompts(sources[source["prompts_from"]][0], seed), []
        elif "generate" in source:
            train, held = generated(source, share, seed)
        else:
            train, held = split_source(source, load_source(corpus, source), share, held_text)
        if source.get("variants"):
            train = augment.variants(train, source["variants"], random.Random(seed))
        sources[source["name"]] = (train, held)
        held_text += "\n".join(held)
    return sources


def tokenizer_sample(sources, mix, seed, chars=8_000_000):
    generator, sample = random.Random(seed), []
    for source in mix["sources"]:
        documents, budget = list(sources[source["name"]][0]), chars * source["weight"]
        generator.shuffle(documents)
        for document in documents:
            if budget <= 0:
                break
            sample.append(document)
            budget -= len(document)
    return sample


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--mix", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--vocab-size", type=int, default=3072)
    parser.add_argument("--tokenizer", type=pathlib.Path, help="an existing model's tokenizer.json, rather than a new one")
    parser.add_argument("--marks", nargs=4, metavar=("END_OF_TEXT", "USER", "ASSISTANT", "END"),
                        help="what that model writes after a text, before and after the turns of a chat; \\n is a line end")
    parser.add_argument("--held-out", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=20261121)
    args = parser.parse_args()

    if bool(args.tokenizer) != bool(args.marks):
        parser.error("--tokenizer and --marks belong together")

    mix = json.loads(args.mix.read_text()) if args.mix else default_mix(args.corpus)
    sources = collect(args.corpus, mix, args.held_out, args.seed)
    if args.tokenizer:
        encoder = Encoder(Tokenizer.from_file(str(args.tokenizer)), [mark.replace("\\n", "\n") for mark in args.marks])
    else:
        encoder = Encoder(train_tokenizer(tokenizer_sample(sources, mix, args.seed), args.vocab_size))

    arrays, summary = {}, {"vocab_size": encoder.tokenizer.get_vocab_size(), "marks": encoder.summary, "train": {},
                           "evaluate": {}}
    for source in mix["sources"]:
        name, (train, held) = source["name"], sources[source["name"]]
        flat, offsets = encoder.encode(train)
        arrays[f"train/{name}/tokens"], arrays[f"train/{name}/offsets"] = flat, offsets
        summary["train"][name] = {"weight": source["weight"], "documents": len(train),
                                  "bytes": sum(len(text.encode()) for text in train),
                                  "tokens": len(flat)}
        if held:
            arrays[f"evaluate/{name}/tokens"], _ = encoder.encode(held)
            summary["evaluate"][name] = {"documents": len(held),
                                         "bytes": sum(len(text.encode()) for text in held)}
    for source in mix["evaluate"]:
        documents = load_source(args.corpus, source)
        arrays[f"evaluate/{source['name']}/tokens"], _ = encoder.encode(documents)
        summary["evaluate"][source["name"]] = {
            "documents": len(documents), "bytes": sum(len(text.encode()) for text in documents)}

    args.out.mkdir(parents=True, exist_ok=True)
    encoder.tokenizer.save(str(args.out / "tokenizer.json"), pretty=False)
    np.savez_compressed(args.out / "tokens.npz", **arrays)
    (args.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
