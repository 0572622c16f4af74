"""A small language model, made on the spot, learns tic-tac-toe from records: `python -m examples.train_llm`.

Search plays a tournament; its records are exported and learned by TRL's SFTTrainer; the model then plays, and TRL's
GRPOTrainer improves it on its own games. A second tournament rates what came out, beside random, MCTS and the model as
it was before it played.
"""

__all__: list[str] = []
