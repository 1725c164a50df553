"""Makes tests/golden/architectures/ of models whose layers keep states of sequences with Hugging Face transformers on a
CPU.

    python3 tools/golden/gen_recurrent.py            # all; some minutes
    python3 tools/golden/gen_recurrent.py --only lfm2

Needs torch, transformers and safetensors. recurrent.py has the models, gen_mixtures.py does the work.
"""

import argparse

import torch
import transformers

import bailing_v2_5
import gen_mixtures
import kimi_k3
import recurrent
from plain import plamo3, rwkv7


OWN = {"kimi_k3": kimi_k3, "bailing_v2_5": bailing_v2_5, "rwkv7": rwkv7,
       "plamo3": plamo3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=[*recurrent.MODELS, *OWN, *recurrent.LATE], nargs="*", help="some models")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    gen_mixtures.mixtures, gen_mixtures.ROUNDING = recurrent, recurrent.ROUNDING
    for name, own in OWN.items():
        gen_mixtures.OWN_CLASSES[name] = own
        recurrent.MODELS[name] = own.CONFIG
        recurrent.VARIANTS[name] = {"default": ({}, recurrent.LENGTH)}
    recurrent.MODELS.update(recurrent.LATE)
    for name in arguments.only or recurrent.MODELS:
        gen_mixtures.generate(name)


if __name__ == "__main__":
    main()
