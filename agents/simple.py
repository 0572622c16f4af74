"""Agents without a thought: a random one, the first legal action, a fixed script."""

from arena.agent import Agent, Reply, View

__all__ = ["FirstAgent", "RandomAgent", "ScriptedAgent"]


class RandomAgent(Agent):
    """Plays a legal action at random (uniformly where there is a list), for seed, seat and ply."""

    name = "random"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        legal = view.legal_actions
        if legal:
            return Reply(legal[view.draw(len(legal))])
        return Reply(view.sample_action())


class FirstAgent(Agent):
    """Plays the first legal action, where there is no list the game's fallback: the cheapest policy."""

    name = "first"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        legal = view.legal_actions
        if legal:
            return Reply(legal[0])
        action = view.fallback()
        return Reply(view.sample_action() if action is None else action)


class ScriptedAgent(Agent):
    """Says its lines in turn, one a move, then begins again: `scripted:4|3|5`.

    Options:
        target: the lines, separated by |
    """

    name = "scripted"

    def __init__(self, target: str) -> None:
        self.lines = target.split("|")

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        at = view.memory["line"] = view.memory.get("line", -1) + 1
        return Reply(self.lines[at % len(self.lines)])
