"""Tiny models with random weights, and what the tests of the recorder share. Nothing is downloaded."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import transformers
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).parent))
from recorder import interface, trace_file  # noqa: E402

torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TOKENS, WINDOW, PROMPT = 40, 9, 21
WORDS = ["<pad>", "<bos>", "<eos>", "<unk>"] + [f"w{i}" for i in range(93)]
SHAPE = {
    "vocab_size": len(WORDS),
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}


def tiny(kind: str, **more):
    """A small random model with six query heads over two KV heads; the noise makes attention uneven."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**SHAPE, **more})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def llama():
    """Every layer sees everything; three query heads share a KV head."""
    return tiny("llama")


def gemma2():
    """Layers 0 and 2 slide; attention scores are softly capped."""
    return tiny("gemma2", sliding_window=WINDOW, query_pre_attn_scalar=8, attn_logit_softcapping=2.0)


def mistral():
    """Every layer slides."""
    return tiny("mistral", sliding_window=WINDOW)


def gpt_oss():
    """Each head has a learned sink that takes weight and is no position."""
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    return tiny("gpt_oss", sliding_window=WINDOW, rope_parameters=rope, **experts)


def tokens(count: int = TOKENS) -> list[int]:
    """Token ids of no meaning."""
    return np.random.default_rng(5).integers(4, len(WORDS), count).tolist()


def qwen3():
    """Queries and keys are normalised before they meet."""
    return tiny("qwen3")


def gemma3():
    """Norms of queries and keys, norms behind W_O, layers 0 and 1 of three slide."""
    kinds = ["sliding_attention", "sliding_attention", "full_attention"]
    return tiny("gemma3_text", sliding_window=WINDOW, query_pre_attn_scalar=8, layer_types=kinds)


def olmo2():
    """The norm stands behind W_O only."""
    return tiny("olmo2")


def granite():
    """Updates are multiplied before they join the stream; the scale is a number of the configuration."""
    return tiny("granite", residual_multiplier=0.3, attention_multiplier=0.4)


def save_tokenizer(folder: Path):
    """One token for each word, and a BOS in front."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>"
    )
    turns = "{% for m in messages %}<bos> {{ m.content }} {% endfor %}{% if add_generation_prompt %}w1{% endif %}"
    tokenizer.chat_template = turns
    tokenizer.save_pretrained(folder)


class RecorderTest(unittest.TestCase):
    """Gives each test a folder of its own, and blocks so small that every recording takes several."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out.safetensors"
        self.said: list[str] = []
        for module, name, value in ((interface, "ROWS_PER_BLOCK", 7), (trace_file, "say", self.said.append)):
            change = patch.object(module, name, value)
            change.start()
            self.addCleanup(change.stop)

    def read(self) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """The tensors and the metadata of the output."""
        with safe_open(self.out, "numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()

    def files(self) -> list[str]:
        """What lies in the test's folder."""
        return sorted(path.name for path in self.folder.iterdir())
