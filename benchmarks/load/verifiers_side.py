"""verifiers 0.1.14 at the same conversations: `python -m benchmarks.load.verifiers_side URL CONVERSATIONS TURNS`.

Its environments have one seat: a conversation here is one seat's half of a match.
"""

import asyncio
import logging
import os
import sys
from importlib.metadata import version
from typing import Any

import verifiers as vf
from datasets import Dataset
from verifiers.types import ClientConfig

from benchmarks.load import texts
from benchmarks.load.meter import Meter, files


class Relay(vf.MultiTurnEnv):  # type: ignore[misc]  # verifiers is in another environment
    """The positions of one seat of Relay, whatever is answered."""

    async def env_response(self, messages: Any, state: Any, **_: Any) -> Any:
        ply = 2 * len(state["trajectory"])
        row = [4] * ply
        return [{"role": "user", "content": texts.position(state["input"]["info"]["deal"], 0, ply, row)}]


def _answered(completion: Any) -> float:
    return float("</answer>" in completion[-1]["content"])


def _rows(count: int) -> Dataset:
    first = [texts.position(deal, 0, 0, ()) for deal in range(count)]
    return Dataset.from_list(
        [{"question": text, "answer": "", "info": {"deal": deal}} for deal, text in enumerate(first)]
    )


async def main(url: str, count: int, turns: int) -> None:
    """Print one measurement."""
    files(count + 512)
    os.environ["LOAD_KEY"] = "none"
    logging.disable(logging.WARNING)
    client = ClientConfig(api_key_var="LOAD_KEY", api_base_url=f"{url}/v1", max_retries=0)

    def env(rows: int) -> Relay:
        rubric = vf.Rubric(funcs=[_answered])
        return Relay(
            eval_dataset=_rows(rows), system_prompt=texts.rules(0, texts.PLIES), rubric=rubric, max_turns=turns
        )

    await _play(env(4), client, 4)
    whole, meter = env(count), Meter()
    outputs = (await _play(whole, client, count))["outputs"]
    answered = sum(len(row["completion"]) // 2 + len(row["completion"]) % 2 for row in outputs)
    meter.tell(answered, version=version("verifiers"), errors=sum(bool(row.get("error")) for row in outputs))


async def _play(env: Relay, client: ClientConfig, count: int) -> Any:
    return await env.generate(
        env.get_eval_dataset(), client, "fake", max_concurrent=count, on_start=_quiet, on_progress=[], on_log=_quiet
    )


def _quiet(*_: Any) -> None:
    return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
