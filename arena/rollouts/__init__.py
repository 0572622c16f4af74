"""Rollouts: episodes in groups for trainers, played thousands at once, or played on from the middle of one."""
