"""Further fields of requests to SGLang: for the chat template, for how answers are drawn, and for the prefix cache."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

__all__ = ["PLAIN", "Extra", "penalised"]

PENALTIES = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0}
"""And what each of them is where there is none."""
BIASES = ("logit_bias", "custom_logit_processor")

Additive = Annotated[float, msgspec.Meta(ge=-2, le=2)]


class Extra(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The option `extra` of SGLang over HTTP and in process."""

    chat_template_kwargs: dict[str, Any] = {}
    """Variables of the model's chat template, such as {"enable_thinking": false}."""
    reasoning_effort: str = ""
    """Another one, by the name under which servers know it."""
    frequency_penalty: Additive = 0.0
    presence_penalty: Additive = 0.0
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=2)] = 1.0
    cache_salt: str = ""
    """Prompts share the server's prefix cache with those of the same salt only."""

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> "Extra":
        """Raises ValueError with what is allowed."""
        try:
            return msgspec.convert(dict(fields or {}), cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"extra: {error}; allowed are {', '.join(cls.__struct_fields__)}") from error

    @property
    def asked(self) -> dict[str, Any]:
        """The fields of a request to the chat template."""
        found: dict[str, Any] = {}
        if self.chat_template_kwargs:
            found["chat_template_kwargs"] = self.chat_template_kwargs
        return found | ({"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {})

    @property
    def variables(self) -> dict[str, Any]:
        """What a chat template that is called here is given."""
        effort = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        return effort | self.chat_template_kwargs

    @property
    def drawn(self) -> dict[str, float]:
        """The penalties there are: fields of `sampling_params`."""
        return {name: value for name in PENALTIES if (value := getattr(self, name)) != PENALTIES[name]}


PLAIN = Extra()


def penalised(fields: Mapping[str, Any]) -> bool:
    """Whether these further fields of a chat request change the distribution that tokens are drawn from.

    >>> penalised({"repetition_penalty": 1.1}), penalised({"presence_penalty": 0, "seed": 1})
    (True, False)
    """
    changed = any(fields.get(name) not in (None, neutral) for name, neutral in PENALTIES.items())
    return changed or any(fields.get(name) for name in BIASES)
