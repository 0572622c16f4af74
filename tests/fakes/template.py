"""ChatML, as Qwen and SmolLM2 use it, with Hermes tool calls. Append-only unless told to strip earlier thinking."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

THINKING = re.compile(r"<think>.*?</think>\s*", re.DOTALL)
TOOLS = "# Tools\n\nYou may call one or more functions.\n<tools>\n{}\n</tools>\nCall as <tool_call>{{...}}</tool_call>."


@dataclass(frozen=True)
class Template:
    """How messages become text.

    bos: the text begins with the tokenizer's `<|bos|>`. strips_thinking: thinking of assistant turns that are not the
    last message is left out, so a prompt no longer extends the one before it.
    """

    bos: bool = False
    strips_thinking: bool = False

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> str:
        """The prompt; with `continue_final_message` the last turn stays open."""
        turns = [self._turn(message, last=number == len(messages) - 1) for number, message in enumerate(messages)]
        if tools:
            turns.insert(0, turn("system", TOOLS.format("\n".join(json.dumps(tool) for tool in tools))))
        text = ("<|bos|>" if self.bos else "") + "".join(turns)
        if continue_final_message:
            return text.removesuffix("<|im_end|>\n")
        return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")

    def _turn(self, message: dict[str, Any], last: bool) -> str:
        content = text_of(message.get("content"))
        if message["role"] == "tool":
            return turn("user", f"<tool_response>\n{content}\n</tool_response>")
        if message["role"] == "assistant" and self.strips_thinking and not last:
            content = THINKING.sub("", content)
        return turn(message["role"], content + "".join(map(call_text, message.get("tool_calls") or ())))


def turn(role: str, content: str) -> str:
    """One turn with its marks."""
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def text_of(content: Any) -> str:
    """The text of a message's content: a string, null or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return str(content)


def call_text(call: dict[str, Any]) -> str:
    """A tool call of an assistant's message in Hermes' form."""
    function = call["function"]
    arguments = function["arguments"]
    asked = json.loads(arguments) if isinstance(arguments, str) else arguments
    return "<tool_call>\n" + json.dumps({"name": function["name"], "arguments": asked}) + "\n</tool_call>"
