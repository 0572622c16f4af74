"""The sides of the comparison of rating engines: each is given the same table of games."""
