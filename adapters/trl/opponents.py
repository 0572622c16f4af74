"""Opponents: who sits at the other seats while a model learns: one agent, one of several, or the learner itself."""

from collections.abc import Mapping, Sequence
from random import Random

from arena.adapters.models.local import LocalModel
from arena.agent import Agent
from arena.agents.llm import LLMAgent
from arena.registry import make_agent

__all__ = ["FROZEN", "SELF", "Opponents", "Pool"]

Opponents = str | Agent | Sequence[str | Agent] | Mapping[str | Agent, float]
SELF, FROZEN = "self", "frozen"


class Pool:
    """Draws an agent for every seat that is not the learner's.

    "self" is the learner with its present weights, "frozen" with those it had at the last step that `refresh` divides.
    """

    def __init__(self, opponents: Opponents, refresh: int = 100) -> None:
        """`opponents`: one, a list to draw from evenly, or a mapping to weights. Raises ValueError."""
        if isinstance(opponents, str | Agent):
            opponents = {opponents: 1.0}
        if not isinstance(opponents, Mapping):
            opponents = dict.fromkeys(opponents, 1.0)
        if not opponents or min(opponents.values()) < 0 or sum(opponents.values()) <= 0:
            raise ValueError("opponents: at least one is needed, with weights of 0 and more that are not all 0")
        if refresh < 1:
            raise ValueError(f"refresh={refresh}: at least 1")
        self.weights, self.refresh = opponents, refresh
        self.agents = {each: _agent(each) for each in opponents}
        self._frozen: tuple[int, LLMAgent] | None = None

    def draw(self, count: int, rng: Random) -> list[str | Agent]:
        """Who sits at the `count` other seats, in order."""
        return rng.choices(list(self.weights), list(self.weights.values()), k=count)

    def seated(self, drawn: str | Agent, learner: LLMAgent, step: int) -> Agent:
        """The agent that was drawn."""
        if drawn == SELF:
            return learner
        if drawn == FROZEN:
            return self._copy(learner, step - step % self.refresh)
        return self.agents[drawn] or learner

    @property
    def frozen(self) -> LLMAgent | None:
        """The copy that plays now, if there is one."""
        return self._frozen[1] if self._frozen is not None else None

    def _copy(self, learner: LLMAgent, step: int) -> LLMAgent:
        if self._frozen is None or self._frozen[0] != step:
            model = learner.model
            if not isinstance(model, LocalModel):
                raise TypeError(f"{FROZEN} needs a model in this process, got {type(model).__name__}")
            agent = LLMAgent(model.copy(), learner.prompting, learner.sampling)
            agent.name = FROZEN
            self._frozen = step, agent
        return self._frozen[1]


def _agent(opponent: str | Agent) -> Agent | None:
    """None: made of the learner."""
    return None if opponent in (SELF, FROZEN) else make_agent(opponent)
