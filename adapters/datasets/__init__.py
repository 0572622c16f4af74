"""Datasets: episodes as what trainers read. Every format is a view of `arena.episode.Episode`.

- `trajectory`: one seat of one episode, with role, opponents and group
- `tokens`: a trajectory as sequences of token ids, masks and log-probabilities; `chat`: as messages
- `format`: what a format is; `formats`: the table of them
- `source`, `filters`, `splits`, `writers`, `export`: the pipeline that all of them share
"""
